package tether

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/queue"
)

// withinBudget fails the test where in any time more calls were made than the
// budget allows.
func withinBudget(t *testing.T, calls []visit, rate float64, burst int) {
	t.Helper()
	for i := range calls {
		for j := i; j < len(calls); j++ {
			span := calls[j].at.Sub(calls[i].at)
			if n := j - i + 1; float64(n) > float64(burst)+rate*span.Seconds()+1e-6 {
				t.Fatalf("%d calls within %v, with a burst of %d and %v a second", n, span, burst, rate)
			}
		}
	}
}

func TestTwoControllersTogetherMakeNoMoreCallsThanTheirBudget(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Rate: 2, Burst: 5}, Options{Workers: 3, Poll: time.Minute}, func(ctx context.Context, t *testing.T, s *stage) {
		s.warehouse.mu.Lock()
		s.each = 3
		s.warehouse.mu.Unlock()
		begin := time.Now()
		for i := range 40 {
			s.put(ctx, "box", fmt.Sprint("box", i))
			s.put(ctx, "shelf", fmt.Sprint("shelf", i))
		}
		time.Sleep(10 * time.Minute)
		calls := s.since(begin)
		withinBudget(t, calls, 2, 5)
		if len(calls) < 1150 {
			t.Errorf("%d calls in ten minutes, want nearly all that the budget allows", len(calls))
		}
		by := map[string]int{}
		for _, v := range calls {
			by[v.name]++
		}
		if len(by) != 80 {
			t.Errorf("%d of 80 objects were called for", len(by))
		}

		changed := time.Now()
		s.patch(ctx, "shelf7", `{"spec":{"a":"b"}}`)
		s.patch(ctx, "box7", `{"spec":{"a":"b"}}`)
		time.Sleep(10 * time.Second)
		met := map[string]bool{}
		for _, v := range s.since(changed) {
			met[v.name] = true
		}
		if !met["shelf7"] || !met["box7"] {
			t.Errorf("what a person changed waited behind polls: %v", met)
		}
	})
}

func TestAnOutageDefersTellsAndEndsByItself(t *testing.T) {
	t.Parallel()
	o := BudgetOptions{Name: "warehouse", Rate: 10, Burst: 10, Failures: 5, MaxPause: time.Minute}
	staged(t, o, Options{Poll: 5 * time.Minute}, func(ctx context.Context, t *testing.T, s *stage) {
		for i := range 60 {
			s.put(ctx, "box", fmt.Sprint("box", i))
			s.put(ctx, "shelf", fmt.Sprint("shelf", i))
		}
		time.Sleep(10 * time.Minute)
		s.becomes(away)
		began := time.Now()
		time.Sleep(time.Hour)
		if got := s.budgetNow(); got.Breaker == "closed" || got.Deferred < 100 {
			t.Errorf("an hour into the outage: %+v", got)
		}
		outage := time.Now()
		s.put(ctx, "box", "new")
		s.patch(ctx, "box4", `{"spec":{"a":"b"}}`)
		s.patch(ctx, "box1", `{"metadata":{"annotations":{"example.com/orphan":"true"}}}`)
		for i := 10; i < 60; i++ {
			s.patch(ctx, fmt.Sprint("box", i), `{"metadata":{"labels":{"a":"b"}}}`)
		}
		for _, name := range []string{"box1", "box2"} {
			if err := s.things.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if _, err := s.things.Get(ctx, "box1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an orphaned box waits for the endpoint: %v", err)
		}
		for _, name := range []string{"new", "box4", "box2"} {
			if c := findCondition(s.get(ctx, name).Status.Conditions, conditionReconciling); c == nil || c.Reason != reasonEndpointUnavailable || !strings.Contains(c.Message, "since 2000-01-01T00:1") {
				t.Errorf("%s does not say that it waits: %+v", name, c)
			}
		}
		if finalizers := s.get(ctx, "new").Finalizers; len(finalizers) > 0 {
			t.Errorf("what was not begun is claimed: %v", finalizers)
		}
		tried := map[string]bool{}
		for _, v := range s.since(began) {
			tried[v.name] = true
		}
		for i := 10; i < 60; i++ { // of which nobody has changed the spec
			name := fmt.Sprint("box", i)
			if c := findCondition(s.get(ctx, name).Status.Conditions, conditionReady); !tried[name] && c.Status != metav1.ConditionTrue {
				t.Errorf("%s, which was only deferred, says %+v", name, c)
			}
		}
		if len(tried) > 60 {
			t.Errorf("%d objects of 120 were tried in an hour of outage", len(tried))
		}
		time.Sleep(time.Hour)
		if n := len(s.since(outage)); n < 58 || n > 80 {
			t.Errorf("%d calls in an hour of outage, want one a minute, and a fifth more for the jitter", n)
		}
		if opened := s.said("does not answer"); opened != 1 {
			t.Errorf("the log says %d times that the endpoint does not answer", opened)
		}

		back := time.Now()
		s.becomes(well)
		time.Sleep(time.Minute)
		if n := len(s.since(back)); n > 10*60+10 {
			t.Errorf("%d calls in the first minute", n)
		}
		time.Sleep(10 * time.Minute)
		withinBudget(t, s.since(back), 10, 10)
		for _, name := range []string{"new", "box3", "box4"} {
			is := s.get(ctx, name)
			if c := findCondition(is.Status.Conditions, conditionReady); c == nil || c.Status != metav1.ConditionTrue || is.Status.ObservedGeneration != is.Generation {
				t.Errorf("%s after the return: %+v", name, is.Status)
			}
		}
		if _, err := s.things.Get(ctx, "box2", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a deleted box stays: %v", err)
		}
		if n := s.standing(); n != 60 { // of 61, without the one that was deleted, and with the orphan
			t.Errorf("%d boxes stand, want 60", n)
		}
		if got := s.budgetNow(); got.Breaker != "closed" || got.Deferred != 0 || s.said("answers again") != 1 {
			t.Errorf("after the return: %+v, log %q", got, s.log)
		}
	})
}

func TestWhatWasLeftWithoutItsFinalizerInAnOutageIsEndedAfterIt(t *testing.T) {
	t.Parallel()
	o := BudgetOptions{Name: "warehouse", Failures: 2, MinPause: time.Hour, MaxPause: time.Hour}
	staged(t, o, Options{Poll: 24 * time.Hour, Workers: 1}, func(ctx context.Context, t *testing.T, s *stage) {
		for _, name := range []string{"a", "b", "c"} {
			s.put(ctx, "box", name)
		}
		time.Sleep(time.Minute)
		s.becomes(func(name string) error {
			if name == "b" {
				time.Sleep(10 * time.Second)
			}
			return away(name)
		})
		s.patch(ctx, "a", `{"spec":{"a":"b"}}`)
		s.patch(ctx, "b", `{"spec":{"a":"b"}}`)
		time.Sleep(time.Second) // b's call has the worker, and will be the second without an answer
		if err := s.things.Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.patch(ctx, "c", `{"metadata":{"finalizers":null}}`)
		time.Sleep(time.Minute)
		if got := s.budgetNow(); got.Breaker != "open" || s.standing() != 3 {
			t.Errorf("in the outage: %+v, and %d boxes stand", got, s.standing())
		}
		s.becomes(well)
		time.Sleep(2 * time.Hour)
		if n := s.standing(); n != 2 {
			t.Errorf("%d boxes stand, want 2", n)
		}
	})
}

func TestAPassWhoseNextCallIsRefusedIsDeferred(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Failures: 2, MinPause: time.Minute}, Options{}, func(ctx context.Context, t *testing.T, s *stage) {
		s.put(ctx, "box", "a")
		time.Sleep(time.Second)
		s.becomes(func(string) error { // while it looks, two others get no answer
			for _, who := range []string{"x", "y"} {
				s.budget.inner.Exit(&queue.Permit{}, queue.Failed, who)
			}
			return nil
		})
		if err := s.things.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.becomes(well)
		if c := findCondition(s.get(ctx, "a").Status.Conditions, conditionReconciling); c == nil || c.Reason != reasonEndpointUnavailable || s.standing() != 1 {
			t.Errorf("a pass that may not go on says %+v", c)
		}
		time.Sleep(2 * time.Minute) // the pause, and what the lowest rate has a call wait after it
		if n := s.standing(); n != 0 {
			t.Error("it does not go on when the endpoint is tried")
		}
	})
}

func TestAReconcilerWhoseNextCallIsRefusedIsDeferredAndHasNotFailed(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Failures: 2, MinPause: time.Minute}, Options{}, func(ctx context.Context, t *testing.T, s *stage) {
		s.warehouse.mu.Lock()
		s.each = 2
		s.warehouse.mu.Unlock()
		s.becomes(func(string) error {
			for _, who := range []string{"x", "y"} {
				s.budget.inner.Exit(&queue.Permit{}, queue.Failed, who)
			}
			return nil
		})
		s.put(ctx, "shelf", "a")
		time.Sleep(time.Second)
		s.becomes(well)
		time.Sleep(2 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if d := cmp.Diff([]string{"deferred", "done"}, slices.Compact(s.outcomes)); d != "" {
			t.Errorf("passes (-want +got):\n%s", d)
		}
	})
}

func TestARetryAfterOfAReconcilerThatDoesNotUseDoSlowsToo(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Rate: 16}, Options{}, func(ctx context.Context, t *testing.T, s *stage) {
		s.warehouse.mu.Lock()
		s.each = 0
		s.warehouse.mu.Unlock()
		s.becomes(func(string) error { return RetryAfter(errors.New("429"), time.Hour) })
		s.put(ctx, "shelf", "a")
		time.Sleep(time.Second)
		if got := s.budgetNow(); got.Rate != 8 || got.Breaker != "closed" {
			t.Errorf("after one 429: %+v", got)
		}
	})
}

func TestAPassOfAReconcilerThatDoesNotUseDoIsOneCall(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Rate: 1, Burst: 2}, Options{}, func(ctx context.Context, t *testing.T, s *stage) {
		s.warehouse.mu.Lock()
		s.each = 0
		s.warehouse.mu.Unlock()
		for i := range 10 {
			s.put(ctx, "shelf", fmt.Sprint("shelf", i))
		}
		time.Sleep(time.Minute)
		calls := s.since(time.Time{})
		withinBudget(t, calls, 1, 2)
		if len(calls) != 10 {
			t.Errorf("%d calls for ten objects", len(calls))
		}
	})
}

func TestAStopWaitsForNoBudget(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Rate: 0.05, Burst: 2}, Options{}, func(ctx context.Context, t *testing.T, s *stage) {
		s.warehouse.mu.Lock()
		s.each = 3
		s.warehouse.mu.Unlock()
		for i := range 10 {
			s.put(ctx, "shelf", fmt.Sprint("shelf", i))
			s.put(ctx, "box", fmt.Sprint("box", i))
		}
		time.Sleep(3 * time.Second)
		if got := s.budgetNow(); got.Deferred == 0 {
			t.Errorf("nothing waits: %+v", got)
		}
		begin := time.Now()
		s.program.Stop()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestA429OfOneObjectHoldsUpNoOtherAndManySlowAll(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse", Rate: 16, Burst: 16}, Options{Workers: 8}, func(ctx context.Context, t *testing.T, s *stage) {
		s.becomes(func(name string) error {
			if name == "limited" {
				return NoEffect(RetryAfter(errors.New("429"), time.Hour))
			}
			return nil
		})
		s.put(ctx, "box", "limited")
		s.put(ctx, "shelf", "other")
		time.Sleep(time.Second)
		if got := s.budgetNow(); got.Rate >= 16 || got.Rate < 8 {
			t.Errorf("after one 429: %+v", got)
		}
		if n := len(s.since(time.Time{})); n != 2 {
			t.Errorf("%d calls, want one for each object", n)
		}

		s.becomes(func(string) error { return NoEffect(RetryAfter(errors.New("429"), time.Second)) })
		for i := range 100 {
			s.put(ctx, "shelf", fmt.Sprint("shelf", i))
		}
		storm := time.Now()
		time.Sleep(time.Minute)
		if n := len(s.since(storm)); n > 90 {
			t.Errorf("%d calls in a minute of refusals, want far fewer than 960", n)
		}
		if got := s.budgetNow(); got.Rate != 0.5 || got.Breaker != "closed" {
			t.Errorf("in the storm: %+v", got)
		}
		s.becomes(well)
		calm := time.Now()
		time.Sleep(10 * time.Minute)
		by := map[string]bool{}
		for _, v := range s.since(calm) {
			by[v.name] = true
		}
		if len(by) != 100 || s.said("fewer calls") < 1 {
			t.Errorf("%d of 100 were called for after the storm", len(by))
		}
	})
}

func TestOneObjectThatAlwaysFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	staged(t, BudgetOptions{Name: "warehouse"}, Options{MaxBackoff: 10 * time.Second}, func(ctx context.Context, t *testing.T, s *stage) {
		s.becomes(func(name string) error {
			if name == "bad" {
				return errors.New("500")
			}
			return nil
		})
		s.put(ctx, "box", "bad")
		time.Sleep(10 * time.Minute)
		begin := time.Now()
		s.put(ctx, "box", "good")
		time.Sleep(100 * time.Millisecond)
		if n := len(s.since(begin)); n == 0 || s.budgetNow().Breaker != "closed" {
			t.Errorf("%d calls, and the breaker is %s", n, s.budgetNow().Breaker)
		}
	})
}

func TestWhatAnErrorTellsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	x := errors.New("x")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name string
		ctx  context.Context //nolint:containedctx // a case
		read bool
		err  error
		want queue.Answer
	}{
		{"nil", nil, false, nil, queue.Healthy},
		{"unknown", nil, false, x, queue.Failed},
		{"refused", nil, false, Terminal(x), queue.Healthy},
		{"no effect", nil, false, NoEffect(x), queue.Healthy},
		{"a read that failed", nil, true, NoEffect(x), queue.Failed},
		{"a read that was answered", nil, true, NoEffect(Reason("Unauthorized", x)), queue.Healthy},
		{"not sent", nil, false, NoEffect(Reason("Unreachable", x)), queue.Failed},
		{"503", nil, false, Reason("Unavailable", x), queue.Failed},
		{"503 with a time", nil, false, RetryAfter(Reason("Unavailable", x), time.Minute), queue.FewerToo},
		{"429", nil, false, NoEffect(Reason("RateLimited", x)), queue.TooMany},
		{"429 with a time", nil, true, NoEffect(RetryAfter(x, time.Minute)), queue.TooMany},
		{"a panic", nil, false, &panicError{value: "x"}, queue.NoWord},
		{"a stop", stopped, false, x, queue.NoWord},
	} {
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		if got := answerOf(c.ctx, c.read, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestDoOutsideOfAPassWaitsAndSaysWhatWasNotDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(BudgetOptions{Rate: 1, Burst: 1, Failures: 2})
		start := time.Now()
		for range 3 {
			if err := b.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 2*time.Second || took > 2*time.Second+time.Millisecond {
			t.Errorf("three calls took %v, want two seconds", took)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		err := b.Do(short, func(context.Context) error { t.Error("it was called"); return nil })
		if o := outcomeOf(err); !o.noEffect || o.terminal || time.Since(start) != 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		if err := (*Budget)(nil).Do(t.Context(), func(context.Context) error { return err }); err == nil {
			t.Error("a nil Budget makes no call")
		}
	})
}

func TestABudgetsDefaultsAreThoseThatAreDocumented(t *testing.T) {
	t.Parallel()
	want := BudgetOptions{Rate: 10, Burst: 10, Failures: 5, MinPause: time.Second, MaxPause: time.Minute}
	if d := cmp.Diff(want, NewBudget(BudgetOptions{}).opts); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for rate, burst := range map[float64]int{0.1: 1, 1: 1, 2.5: 2, 100: 100} {
		if got := NewBudget(BudgetOptions{Rate: rate}).opts.Burst; got != burst {
			t.Errorf("%v a second: a burst of %d, want %d", rate, got, burst)
		}
	}
}
