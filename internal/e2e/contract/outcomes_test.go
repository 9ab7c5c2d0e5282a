package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

var errSold = errors.New("none is left")

// ends is what an author returns in the passes of an object, one after another;
// after the last it is Done. When each ended is told.
type ends struct {
	of []end
	at record[time.Time]
}

type end struct {
	result tether.Result
	err    error
}

func (e *ends) step(_ context.Context, _ *Gadget, n int) (tether.Result, error) {
	defer func() { e.at.add(time.Now()) }()
	if n > len(e.of) {
		return tether.Done, nil
	}
	return e.of[n-1].result, e.of[n-1].err
}

// wait is how long the n-th pass came after the end of the one before it.
func (e *ends) wait(r *rig, t *testing.T, n int) time.Duration {
	t.Helper()
	return r.pass(t, n, "one").At.Sub(e.at.nth(t, n-1, "the end of the pass before", nil))
}

// never is a backoff that no test waits for.
var never = tether.Options{MinBackoff: time.Hour, MaxBackoff: time.Hour}

func TestDoneIsReadyAndRestsUntilTheNextChange(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done})
	r.gadget(t, "one", `{}`)
	g := r.await(t, "one", "ready", ready)
	if len(g.Status.Conditions) != 1 {
		t.Errorf("conditions %+v", g.Status.Conditions)
	}
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "done" || p.Lane != "people" || p.Controller != "gadget" || p.Panic {
		t.Errorf("the hook heard %+v", p)
	}
	r.quiet(t)
	r.passed(t, 1, "one")
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	r.pass(t, 2, "one")
	r.patch(t, "one", `{"spec":{"size":2}}`)
	r.pass(t, 3, "one")
}

func TestDoneIsLookedAtAgainAtThePoll(t *testing.T) {
	t.Parallel()
	var e ends
	r := rigUp(t, rigging{reconcile: e.step, options: tether.Options{Poll: 400 * time.Millisecond}})
	r.gadget(t, "one", `{}`)
	if wait := e.wait(r, t, 3); wait < 360*time.Millisecond {
		t.Errorf("the second poll came after %v", wait)
	}
	if p := r.hooks.ending(t, 3, "one"); p.Lane != "background" || p.Outcome != "done" {
		t.Errorf("the hook heard %+v", p)
	}
}

func TestAfterComesBackThenAndForgetsFailures(t *testing.T) {
	t.Parallel()
	fails := end{err: errSold}
	e := ends{of: []end{fails, fails, fails, fails, fails, {result: tether.After(500 * time.Millisecond)}, fails}}
	r := rigUp(t, rigging{reconcile: e.step, options: tether.Options{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Hour}})
	r.gadget(t, "one", `{}`)
	if wait := e.wait(r, t, 7); wait < 450*time.Millisecond {
		t.Errorf("After(500ms) came back after %v", wait)
	}
	if p := r.hooks.ending(t, 6, "one"); p.Outcome != "after" {
		t.Errorf("the hook heard %+v", p)
	}
	// With five failures before it, this backoff would be 2.56 s at the least.
	if wait := e.wait(r, t, 8); wait > 2*time.Second {
		t.Errorf("the first failure after it was waited for %v", wait)
	}
}

func TestBackoffIsNoErrorAndItsWaitsGrow(t *testing.T) {
	t.Parallel()
	b := end{result: tether.Backoff("Assembling", "wheel 3 of 4")}
	e := ends{of: []end{b, b, b}}
	r := rigUp(t, rigging{reconcile: e.step, options: tether.Options{MinBackoff: 200 * time.Millisecond}})
	r.gadget(t, "one", `{}`)
	g := r.await(t, "one", "on its way", is("Reconciling", metav1.ConditionTrue, "Assembling"))
	if c := condition(g, "Ready"); c.Status != metav1.ConditionUnknown || c.Reason != "Assembling" || c.Message != "wheel 3 of 4" {
		t.Errorf("Ready is %+v", c)
	}
	for n, least := range map[int]time.Duration{2: 160, 3: 320, 4: 640} {
		if wait := e.wait(r, t, n); wait < least*time.Millisecond {
			t.Errorf("pass %d came after %v", n, wait)
		}
	}
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "backoff" || p.Reason != "Assembling" {
		t.Errorf("the hook heard %+v", p)
	}
	if p := r.hooks.ending(t, 2, "one"); p.Lane != "retry" {
		t.Errorf("the retry was in lane %s", p.Lane)
	}
	if g := r.await(t, "one", "ready", ready); condition(g, "Reconciling") != nil {
		t.Errorf("Done leaves %+v", g.Status.Conditions)
	}
	if lines := r.log.errors(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}

func TestAnErrorIsToldOnceAndBacksOff(t *testing.T) {
	t.Parallel()
	e := ends{of: []end{{err: errSold}, {err: fmt.Errorf("again: %w", errSold)}}}
	r := rigUp(t, rigging{reconcile: e.step, options: tether.Options{MinBackoff: 300 * time.Millisecond}})
	r.gadget(t, "one", `{}`)
	if wait := e.wait(r, t, 3); wait < 480*time.Millisecond {
		t.Errorf("the second retry came after %v", wait)
	}
	r.hooks.ending(t, 3, "one")
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "error" || p.Reason != "Failed" {
		t.Errorf("the hook heard %+v", p)
	}
	var told Gadget // what the first pass wrote
	if err := json.Unmarshal([]byte(r.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one")))[0].Body), &told); err != nil {
		t.Fatal(err)
	}
	if c := condition(&told, "Ready"); c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Failed" || c.Message != "none is left" || condition(&told, "Reconciling") == nil {
		t.Errorf("the first pass wrote %+v", told.Status.Conditions)
	}
	lines := r.log.errors()
	if len(lines) != 2 || !having("pass failed", `"error"="none is left"`, `"controller"="gadget"`, `"namespace"="`+r.namespace+`"`, `"name"="one"`, `"generation"=1`, `"pass"=`)(lines[0]) {
		t.Errorf("logged as errors: %q", lines)
	}
	if ended := r.log.all(having("pass ended", `"level"=1`, `"name"="one"`)); len(ended) != 3 {
		t.Errorf("three passes gave %d lines at V(1)", len(ended))
	}
}

func TestRetryAfterWaitsWhateverHappens(t *testing.T) {
	t.Parallel()
	const word = 5 * time.Second // the changes below come within it, also on a busy machine
	e := ends{of: []end{{result: tether.After(0), err: tether.RetryAfter(errSold, word)}}}
	r := rigUp(t, rigging{reconcile: e.step, options: tether.Options{MinBackoff: time.Millisecond}})
	r.gadget(t, "one", `{}`)
	g := r.await(t, "one", "told of the error", is("Reconciling", metav1.ConditionTrue, "Failed"))
	if c := condition(g, "Ready"); c.Status != metav1.ConditionFalse || c.Message != "none is left; nothing is tried for 5s, as the server asks, whatever changes" {
		t.Errorf("Ready is %+v", c)
	}
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"},"annotations":{"shop.example.com/reconcile-at":"now"}}}`)
	r.patch(t, "one", `{"spec":{"size":2}}`)
	if wait := e.wait(r, t, 2); wait < word {
		t.Errorf("the next pass came after %v", wait)
	}
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "retry_after" {
		t.Errorf("the hook heard %+v", p)
	}
	if g := r.pass(t, 2, "one").Object; g.Spec.Size != 2 {
		t.Errorf("it saw size %d", g.Spec.Size)
	}
	r.quiet(t)
	r.passed(t, 2, "one")
}

func TestOnlyOrphaningDoesNotWaitForARetryAfter(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		reconcile: func(context.Context, *Gadget, int) (tether.Result, error) {
			return tether.Done, tether.RetryAfter(errSold, time.Hour)
		},
		finalize: done,
	})
	uid := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	r.quiet(t)
	r.passed(t, 1, "one")
	r.patch(t, "one", `{"metadata":{"annotations":{"shop.example.com/orphan":"true"}}}`)
	r.awaitGone(t, uid, "one")
	r.passed(t, 1, "one")
}

func TestATerminalErrorStallsUntilWhatMayHelpChanges(t *testing.T) {
	t.Parallel()
	s := setup(t)
	material := tether.NewInformer(parts, s.here())
	terminal := end{err: tether.Terminal(tether.Reason("SoldOut", errSold))}
	e := ends{of: []end{terminal, terminal, terminal, terminal}}
	r := rigOn(t, s, rigging{reconcile: e.step, options: tether.Options{
		MinBackoff: time.Millisecond,
		Watches:    []tether.Watch{tether.Watches(material, ofGadget)},
	}})
	r.gadget(t, "one", `{}`)
	g := r.await(t, "one", "stalled", is("Stalled", metav1.ConditionTrue, "SoldOut"))
	if c := condition(g, "Ready"); c.Status != metav1.ConditionFalse || c.Reason != "SoldOut" || c.Message != "none is left" || condition(g, "Reconciling") != nil {
		t.Errorf("conditions %+v", g.Status.Conditions)
	}
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "terminal" || p.Reason != "SoldOut" {
		t.Errorf("the hook heard %+v", p)
	}
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"},"annotations":{"example.com/note":"x"}}}`)
	r.patch(t, "one", `{"status":{"note":"made up"}}`, "status")
	r.quiet(t)
	r.passed(t, 1, "one")

	for n, change := range []func(){
		2: func() { r.patch(t, "one", `{"spec":{"size":2}}`) },
		3: func() { r.make(t, served("parts"), "Part", "wheel", `{"spec":{"for":"one"}}`) },
		4: func() {
			r.patch(t, "one", `{"metadata":{"annotations":{"shop.example.com/reconcile-at":"once more"}}}`)
		},
	} {
		if change == nil {
			continue
		}
		change()
		r.pass(t, n, "one")
		r.quiet(t)
		r.passed(t, n, "one")
	}
	if lines := r.log.errors(); len(lines) > 0 {
		t.Errorf("logged as errors, though only a person can help: %q", lines)
	}
}

func TestAStalledObjectIsNotPolled(t *testing.T) {
	t.Parallel()
	const poll = 200 * time.Millisecond
	r := rigUp(t, rigging{options: tether.Options{Poll: poll}, reconcile: func(_ context.Context, g *Gadget, _ int) (tether.Result, error) {
		if g.Name == "one" {
			return tether.Done, tether.Terminal(errSold)
		}
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 1, "one")
	r.gadget(t, "clock", `{}`)
	r.pass(t, 4, "clock") // longer than any poll of the other one
	r.passed(t, 1, "one")
}

// ofGadget names the Gadget that a Part is for.
func ofGadget(p *Part) iter.Seq[tether.Key] {
	if p.Spec.For == "" {
		return nil
	}
	return slices.Values([]tether.Key{{Namespace: p.Namespace, Name: p.Spec.For}})
}

func TestAnErrorWinsOverAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"plain":    {errSold, "error"},
		"terminal": {tether.Terminal(errSold), "terminal"},
	} {
		for _, result := range []tether.Result{tether.After(0), tether.Backoff("Assembling", "")} {
			t.Run(name+" over "+result.String(), func(t *testing.T) {
				t.Parallel()
				e := ends{of: []end{{result, c.err}}}
				r := rigUp(t, rigging{reconcile: e.step, options: never})
				r.gadget(t, "one", `{}`)
				if p := r.hooks.ending(t, 1, "one"); p.Outcome != c.want {
					t.Errorf("the hook heard %+v", p)
				}
				r.quiet(t)
				r.passed(t, 1, "one")
			})
		}
	}
}

func TestAnEventDuringABackoffWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	e := ends{of: []end{{err: errSold}}}
	r := rigUp(t, rigging{reconcile: e.step, options: tether.Options{MinBackoff: 5 * time.Second}})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 1, "one")
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	if wait := e.wait(r, t, 2); wait < 4*time.Second {
		t.Errorf("the retry came after %v", wait)
	}
	r.quiet(t)
	r.passed(t, 2, "one") // which saw the label: no pass is owed for it
	if got := r.of("one")[1].Object.Labels["a"]; got != "b" {
		t.Errorf("the retry saw label %q", got)
	}
}

func TestANewGenerationEndsABackoffAndResetsIt(t *testing.T) {
	t.Parallel()
	e := ends{of: []end{{err: errSold}, {err: errSold}}}
	r := rigUp(t, rigging{reconcile: e.step, options: never})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 1, "one")
	for n := 2; n < 4; n++ {
		r.patch(t, "one", fmt.Sprintf(`{"spec":{"size":%d}}`, n))
		if p := r.hooks.ending(t, n, "one"); p.Lane != "people" {
			t.Errorf("it came in lane %s", p.Lane)
		}
	}
	r.await(t, "one", "ready", ready)
}

func TestADeletionEndsABackoff(t *testing.T) {
	t.Parallel()
	e := ends{of: []end{{err: errSold}}}
	r := rigUp(t, rigging{reconcile: e.step, finalize: done, options: never})
	uid := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	r.awaitGone(t, uid, "one")
}

func TestTwoWritersThatFlapASpecMakeNoHotLoop(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done})
	r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	for n := 2; n <= 8; n++ {
		r.patch(t, "one", fmt.Sprintf(`{"spec":{"size":%d}}`, n))
		r.pass(t, n, "one")
	}
	// Five at once, and then one a second: the eighth not before the third second.
	all := r.of("one")
	if took := all[7].At.Sub(all[0].At); took < 2900*time.Millisecond {
		t.Errorf("eight changes ran within %v", took)
	}
}

func TestTwoErrorsThatDifferInARequestIDAloneAreWrittenOnce(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		options: tether.Options{MinBackoff: 10 * time.Millisecond},
		reconcile: func(_ context.Context, _ *Gadget, n int) (tether.Result, error) {
			if n > 3 {
				return tether.Done, errors.New("something else")
			}
			return tether.Done, fmt.Errorf("no seat at 10.0.0.%d:%d, request id: %x", n, 1000+n, n*7919)
		},
	})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 3, "one")
	if got := r.wire.lines(to(http.MethodPatch, "gadgets/status", "one")); len(got) < 1 || len(got) > 2 {
		t.Errorf("three such errors were written as %v", got)
	}
	r.await(t, "one", "told of another error", func(g *Gadget) bool {
		c := condition(g, "Ready")
		return c != nil && c.Message == "something else"
	})
	first := r.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one")))[0]
	if !strings.Contains(first.Body, "10.0.0.1:1001") {
		t.Errorf("the first wording is gone: %s", first.Body)
	}
}

func TestReasonIsTheConditionsWhateverWrapsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want func(*Gadget) bool
	}{
		"error":              {tether.Reason("NoSeat", errSold), is("Ready", metav1.ConditionFalse, "NoSeat")},
		"wrapped by another": {fmt.Errorf("booking: %w", tether.Reason("NoSeat", errSold)), is("Reconciling", metav1.ConditionTrue, "NoSeat")},
		"within terminal":    {tether.Terminal(tether.Reason("NoSeat", errSold)), is("Stalled", metav1.ConditionTrue, "NoSeat")},
		"around terminal":    {tether.Reason("NoSeat", tether.Terminal(errSold)), is("Stalled", metav1.ConditionTrue, "NoSeat")},
		"none of terminal":   {tether.Terminal(errSold), is("Stalled", metav1.ConditionTrue, "Rejected")},
		"around retry after": {tether.Reason("NoSeat", tether.RetryAfter(errSold, time.Hour)), is("Ready", metav1.ConditionFalse, "NoSeat")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := ends{of: []end{{err: c.err}}}
			r := rigUp(t, rigging{reconcile: e.step, options: never})
			r.gadget(t, "one", `{}`)
			r.await(t, "one", "told the reason", c.want)
		})
	}
}
