package contract

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

const ourFinalizer = "shop.example.com/gadget"

func lasts(g *Gadget) bool { return slices.Contains(g.Finalizers, ourFinalizer) }

// Line 10.
func TestTheFinalizerIsOnTheObjectBeforeTheFirstReconcile(t *testing.T) {
	t.Parallel()
	stored := make(chan *Gadget, 1)
	var r *rig
	r = rigUp(t, rigging{finalize: done, reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		stored <- r.get(t, "one")
		return tether.Done, nil
	}})
	v := r.gadget(t, "one", `{"metadata":{"finalizers":["example.com/of-another"]}}`).ResourceVersion
	if g := received(t, stored, "the first Reconcile"); !lasts(g) || !slices.Contains(g.Finalizers, "example.com/of-another") {
		t.Errorf("the API server has %v", g.Finalizers)
	}
	if g := r.pass(t, 1, "one").Object; !lasts(g) {
		t.Errorf("the reconciler was given %v", g.Finalizers)
	}
	first := r.wire.log.all(ended(writes("gadgets")))[0]
	if !strings.Contains(first.Body, fmt.Sprintf(`"resourceVersion":%q`, v)) {
		t.Errorf("the write is not guarded: %s", first.Body)
	}
}

// Line 10.
func TestNothingIsReconciledBeforeTheFinalizerIsStored(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done, finalize: done, options: tether.Options{MinBackoff: time.Millisecond}})
	r.wire.refuse(1, http.StatusInternalServerError, to(http.MethodPatch, "gadgets", "one"))
	r.wire.lose(before, 1, to(http.MethodPatch, "gadgets", "one"))
	r.gadget(t, "one", `{}`)
	r.await(t, "one", "ready", ready)
	r.passed(t, 1, "one")
	if g := r.pass(t, 1, "one").Object; !lasts(g) {
		t.Errorf("the reconciler was given %v", g.Finalizers)
	}
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "error" || p.Reason != "WriteFailed" {
		t.Errorf("the first pass ended in %+v", p)
	}
}

// Line 10.
func TestTheFinalizerGoesOnlyAfterFinalizeReturnedDone(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := rigUp(t, rigging{
		reconcile: done,
		options:   tether.Options{MinBackoff: time.Millisecond},
		finalize: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
			switch n { // of the object's passes: the first was Reconcile
			case 2:
				return tether.Done, errSold
			case 3:
				return tether.Backoff("Dismantling", "a wheel is left"), nil
			case 4:
				return tether.After(time.Millisecond), nil
			}
			select {
			case <-gate:
			case <-ctx.Done():
			}
			g.Status.Note = "which nobody will read"
			return tether.Done, nil
		},
	})
	uid := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	r.pass(t, 5, "one")
	if g := r.get(t, "one"); !lasts(g) || g.DeletionTimestamp == nil {
		t.Errorf("before Done the finalizers are %v", g.Finalizers)
	}
	already := len(r.wire.lines(requestsTo("gadgets")))
	r.patch(t, "one", `{"metadata":{"labels":{"by":"a-person"}}}`) // a conflict for the release
	// What this process has released it does not need to be told.
	r.wire.dropEvents(func(e event) bool { return e.Name == "one" && e.Type == "DELETED" })
	close(gate)
	r.awaitGone(t, uid, "one")
	r.hooks.ending(t, 5, "one")
	want := []string{"PATCH gadgets one 409", "GET gadgets one 200", "PATCH gadgets one 200"} // and no status
	if diff := cmp.Diff(want, r.wire.lines(requestsTo("gadgets"))[already:]); diff != "" {
		t.Errorf("requests after Done (-want +got):\n%s", diff)
	}
	r.quiet(t)
	r.passed(t, 5, "one")
	for _, p := range r.of("one") {
		if p.Final != (p.N > 1) {
			t.Errorf("pass %d: Finalize %v", p.N, p.Final)
		}
	}
}

// Line 10.
func TestAnObjectThatIsBeingDeletedWithoutOurFinalizerIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, finalize := range map[string]step{"a Finalizer": done, "no Finalizer": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.gadget(t, "going", `{"metadata":{"finalizers":["example.com/of-another"]}}`)
			s.remove(t, "going")
			r := rigOn(t, s, rigging{reconcile: done, finalize: finalize})
			r.look(t) // the initial list comes after it
			r.patch(t, "going", `{"metadata":{"labels":{"a":"b"}}}`)
			r.look(t)
			r.quiet(t)
			r.passed(t, 0, "going")
			if got := r.wire.lines(func(q request) bool { return q.Name == "going" }); len(got) > 0 {
				t.Errorf("requests: %v", got)
			}
		})
	}
}

// Line 11.
func TestADeletionThatIsStuckSaysWhyAndTheOrphanAnnotationIsItsExit(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		reconcile: done,
		finalize: func(context.Context, *Gadget, int) (tether.Result, error) {
			return tether.Done, tether.Terminal(tether.Reason("Rusted", errors.New("the wheels do not come off")))
		},
	})
	uid := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	g := r.await(t, "one", "stalled", is("Stalled", metav1.ConditionTrue, "Rusted"))
	if got := condition(g, "Stalled").Message; got != "the wheels do not come off" {
		t.Errorf("it says %q", got)
	}
	r.patch(t, "one", `{"metadata":{"annotations":{"shop.example.com/orphan":"true"}}}`)
	r.awaitGone(t, uid, "one")
	r.awaitEvents(t, 1, "one", "Orphaned")
	r.passed(t, 2, "one")
}

// Line 11.
func TestAPausedObjectIsNotReconciledAndItsDeletionWaitsAndSaysSo(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done, finalize: done})
	r.gadget(t, "new", `{"metadata":{"annotations":{"shop.example.com/paused":"true"}}}`)
	g := r.await(t, "new", "paused", is("Reconciling", metav1.ConditionTrue, "Paused"))
	if lasts(g) || condition(g, "Ready").Status != metav1.ConditionUnknown {
		t.Errorf("finalizers %v, conditions %+v", g.Finalizers, g.Status.Conditions)
	}
	r.quiet(t)
	r.passed(t, 0, "new")
	r.patch(t, "new", `{"metadata":{"annotations":{"shop.example.com/paused":null}}}`)
	g = r.await(t, "new", "ready", ready)
	uid := g.UID

	r.patch(t, "new", `{"metadata":{"annotations":{"shop.example.com/paused":"true"}}}`)
	r.remove(t, "new")
	r.await(t, "new", "waiting", func(g *Gadget) bool {
		c := condition(g, "Reconciling")
		return c != nil && c.Message == "paused by annotation shop.example.com/paused; the deletion waits until it is taken off"
	})
	r.quiet(t)
	r.passed(t, 1, "new")
	r.patch(t, "new", `{"metadata":{"annotations":{"shop.example.com/paused":null}}}`)
	r.awaitGone(t, uid, "new")
	r.passed(t, 2, "new")
}

func TestAnAnnotationThatCannotBeReadIsNamedAndNothingIsGuessed(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done})
	r.gadget(t, "one", `{"metadata":{"annotations":{"shop.example.com/paused":"yes please"}}}`)
	g := r.await(t, "one", "stalled", is("Stalled", metav1.ConditionTrue, "InvalidAnnotation"))
	if got := condition(g, "Stalled").Message; got != `annotation shop.example.com/paused is "yes please"; set it to "true", or take it off` {
		t.Errorf("it says %q", got)
	}
	r.passed(t, 0, "one")
	r.patch(t, "one", `{"metadata":{"annotations":{"shop.example.com/paused":null}}}`)
	r.await(t, "one", "ready", ready)
}

// Line 10.
func TestAReleaseWhoseAnswerIsLostIsFoundDone(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done, finalize: done, options: tether.Options{MinBackoff: time.Millisecond}})
	uid := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.wire.lose(after, 1, to(http.MethodPatch, "gadgets", "one"))
	r.remove(t, "one")
	r.awaitGone(t, uid, "one")
	r.hooks.ending(t, 2, "one")
	r.quiet(t)
}

// Lines 3 and 10.
func TestAnEventThatComesAfterTheReleaseDoesNotBringTheObjectBack(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := rigUp(t, rigging{reconcile: done, finalize: opened(gate)})
	uid := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	r.pass(t, 2, "one")
	lift := r.wire.holdEvents(of("gadgets", "one"))
	v := r.patch(t, "one", `{"metadata":{"labels":{"by":"a-person"}}}`).ResourceVersion
	close(gate)
	r.awaitGone(t, uid, "one")
	r.hooks.ending(t, 2, "one")
	r.wire.dropEvents(func(e event) bool { return e.Name == "one" && e.Type == "DELETED" })
	lift()
	r.quiet(t)
	r.arrived.await(t, 1, "the late event", func(a arrival) bool { return a.name == "one" && a.version == v })
	r.passed(t, 2, "one")
	if g, ok := r.in.Get(r.key("one")); ok {
		t.Errorf("the store shows %+v", g)
	}
}

// Line 10.
func TestAReleaseLeavesTheFinalizersOfOthers(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done, finalize: done})
	uid := r.gadget(t, "one", `{"metadata":{"finalizers":["example.com/of-another","example.com/of-a-third"]}}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	g := r.await(t, "one", "released", func(g *Gadget) bool { return g.DeletionTimestamp != nil && !lasts(g) })
	if want := []string{"example.com/of-another", "example.com/of-a-third"}; !slices.Equal(g.Finalizers, want) {
		t.Errorf("it has %v, want %v", g.Finalizers, want)
	}
	r.patch(t, "one", `{"metadata":{"finalizers":null}}`)
	r.awaitGone(t, uid, "one")
	r.quiet(t)
	r.passed(t, 2, "one")
}

// Line 10.
func TestAReleaseIsNotOfAnotherObjectOfTheName(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := rigUp(t, rigging{reconcile: done, finalize: opened(gate)})
	first := r.gadget(t, "one", `{}`).UID
	r.hooks.ending(t, 1, "one")
	r.remove(t, "one")
	r.pass(t, 2, "one")
	r.patch(t, "one", `{"metadata":{"finalizers":null}}`)
	r.awaitGone(t, first, "one")
	second := r.gadget(t, "one", `{"metadata":{"finalizers":["`+ourFinalizer+`"]}}`).UID
	close(gate)
	r.await(t, "one", "ready", ready)
	if g := r.get(t, "one"); g.UID != second || !lasts(g) {
		t.Errorf("it is %s with %v, want %s with its finalizer", g.UID, g.Finalizers, second)
	}
	for _, e := range r.wire.log.all(ended(to(http.MethodPatch, "gadgets", "one"))) {
		if e.Code == http.StatusOK && strings.Contains(e.Body, `"finalizers":null`) {
			t.Errorf("the other one was released: %s", e.Body)
		}
	}
}
