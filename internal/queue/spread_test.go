package queue

import (
	"fmt"
	"testing"
	"time"
)

// spread is how early and how late the first of many keys, and the last, is ready
// after all of them had the same outcome at one moment. All but the last outcome
// are of passes before.
func spread(t *testing.T, o Options, outcomes ...Outcome) (first, last time.Duration) {
	t.Helper()
	bubbleNow(t, o, func(t *testing.T, q *Queue[string]) {
		const n = 200
		for i := range n {
			q.Add(fmt.Sprint(i), Change)
		}
		for _, o := range outcomes[:len(outcomes)-1] {
			for range n {
				it, _ := q.Get()
				q.Done(it.Key, o)
			}
		}
		var keys []string
		for range n {
			it, _ := q.Get()
			keys = append(keys, it.Key)
		}
		start := time.Now()
		for _, key := range keys {
			q.Done(key, outcomes[len(outcomes)-1])
		}
		first = readyAfter(t, q)
		for range n - 1 {
			readyAfter(t, q)
		}
		last = time.Since(start)
	})
	return first, last
}

func TestWhatFailedOrWaitsAtOneMomentDoesNotComeBackAtOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcomes           []Outcome
		least, early, late time.Duration
		most               time.Duration
	}{
		"After":      {[]Outcome{{Kind: After, Delay: 100 * time.Second}}, 90 * time.Second, 95 * time.Second, 105 * time.Second, 110 * time.Second},
		"Backoff":    {[]Outcome{{Kind: Backoff}}, 80 * time.Second, 85 * time.Second, 95 * time.Second, 100 * time.Second},
		"later poll": {[]Outcome{{Poll: 100 * time.Second}, {Poll: 100 * time.Second}}, 90 * time.Second, 95 * time.Second, 105 * time.Second, 110 * time.Second},
	} {
		first, last := spread(t, Options{MinBackoff: 100 * time.Second}, c.outcomes...)
		if first < c.least || first > c.early || last < c.late || last > c.most {
			t.Errorf("%s: the first came after %v, the last after %v", name, first, last)
		}
	}
}

func TestAnEndToFailuresMakesTheNextBackoffTheFirstAgain(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]Outcome{
		"Done":    {Kind: Done, Poll: time.Hour},
		"After":   {Kind: After, Delay: time.Hour},
		"Stalled": {Kind: Stall, Poll: time.Hour},
	} {
		bubbleNow(t, Options{}, func(t *testing.T, q *Queue[string]) {
			q.Add("a", Change)
			for _, o := range []Outcome{{Kind: Backoff}, {Kind: Backoff}, {Kind: Backoff}, end, {Kind: Backoff}} {
				it, _ := q.Get()
				q.Done(it.Key, o)
			}
			if d := readyAfter(t, q); d > time.Second {
				t.Errorf("%s: the first failure after it was waited for %v", name, d)
			}
		})
	}
}

func TestOneKeysFailuresAreNoOthers(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		for range 6 {
			it, _ := q.Get()
			q.Done(it.Key, Outcome{Kind: Backoff})
		}
		q.Add("b", Change)
		get(t, q)
		q.Done("b", Outcome{Kind: Backoff})
		if d := readyAfter(t, q); d > time.Second {
			t.Errorf("a first failure was waited for %v", d)
		}
	})
}

func TestWhatComesBackByItselfIsInTheLaneOfRetries(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Outcome{
		"After": {Kind: After, Delay: time.Second}, "Backoff": {Kind: Backoff}, "Hold": {Kind: Hold, Delay: time.Second}, "Again": {Kind: Again},
	} {
		bubbleNow(t, Options{}, func(t *testing.T, q *Queue[string]) {
			q.Add("a", Change)
			get(t, q)
			q.Done("a", o)
			if it, _ := q.Get(); it.Lane != Retry {
				t.Errorf("%s came back in lane %v", name, it.Lane)
			}
		})
	}
}

func TestAPassThatRunsAgainAtOnceCannotMakeAHotLoop(t *testing.T) {
	bubble(t, Options{Burst: 3}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		start, passes := time.Now(), 0
		for ; time.Since(start) < 10*time.Second && passes < 1000; passes++ {
			q.Get()
			q.Done("a", Outcome{Kind: Again})
		}
		if passes < 10 || passes > 14 {
			t.Fatalf("%d passes in ten seconds", passes)
		}
	})
}

func TestTheDefaultsAreThoseThatAreDocumented(t *testing.T) {
	t.Parallel()
	want := Options{MinBackoff: time.Second, MaxBackoff: 5 * time.Minute, Aging: 16, Burst: 5}
	if got := New[string](Options{}).opts; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
