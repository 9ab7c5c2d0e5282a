package queue

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// get takes a key that must be ready now.
func get(t *testing.T, q *Queue[string]) Item[string] {
	t.Helper()
	if q.Stats().Ready == [Lanes]int{} {
		t.Fatal("nothing is ready")
	}
	it, ok := q.Get()
	if !ok {
		t.Fatal("closed")
	}
	return it
}

// readyAfter tells how long it takes until the next key is ready.
func readyAfter(t *testing.T, q *Queue[string]) time.Duration {
	t.Helper()
	start := time.Now()
	if _, ok := q.Get(); !ok {
		t.Fatal("closed")
	}
	return time.Since(start)
}

func within(t *testing.T, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Fatalf("got %v, want between %v and %v", got, low, high)
	}
}

func bubble(t *testing.T, o Options, f func(t *testing.T, q *Queue[string])) {
	t.Parallel()
	bubbleNow(t, o, f)
}

// bubbleNow is bubble for one case of a test.
func bubbleNow(t *testing.T, o Options, f func(t *testing.T, q *Queue[string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := New[string](o)
		f(t, q)
		q.Close()
	})
}

func TestAKeyIsHandedOutOnceHoweverOftenItIsAdded(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		for range 3 {
			q.Add("a", Event)
		}
		get(t, q)
		q.Add("a", Event)
		q.Add("a", Event)
		if got := q.Stats().Ready; got != [Lanes]int{} {
			t.Fatalf("a key in a pass is ready again: %v", got)
		}
		q.Done("a", Outcome{})
		get(t, q)
		q.Done("a", Outcome{})
		if s := q.Stats(); s != (Stats{}) || len(q.entries) != 0 {
			t.Fatalf("left behind: %+v, %d entries", s, len(q.entries))
		}
	})
}

func TestNoKeyIsInTwoPassesAtOnceWhateverTheWorkers(t *testing.T) {
	t.Parallel()
	q := New[int](Options{})
	var mu sync.Mutex
	in := map[int]bool{}
	served := 0
	var workers, adders sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				it, ok := q.Get()
				if !ok {
					return
				}
				mu.Lock()
				if in[it.Key] {
					t.Errorf("key %d is in two passes", it.Key)
				}
				in[it.Key] = true
				served++
				mu.Unlock()
				mu.Lock()
				delete(in, it.Key)
				mu.Unlock()
				q.Done(it.Key, Outcome{})
			}
		})
	}
	for a := range 4 {
		adders.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(a)))
			for range 5000 {
				q.Add(r.IntN(20), Cause(1+r.IntN(4)))
			}
		})
	}
	adders.Wait()
	q.Close()
	workers.Wait()
	if served == 0 {
		t.Fatal("nothing was served")
	}
}

func TestPeopleGoBeforeAFirstListAndTheListStillMoves(t *testing.T) {
	bubble(t, Options{Aging: 4}, func(t *testing.T, q *Queue[string]) {
		for i := range 1000 {
			q.Add(fmt.Sprint("old", i), Initial)
		}
		q.Add("new", Change)
		if it := get(t, q); it.Key != "new" || it.Lane != People {
			t.Fatalf("got %+v, want the change", it)
		}
		q.Done("new", Outcome{})
		waited := 0
		for i := range 100 {
			q.Add(fmt.Sprint("p", i), Event)
			q.Add(fmt.Sprint("q", i), Event)
			it := get(t, q)
			q.Done(it.Key, Outcome{})
			if it.Lane == Background {
				waited = 0
			} else if waited++; waited > 4 {
				t.Fatalf("the low lane waited for %d pops, want at most 4", waited)
			}
		}
	})
}

func TestAKeyMovesUpWhenSomeoneWaitsForIt(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Initial)
		q.Add("b", Initial)
		q.Add("b", Change)
		if it := get(t, q); it.Key != "b" || it.Cause != Change {
			t.Fatalf("got %+v, want b first", it)
		}
		if s := q.Stats(); s.Ready != [Lanes]int{Background: 1} {
			t.Fatalf("ready %v, want a alone", s.Ready)
		}
		if it := get(t, q); it.Key != "a" {
			t.Fatalf("got %+v, want a", it)
		}
	})
}

func TestBackoffGrowsToItsBoundAndEventsDoNotMoveIt(t *testing.T) {
	bubble(t, Options{MinBackoff: time.Second, MaxBackoff: 10 * time.Second}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			q.Done("a", Outcome{Kind: Backoff})
			q.Add("a", Event)
			q.Add("a", Related)
			d := readyAfter(t, q)
			within(t, d, want*time.Second*8/10, want*time.Second)
			q.Done("a", Outcome{Kind: Backoff})
		}
	})
}

func TestAChangeEndsABackoffAndStartsItAnew(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		for range 5 {
			readyAfter(t, q)
			q.Done("a", Outcome{Kind: Backoff})
		}
		q.Add("a", Change)
		if d := readyAfter(t, q); d != 0 {
			t.Fatalf("a change waited %v", d)
		}
		q.Done("a", Outcome{Kind: Backoff})
		d := readyAfter(t, q)
		within(t, d, 800*time.Millisecond, time.Second)
	})
}

func TestNothingButAReleaseShortensAHold(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		q.Done("a", Outcome{Kind: Hold, Delay: time.Hour})
		q.Add("a", Change)
		q.Add("a", Related)
		if d := readyAfter(t, q); d != time.Hour {
			t.Fatalf("ran after %v, want an hour to the second", d)
		}
		q.Add("a", Change) // during the pass
		q.Done("a", Outcome{Kind: Hold, Delay: time.Hour})
		q.Add("a", Release)
		if d := readyAfter(t, q); d != 0 {
			t.Fatalf("a release waited %v", d)
		}
	})
}

func TestAStalledKeyRestsUntilAChangeOrARelatedEvent(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		for _, wakes := range []Cause{Related, Change} {
			q.Add("a", Change)
			get(t, q)
			q.Add("a", Event) // came while it ran: no reason either
			q.Done("a", Outcome{Kind: Stall})
			for _, c := range []Cause{Initial, Event} {
				q.Add("a", c)
			}
			time.Sleep(24 * time.Hour)
			if s := q.Stats(); s.Ready != [Lanes]int{} {
				t.Fatalf("a stalled key ran: %+v", s)
			}
			q.Add("a", wakes)
			get(t, q)
			q.Done("a", Outcome{})
		}
	})
}

func TestAStalledKeyIsHandedOutForAStatusToPutRightAndStaysStalled(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		q.Done("a", Outcome{Kind: Stall})
		q.Add("a", Restore)
		if it, _ := q.Get(); !it.Stalled || it.Cause != Restore || it.Lane != Background {
			t.Fatalf("handed out as %+v", it)
		}
		q.Done("a", Outcome{Kind: Stall})
		q.Add("a", Change)
		if it, _ := q.Get(); !it.Stalled || it.Cause != Change {
			t.Fatalf("handed out as %+v", it)
		}
		q.Done("a", Outcome{})
		q.Add("a", Restore)
		if it, _ := q.Get(); it.Stalled {
			t.Fatalf("still stalled: %+v", it)
		}
	})
}

func TestAStalledKeyWhoseStatusCouldNotBeWrittenComesBackForThatWithBackoff(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		for _, least := range []time.Duration{800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond} {
			q.Done("a", Outcome{Kind: Stall, Restore: true})
			q.Add("a", Event) // no reason to ask the author
			begin := time.Now()
			if it, _ := q.Get(); !it.Stalled || it.Cause != Restore {
				t.Fatalf("handed out as %+v", it)
			}
			if d := time.Since(begin); d < least {
				t.Fatalf("after %v, want at least %v", d, least)
			}
		}
		for _, wakes := range []Cause{Related, Change} {
			q.Done("a", Outcome{Kind: Stall, Restore: true})
			q.Add("a", wakes)
			begin := time.Now()
			if it, _ := q.Get(); it.Cause != wakes || (wakes == Change) != time.Now().Equal(begin) {
				t.Fatalf("%v after it was added, handed out as %+v", time.Since(begin), it)
			}
		}
		q.Done("a", Outcome{Kind: Stall})
	})
}

func TestAStatusThatTwoWritersFightOverIsPutRightOnceASecondAfterABurst(t *testing.T) {
	bubble(t, Options{Burst: 3}, func(t *testing.T, q *Queue[string]) {
		start, passes := time.Now(), 0
		for time.Since(start) < 10*time.Second {
			q.Add("a", Restore)
			q.Add("a", Restore) // a second word of the same costs nothing
			if q.Stats().Ready == ([Lanes]int{}) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			get(t, q)
			passes++
			q.Done("a", Outcome{})
		}
		if passes < 10 || passes > 14 {
			t.Fatalf("%d passes in ten seconds", passes)
		}
	})
}

func TestAStalledKeyIsPolledInTheLowLane(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		q.Done("a", Outcome{Kind: Stall, Poll: time.Minute})
		start := time.Now()
		it, _ := q.Get()
		within(t, time.Since(start), 6*time.Second, time.Minute)
		if it.Lane != Background {
			t.Fatalf("polled in lane %v", it.Lane)
		}
	})
}

func TestChangesThatFlapAreHeldToOneASecondAfterABurst(t *testing.T) {
	bubble(t, Options{Burst: 3}, func(t *testing.T, q *Queue[string]) {
		start, passes := time.Now(), 0
		for time.Since(start) < 60*time.Second {
			q.Add("a", Change)
			if q.Stats().Ready == ([Lanes]int{}) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			get(t, q)
			passes++
			q.Done("a", Outcome{Kind: Backoff})
		}
		if passes < 60 || passes > 64 {
			t.Fatalf("%d passes in a minute of flapping, want 60 and the burst", passes)
		}
	})
}

func TestPollsAreSpreadAfterAStartAndJittered(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		const n = 2000
		for i := range n {
			q.Add(fmt.Sprint(i), Initial)
		}
		for range n {
			q.Done(get(t, q).Key, Outcome{Poll: 10 * time.Minute})
		}
		start := time.Now()
		perMinute := map[int]int{}
		for range n {
			it, _ := q.Get()
			perMinute[int(time.Since(start)/time.Minute)]++
			q.Done(it.Key, Outcome{Kind: Forget})
		}
		for m, c := range perMinute {
			if c > 2*n/9 {
				t.Errorf("minute %d has %d of %d polls", m, c, n)
			}
		}
	})
}

func TestAfterKeepsItsDelayWithinATenthUnlessSomethingHappens(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		q.Done("a", Outcome{Kind: After, Delay: time.Minute})
		d := readyAfter(t, q)
		within(t, d, 54*time.Second, 66*time.Second)
		q.Add("a", Event)
		q.Done("a", Outcome{Kind: After, Delay: time.Minute})
		if d := readyAfter(t, q); d != 0 {
			t.Fatalf("an event waited %v for an After", d)
		}
	})
}

func TestCloseReturnsFromGetAndLetsRunningKeysEnd(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		q.Add("a", Change)
		get(t, q)
		q.Add("b", Change)
		var wg sync.WaitGroup
		q.Close()
		wg.Go(func() {
			if it, ok := q.Get(); ok {
				t.Errorf("%v was handed out after Close", it)
			}
		})
		wg.Wait()
		q.Done("a", Outcome{Kind: Backoff})
		q.Close()
		if q.Stats().Running != 0 {
			t.Fatal("a key runs for ever")
		}
	})
}

func TestTheHotPathAllocatesNothing(t *testing.T) {
	q := New[[2]string](Options{})
	key := [2]string{"default", "a"}
	if n := testing.AllocsPerRun(1000, func() {
		q.Add(key, Event)
		it, _ := q.Get()
		q.Done(it.Key, Outcome{})
	}); n != 0 {
		t.Fatalf("add, get and done allocate %v times", n)
	}
}

func BenchmarkAddGetDone(b *testing.B) {
	q := New[[2]string](Options{})
	keys := make([][2]string, 1024)
	for i := range keys {
		keys[i] = [2]string{"default", fmt.Sprint(i)}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Add(keys[i%len(keys)], Event)
		it, _ := q.Get()
		q.Done(it.Key, Outcome{})
	}
}

func TestAKeyAtRestIsNotCountedAsWaiting(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, q *Queue[string]) {
		for key, o := range map[string]Outcome{"rests": {}, "stalls": {Kind: Stall}, "backs off": {Kind: Backoff}, "is polled": {Poll: time.Minute}} {
			q.Add(key, Change)
			get(t, q)
			q.Done(key, o)
		}
		if got := q.Stats().Waiting; got != 2 {
			t.Errorf("%d keys wait for a time, want the two that back off and are polled", got)
		}
	})
}
