package contract

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

// Line 1.
func TestAnObjectHasOnePassAtATimeHoweverManyWorkersThereAre(t *testing.T) {
	t.Parallel()
	var at, most atomic.Int32
	gate := make(chan struct{})
	r := rigUp(t, rigging{
		options: tether.Options{Workers: 8},
		reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			if n == 1 {
				select {
				case <-gate:
				case <-ctx.Done():
				}
			}
			return tether.Done, nil
		},
	})
	r.gadget(t, "one", `{"spec":{"size":1}}`)
	r.pass(t, 1, "one")
	for size := 2; size < 5; size++ {
		r.patch(t, "one", fmt.Sprintf(`{"spec":{"size":%d}}`, size))
	}
	stood := r.look(t) // passes of others go on meanwhile
	if got := stood.Queues[0].Running; got != 2 {
		t.Errorf("%d passes run, want the held one and this one", got)
	}
	r.passed(t, 1, "one")
	close(gate)
	if got := r.pass(t, 2, "one").Object.Spec.Size; got != 4 {
		t.Errorf("the pass after it saw size %d, want the newest, 4", got)
	}
	r.hooks.ending(t, 2, "one")
	r.passed(t, 2, "one")
	if most.Load() != 1 {
		t.Errorf("%d passes of one object ran at once", most.Load())
	}
}

// Line 2.
func TestAPassMakesOneDeepCopyAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Count = n
		return tether.Done, nil
	}})
	uid := r.gadget(t, "one", `{"spec":{"size":1}}`).UID
	r.hooks.ending(t, 1, "one")
	r.quiet(t)
	if got := copiesOf(uid).Load(); got != 1 {
		t.Errorf("%d deep copies after the first pass", got)
	}
	r.patch(t, "one", `{"spec":{"size":2}}`)
	r.hooks.ending(t, 2, "one")
	r.quiet(t)
	for g := range r.in.List(r.namespace) {
		if same, ok := r.in.Get(r.key(g.Name)); !ok || same != g {
			t.Errorf("%s: Get and List give different objects", g.Name)
		}
	}
	r.passed(t, 2, "one")
	if got := copiesOf(uid).Load(); got != 2 {
		t.Errorf("%d deep copies after two passes", got)
	}
}

// Line 2.
func TestWhatAPassDoesToItsCopyNobodyElseSees(t *testing.T) {
	t.Parallel()
	gate, edited := make(chan struct{}), make(chan struct{})
	r := rigUp(t, rigging{reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		if n == 1 {
			g.Status.Tags = map[string]string{"a": "b"}
			return tether.Done, nil
		}
		g.Status.Tags["a"], g.Status.Note, g.Spec.Parts[0] = "mine", "mine", "mine"
		close(edited)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		g.Spec.Parts[0] = "wheel"
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{"spec":{"parts":["wheel"]}}`)
	r.hooks.ending(t, 1, "one")
	r.patch(t, "one", `{"spec":{"size":2}}`)
	received(t, edited, "the edit")
	if g, ok := r.in.Get(r.key("one")); !ok || g.Status.Tags["a"] != "b" || g.Status.Note != "" || g.Spec.Parts[0] != "wheel" {
		t.Errorf("the store shows the edit of a pass that runs: %+v", g)
	}
	close(gate)
	if g := r.await(t, "one", "written", func(g *Gadget) bool { return g.Status.Note == "mine" }); g.Status.Tags["a"] != "mine" {
		t.Errorf("written: %+v", g.Status)
	}
}

// Line 3.
func TestAPassSeesWhatThePassBeforeItWroteThoughNoEventHasCome(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Count++
		if n < 5 {
			return tether.After(time.Millisecond), nil
		}
		return tether.Done, nil
	}})
	lift := r.wire.holdEvents(func(e event) bool { return e.Type == "MODIFIED" })
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 5, "one")
	for i, p := range r.of("one") {
		if p.Object.Status.Count != i {
			t.Errorf("pass %d saw what pass %d wrote", p.N, p.Object.Status.Count)
		}
	}
	lift()
	r.await(t, "one", "written five times", func(g *Gadget) bool { return g.Status.Count == 5 })
}

// Line 3.
func TestAnEventThatComesLateDoesNotTurnAnObjectBack(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Count = n
		if n < 3 {
			return tether.After(time.Millisecond), nil
		}
		return tether.Done, nil
	}})
	// Of the three events of its writes the first comes late, and the others never.
	modified := func(e event) bool { return e.Type == "MODIFIED" && e.Name == "one" }
	lift := r.wire.holdEvents(modified)
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 3, "one")
	first := r.wire.came(t, "the event of the first write", modified)
	r.wire.dropEvents(func(e event) bool { return modified(e) && e.Version > first.Version })
	lift()
	r.quiet(t)
	late := fmt.Sprint(first.Version)
	r.arrived.await(t, 1, "the late event", func(a arrival) bool { return a.name == "one" && a.version == late })
	if g, ok := r.in.Get(r.key("one")); !ok || g.Status.Count != 3 {
		t.Errorf("the store shows %+v", g)
	}
	r.passed(t, 3, "one")
}

// Line 5.
func TestAPassIsStartedByNoneOfItsOwnWrites(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
			g.Status.Note = "written"
			return tether.Done, nil
		},
		finalize: done,
	})
	r.gadget(t, "one", `{}`) // the finalizer, then status
	r.hooks.ending(t, 1, "one")
	r.quiet(t)
	r.passed(t, 1, "one")
	if got := r.wire.lines(writes("gadgets")); len(got) < 2 || got[0] != "PATCH gadgets one 200" || got[1] != "PATCH gadgets/status one 200" {
		t.Errorf("written: %v", got)
	}
}

// Line 5.
func TestAnOwnWriteWhoseEventComesBeforeItsAnswerStartsNoPass(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Note = "written"
		return tether.Done, nil
	}})
	answer := r.wire.hold(after, 1, to(http.MethodPatch, "gadgets/status", "one"))
	r.gadget(t, "one", `{}`)
	answer.reached(t)
	r.heard(t) // the event of the write, too
	if g, _ := r.in.Get(r.key("one")); g.Status.Note != "written" {
		t.Error("the event has not come yet")
	}
	answer.release()
	r.hooks.ending(t, 1, "one")
	r.quiet(t)
	r.passed(t, 1, "one")
}

// Line 5.
func TestAForeignChangeThatComesWhileAPassWritesIsNotTakenForItsOwn(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Note = "seen " + g.Labels["by"]
		return tether.Done, nil
	}})
	answer := r.wire.hold(after, 1, to(http.MethodPatch, "gadgets/status", "one"))
	r.gadget(t, "one", `{}`)
	answer.reached(t)
	r.patch(t, "one", `{"metadata":{"labels":{"by":"a-person"}}}`)
	r.heard(t)
	answer.release()
	r.await(t, "one", "seen with the label", func(g *Gadget) bool { return g.Status.Note == "seen a-person" })
	r.hooks.ending(t, 2, "one")
	r.quiet(t)
	r.passed(t, 2, "one")
}

// Line 5.
func TestAStatusThatSomeoneElseChangedIsPutRightInTheLowLane(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Note = "as it is"
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 1, "one")
	r.patch(t, "one", `{"status":{"note":"made up"}}`, "status")
	if lane := r.hooks.ending(t, 2, "one").Lane; lane != "background" {
		t.Errorf("in lane %s", lane)
	}
	if g := r.get(t, "one"); g.Status.Note != "as it is" {
		t.Errorf("status says %q", g.Status.Note)
	}
	r.quiet(t)
	r.passed(t, 2, "one")
}

// Line 6.
func TestAPanicIsAnErrorWithItsStackAndOnlyItsObjectBacksOff(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		options: tether.Options{MinBackoff: time.Hour, MaxBackoff: time.Hour},
		reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
			if g.Spec.Color == "red" {
				panicHere()
			}
			return tether.Done, nil
		},
	})
	r.gadget(t, "bad", `{"spec":{"color":"red"}}`)
	bad := r.hooks.ending(t, 1, "bad")
	if !bad.Panic || bad.Outcome != "error" {
		t.Errorf("the hook heard %+v", bad)
	}
	r.gadget(t, "good", `{}`)
	r.await(t, "good", "ready", ready)
	g := r.await(t, "bad", "told of the panic", is("Ready", metav1.ConditionFalse, "Failed"))
	if c := condition(g, "Ready"); c.Message != "panic: too red" {
		t.Errorf("the condition says %q", c.Message)
	}
	r.log.line(t, "pass panicked", `"error"="panic: too red"`, "panicHere", `"name"="bad"`)
	r.quiet(t)
	r.passed(t, 1, "bad")
	r.patch(t, "bad", `{"spec":{"color":"blue"}}`)
	r.await(t, "bad", "ready", ready)
}

func panicHere() { panic(errors.New("too red")) }

// Line 7.
func TestAPassEndsAtItsDeadlineWhichItsErrorNames(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		options: tether.Options{Timeout: 200 * time.Millisecond, MinBackoff: time.Hour, MaxBackoff: time.Hour},
		reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
			<-ctx.Done()
			g.Status.Note = "written after it"
			return tether.Done, ctx.Err()
		},
	})
	r.gadget(t, "one", `{}`)
	g := r.await(t, "one", "told of the deadline", is("Ready", metav1.ConditionFalse, "Failed"))
	const want = "context deadline exceeded (the pass took longer than it may take, 200ms)"
	if c := condition(g, "Ready"); c.Message != want || g.Status.Note != "written after it" {
		t.Errorf("the condition says %q, the note %q", c.Message, g.Status.Note)
	}
}

// Line 7.
func TestAPassHasADeadlineOfTwoMinutesWhereNobodySaidAnother(t *testing.T) {
	t.Parallel()
	left := make(chan time.Duration, 1)
	r := rigUp(t, rigging{reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		if at, ok := ctx.Deadline(); ok {
			left <- time.Until(at)
		}
		close(left)
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	if got := received(t, left, "the pass"); got < time.Minute || got > 2*time.Minute {
		t.Errorf("%v were left of the deadline", got)
	}
}

// Line 7.
func TestAnEditOutsideStatusHasNoEffectAndIsAnsweredWithItsPath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path string // "": nothing was due, so nobody looked
		edit func(g *Gadget)
	}{
		"labels":                    {"metadata.labels", func(g *Gadget) { g.Labels = map[string]string{"a": "b"} }},
		"finalizers":                {"metadata.finalizers", func(g *Gadget) { g.Finalizers = append(g.Finalizers, "example.com/mine") }},
		"spec beside a status":      {"spec.color", func(g *Gadget) { g.Spec.Color, g.Status.Note = "red", "painted" }},
		"spec alone":                {"spec.color", func(g *Gadget) { g.Spec.Color = "red" }},
		"deep in spec, with status": {"spec.parts", func(g *Gadget) { g.Spec.Parts[0], g.Status.Note = "wing", "built" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
				c.edit(g)
				return tether.Done, nil
			}})
			r.gadget(t, "one", `{"spec":{"color":"blue","parts":["wheel"]}}`)
			g := r.await(t, "one", "stalled", is("Stalled", metav1.ConditionTrue, "EditOutsideStatus"))
			if want := c.path + " was changed in the pass's own copy of the object, which has no effect; change it with a Client"; condition(g, "Stalled").Message != want {
				t.Errorf("the condition says %q", condition(g, "Stalled").Message)
			}
			if g.Labels != nil || g.Finalizers != nil || g.Spec.Color != "blue" || g.Spec.Parts[0] != "wheel" {
				t.Errorf("the edit had an effect: %+v", g)
			}
			r.quiet(t)
			r.passed(t, 1, "one")
		})
	}
}

// Line 5.
func TestAChangeThatAConflictShowedIsHeardThoughItsEventComesTooLate(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := rigUp(t, rigging{reconcile: gated(gate, func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Note = "seen " + g.Labels["by"]
		return tether.Done, nil
	})})
	r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	r.wire.holdEvents(func(e event) bool { return e.Type == "MODIFIED" && e.Name == "one" })
	r.patch(t, "one", `{"metadata":{"labels":{"by":"a-person"}}}`)
	close(gate)
	r.hooks.ending(t, 2, "one")
	if g := r.get(t, "one"); g.Status.Note != "seen a-person" {
		t.Errorf("status says %q", g.Status.Note)
	}
	r.wire.lift()
	r.quiet(t)
	r.passed(t, 2, "one")
}
