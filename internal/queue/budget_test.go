package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var usual = BudgetOptions{Rate: 1, Burst: 1, Failures: 2, MinPause: 10 * time.Second, MaxPause: time.Minute}

// spent is a budget whose tokens are used.
func spent(t *testing.T, o BudgetOptions) *Budget {
	t.Helper()
	b := NewBudget(o)
	for range o.Burst {
		enter(t, b, &Permit{})
	}
	return b
}

func enter(t *testing.T, b *Budget, p *Permit) {
	t.Helper()
	if d := b.Enter(t.Context(), p, time.Time{}); d != nil {
		t.Fatal(d)
	}
}

// broken is a budget of an endpoint that does not answer.
func broken(t *testing.T, o BudgetOptions) *Budget {
	t.Helper()
	b := NewBudget(o)
	for i := range o.Failures {
		b.Exit(&Permit{}, Failed, fmt.Sprint(i))
	}
	if got := b.Stats().Breaker; got != "open" {
		t.Fatalf("the breaker is %s", got)
	}
	return b
}

// work hands out the keys of a queue, one at a time, with one call each, and sends
// what it hands out.
func work(b *Budget, q *Queue[string], to chan<- string, answer Answer, o Outcome) {
	for {
		it, ok := q.Get()
		if !ok {
			return
		}
		if !it.Refuse && it.Cause != Release {
			if d := b.Enter(context.Background(), it.Permit, time.Time{}); d != nil {
				panic(d)
			}
			b.Exit(it.Permit, answer, it.Key)
		}
		to <- it.Key
		q.Done(it.Key, o)
	}
}

func TestKeysWaitInTheirQueueAndPeopleGoFirstOverAllQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := spent(t, usual)
		one, other := New[string](Options{Budget: b}), New[string](Options{Budget: b})
		defer one.Close()
		defer other.Close()
		served := make(chan string, 100)
		for range 2 {
			go work(b, one, served, Healthy, Outcome{})
			go work(b, other, served, Healthy, Outcome{})
		}
		for i := range 3 {
			one.Add(fmt.Sprint("poll", i), Initial)
		}
		other.Add("poll3", Initial)
		synctest.Wait()
		other.Add("person", Change)
		synctest.Wait()
		if s, r := b.Stats(), one.Stats().Running+other.Stats().Running; s.Deferred != 5 || r != 0 {
			t.Errorf("%+v, and %d keys hold a worker; want 5 deferred and none", s, r)
		}
		start := time.Now()
		var got []string
		for range 5 {
			got = append(got, <-served)
		}
		if d := cmp.Diff([]string{"person", "poll0", "poll3", "poll1", "poll2"}, got); d != "" {
			t.Errorf("people first, and the queues in turn (-want +got):\n%s", d)
		}
		within(t, time.Since(start), 5*time.Second, 5*time.Second+time.Microsecond)
	})
}

func TestALowerLaneOfAnotherQueueWaitsItsShareAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := spent(t, usual)
		busy, calm := New[string](Options{Budget: b}), New[string](Options{Budget: b})
		defer busy.Close()
		defer calm.Close()
		served := make(chan string, 1000)
		go work(b, busy, served, Healthy, Outcome{})
		go work(b, calm, served, Healthy, Outcome{})
		for i := range 200 {
			busy.Add(fmt.Sprint("person", i), Change)
			busy.Add(fmt.Sprint("old", i), Initial)
		}
		for i := range 5 {
			calm.Add(fmt.Sprint("calm", i), Initial)
		}
		waited := map[string]int{}
		for n := range 100 {
			key := <-served
			waited[key[:3]]++
			if n < 5*(aging+2) && waited["cal"] < n/(aging+2) {
				t.Fatalf("of %d admissions %v", n, waited)
			}
		}
		if waited["per"] < 80 || waited["old"] < 4 || waited["cal"] != 5 {
			t.Errorf("of 100 admissions %v", waited)
		}
	})
}

func TestCallsOfAPassGoBeforeNewPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(usual)
		q := New[string](Options{Budget: b})
		defer q.Close()
		q.Add("a", Change)
		q.Add("b", Change)
		it := get(t, q)
		start, next := time.Now(), make(chan time.Duration, 1)
		go func() {
			q.Get()
			next <- time.Since(start)
		}()
		for range 4 {
			enter(t, b, it.Permit)
			b.Exit(it.Permit, Healthy, "")
		}
		within(t, time.Since(start), 3*time.Second, 3*time.Second+time.Microsecond)
		q.Done("a", Outcome{})
		within(t, <-next, 4*time.Second, 4*time.Second+time.Microsecond)
	})
}

func TestACallIsNotWaitedForInVain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		by   time.Duration
		ends func(q *Queue[string], cancel context.CancelFunc) // after a second
		took time.Duration
	}{
		{"its time would be over", 4 * time.Second, nil, 0},
		{"its context ends", time.Hour, func(_ *Queue[string], cancel context.CancelFunc) { cancel() }, time.Second},
		{"its queue closes", time.Hour, func(q *Queue[string], _ context.CancelFunc) { q.Close() }, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBudget(BudgetOptions{Rate: 0.1, Burst: 2, Failures: 2, MinPause: 1, MaxPause: 1})
			q := New[string](Options{Budget: b})
			q.Add("a", Change)
			it := get(t, q)
			enter(t, b, it.Permit)
			enter(t, b, it.Permit)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ends != nil {
				time.AfterFunc(time.Second, func() { c.ends(q, cancel) })
			}
			start := time.Now()
			d := b.Enter(ctx, it.Permit, start.Add(c.by))
			if d == nil || d.Endpoint || time.Since(start) != c.took || d.After <= 0 {
				t.Errorf("%s: %+v after %v, want no call after %v", c.name, d, time.Since(start), c.took)
			}
			if errors.Is(d, context.Canceled) != (ctx.Err() != nil) {
				t.Errorf("%s: %v", c.name, d)
			}
			q.Done("a", Outcome{})
			q.Close()
			start = time.Now() // … and the token is not lost
			enter(t, b, &Permit{})
			within(t, time.Since(start), 10*time.Second-c.took, 10*time.Second-c.took+time.Microsecond)
		})
	}
}

func TestATokenThatNoCallUsedGoesBackUnlessThePassCounts(t *testing.T) {
	t.Parallel()
	for _, counts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBudget(usual)
			q := New[string](Options{Budget: b, Counts: counts})
			defer q.Close()
			start := time.Now()
			for i := range 3 {
				q.Add(fmt.Sprint(i), Change)
				it, _ := q.Get()
				q.Done(it.Key, Outcome{})
			}
			if took := time.Since(start); counts != (took > time.Second) {
				t.Errorf("three passes without a call took %v, where a pass counts: %v", took, counts)
			}
		})
	}
}

func TestWhereTheEndpointDoesNotAnswerOnePassTriesAndTheOthersWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := broken(t, BudgetOptions{Rate: 100, Burst: 100, Failures: 2, MinPause: 10 * time.Second, MaxPause: 20 * time.Second})
		q := New[string](Options{Budget: b, MinBackoff: time.Hour, MaxBackoff: time.Hour})
		defer q.Close()
		served := make(chan string, 100)
		for range 4 {
			go work(b, q, served, Failed, Outcome{Kind: Backoff})
		}
		for i := range 10 {
			q.Add(fmt.Sprint(i), Initial)
		}
		start := time.Now()
		for _, want := range []time.Duration{10, 20, 20, 20} {
			<-served
			within(t, time.Since(start), want*time.Second*8/10, want*time.Second+time.Microsecond)
			synctest.Wait()
			if len(served) > 0 {
				t.Fatalf("%d passes beside the probe", len(served))
			}
			start = time.Now()
		}
		if s := b.Stats(); s.Breaker != "open" || s.Deferred != 6 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAProbeThatMadeNoCallIsForTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := broken(t, usual)
		q := New[string](Options{Budget: b})
		defer q.Close()
		q.Add("a", Initial)
		q.Add("b", Initial)
		for range 2 {
			it, _ := q.Get()
			if d := b.Enter(t.Context(), &Permit{}, time.Time{}); d == nil || !d.Endpoint {
				t.Errorf("a call beside the probe: %v", d)
			}
			q.Done(it.Key, Outcome{})
		}
		b.Leave(&Permit{}) // of a caller that is not the probe, and releases none
		p := &Permit{}
		enter(t, b, p)
		b.Leave(p)
		enter(t, b, &Permit{})
	})
}

func TestTheProbesAnswerLetsOthersInBeforeItsPassEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := broken(t, usual)
		q := New[string](Options{Budget: b})
		defer q.Close()
		q.Add("a", Initial)
		q.Add("b", Initial)
		it, _ := q.Get()
		enter(t, b, it.Permit)
		served := make(chan string, 1)
		go work(b, q, served, Healthy, Outcome{})
		synctest.Wait()
		b.Exit(it.Permit, Healthy, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(served) != 1 {
			t.Error("all wait for the end of a pass that may take long")
		}
		q.Done(it.Key, Outcome{})
	})
}

func TestAfterTheReturnCallsBeginSlowlyAndComeBackWithinAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := broken(t, BudgetOptions{Rate: 32, Burst: 32, Failures: 2, MinPause: time.Second, MaxPause: time.Second})
		q := New[string](Options{Budget: b})
		defer q.Close()
		served := make(chan string, 10000)
		for range 4 {
			go work(b, q, served, Healthy, Outcome{})
		}
		for i := range 5000 {
			q.Add(fmt.Sprint(i), Initial)
		}
		<-served
		start := time.Now()
		for _, c := range []struct {
			at          time.Duration
			least, most int
		}{{time.Second, 0, 4}, {10 * time.Second, 20, 45}, {time.Minute, 900, 1100}, {2 * time.Minute, 2800, 3100}} {
			time.Sleep(c.at - time.Since(start))
			if n := len(served); n < c.least || n > c.most {
				t.Errorf("%d passes in the first %v, want %d to %d", n, c.at, c.least, c.most)
			}
		}
	})
}

func TestAPersonIsToldOnceThatTheEndpointDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := broken(t, usual)
		q := New[string](Options{Budget: b})
		defer q.Close()
		q.Add("poll", Initial)
		q.Add("a", Related)
		it, _ := q.Get()
		if it.Key != "a" || !it.Refuse || it.Lane != People {
			t.Fatalf("handed out as %+v", it)
		}
		if d := b.Enter(t.Context(), it.Permit, time.Time{}); d == nil || !d.Endpoint {
			t.Fatalf("it may call: %v", d)
		}
		q.Done("a", Outcome{Kind: Defer})
		q.Add("a", Event)
		start := time.Now()
		it, _ = q.Get()
		if it.Key != "a" || it.Refuse || it.Lane != People || it.Cause != Related {
			t.Errorf("handed out as %+v", it)
		}
		within(t, time.Since(start), 8*time.Second, 10*time.Second)
	})
}

func TestAReleaseDoesNotWaitForTheEndpoint(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(q *Queue[string]){
		"new":     func(*Queue[string]) {},
		"waiting": func(q *Queue[string]) { q.Add("a", Initial) },
		"told": func(q *Queue[string]) {
			q.Add("a", Change)
			q.Get()
			q.Done("a", Outcome{Kind: Defer})
		},
		"in a pass": func(q *Queue[string]) {
			q.Add("a", Change)
			q.Get()
			q.Add("a", Release)
			q.Done("a", Outcome{Kind: Defer})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := broken(t, usual)
			q := New[string](Options{Budget: b})
			defer q.Close()
			before(q)
			q.Add("a", Release)
			q.Add("a", Change)
			start := time.Now()
			it, _ := q.Get()
			if it.Key != "a" || it.Refuse || it.Lane != People || it.Cause != Release || time.Since(start) > 0 {
				t.Errorf("%s: handed out as %+v after %v", name, it, time.Since(start))
			}
			q.Done("a", Outcome{})
			if got := q.Stats(); got != (Stats{}) {
				t.Errorf("%s: left behind %+v", name, got)
			}
		})
	}
}

func TestADeferralCountsNoFailureAndKeepsTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(usual)
		q := New[string](Options{Budget: b})
		defer q.Close()
		q.Add("a", Change)
		for range 3 {
			readyAfter(t, q)
			q.Done("a", Outcome{Kind: Backoff})
		}
		readyAfter(t, q)
		for range 5 {
			q.Done("a", Outcome{Kind: Defer, Delay: time.Minute})
			d := readyAfter(t, q)
			within(t, d, 54*time.Second, 66*time.Second)
		}
		q.Done("a", Outcome{Kind: Backoff})
		d := readyAfter(t, q) // the fourth failure
		within(t, d, 8*time.Second*8/10, 8*time.Second+time.Microsecond)

		q.Done("a", Outcome{Kind: Stall})
		q.Add("a", Related)
		it, _ := q.Get()
		enter(t, b, it.Permit)
		q.Done("a", Outcome{Kind: Defer})
		if it, _ = q.Get(); it.Cause != Related || !it.Stalled || it.Lane != People {
			t.Errorf("handed out as %+v", it)
		}
	})
}

func TestAQueueThatClosesLeavesTheLineToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := spent(t, usual)
		first, second := New[string](Options{Budget: b}), New[string](Options{Budget: b})
		first.Add("a", Change)
		second.Add("b", Initial)
		served := make(chan string, 2)
		go work(b, first, served, Healthy, Outcome{})
		go work(b, second, served, Healthy, Outcome{})
		synctest.Wait()
		first.Close()
		if got := <-served; got != "b" {
			t.Errorf("%s went first", got)
		}
		second.Close()
		if b.Stats().Deferred != 0 || len(b.members) != 0 {
			t.Errorf("left behind: %+v", b.Stats())
		}
	})
}

func TestAnAdmissionAllocatesNothing(t *testing.T) {
	b := NewBudget(BudgetOptions{Rate: 1e9, Burst: 1e6, Failures: 5, MinPause: 1, MaxPause: 1})
	q := New[[2]string](Options{Budget: b})
	defer q.Close()
	key := [2]string{"default", "a"}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		q.Add(key, Event)
		it, _ := q.Get()
		if d := b.Enter(ctx, it.Permit, time.Time{}); d != nil {
			t.Fatal(d)
		}
		b.Exit(it.Permit, Healthy, "")
		q.Done(it.Key, Outcome{})
	}); n != 0 {
		t.Fatalf("an admission allocates %v times", n)
	}
}

func BenchmarkAddGetCallDone(b *testing.B) {
	budget := NewBudget(BudgetOptions{Rate: 1e9, Burst: 1e6, Failures: 5, MinPause: 1, MaxPause: 1})
	q := New[int](Options{Budget: budget})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Add(i%1024, Event)
		it, _ := q.Get()
		_ = budget.Enter(b.Context(), it.Permit, time.Time{}) // there are tokens enough
		budget.Exit(it.Permit, Healthy, "")
		q.Done(it.Key, Outcome{})
	}
}
