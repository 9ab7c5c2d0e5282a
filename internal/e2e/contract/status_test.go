package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether"
)

// opened is a step that waits for the test, and is done.
func opened(gate <-chan struct{}) step {
	return func(ctx context.Context, _ *Gadget, _ int) (tether.Result, error) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return tether.Done, nil
	}
}

// gated is a step whose first pass waits for the test, and then does what it says.
func gated(gate <-chan struct{}, then step) step {
	return func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		if n == 1 {
			_, _ = opened(gate)(ctx, g, n) // it only waits
		}
		return then(ctx, g, n)
	}
}

// Line 8.
func TestStatusIsWrittenOnceAsAGuardedPatchOfTheDifference(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		if n == 1 {
			g.Status.Tags = map[string]string{"a": "1", "b": "2"}
			return tether.Done, nil
		}
		g.Status.Note = "changed"
		g.Status.Tags["b"] = "3"
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 1, "one")
	// A newer controller knows a field that this one does not.
	r.patch(t, "one", `{"spec":{"size":2},"status":{"future":"kept"}}`)
	r.hooks.ending(t, 2, "one")
	r.patch(t, "one", `{"status":{"future":"kept"}}`, "status")
	r.patch(t, "one", `{"spec":{"size":3}}`)
	r.hooks.ending(t, 3, "one")
	r.quiet(t)
	// The third pass found nothing to write but the generation.
	want := []string{"PATCH gadgets/status one 200", "PATCH gadgets/status one 200", "PATCH gadgets/status one 200"}
	if diff := cmp.Diff(want, r.wire.lines(func(q request) bool { return requestsTo("gadgets")(q) && q.Name == "one" })); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	second := r.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one")))[1]
	if second.ContentType != string(types.MergePatchType) {
		t.Errorf("content type %s", second.ContentType)
	}
	var body struct {
		Metadata map[string]any `json:"metadata"`
		Status   map[string]any `json:"status"`
	}
	if err := json.Unmarshal([]byte(second.Body), &body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"resourceVersion": r.of("one")[1].Object.ResourceVersion}, body.Metadata); diff != "" {
		t.Errorf("metadata of the patch (-want +got):\n%s", diff)
	}
	delete(body.Status, "conditions") // a list has no difference of its own
	if diff := cmp.Diff(map[string]any{"note": "changed", "observedGeneration": 2.0, "tags": map[string]any{"b": "3"}}, body.Status); diff != "" {
		t.Errorf("status of the patch (-want +got):\n%s", diff)
	}
	u := r.awaitOf(t, served("gadgets"), "one", "there", func(*unstructured.Unstructured) bool { return true })
	if future, _, _ := unstructured.NestedString(u.Object, "status", "future"); future != "kept" {
		t.Errorf("the newer controller's field is %q", future)
	}
}

// Line 8.
func TestAStatusThatDoesNotDifferIsNotWritten(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Note = "the same"
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	r.hooks.ending(t, 1, "one")
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	r.hooks.ending(t, 2, "one")
	r.quiet(t)
	r.passed(t, 2, "one")
	if got := r.wire.lines(to(http.MethodPatch, "gadgets/status", "one")); len(got) != 1 {
		t.Errorf("written: %v", got)
	}
}

// Line 8.
func TestAConflictOfTheStatusIsSettledInPlaceAndLosesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result  tether.Result
		err     error
		outcome string
		least   time.Duration // until the next pass, which the label asks for
	}{
		"done":        {tether.Done, nil, "done", 0},
		"backoff":     {tether.Backoff("Assembling", ""), nil, "backoff", 960 * time.Millisecond},
		"error":       {tether.Done, errSold, "error", 960 * time.Millisecond},
		"retry after": {tether.Done, tether.RetryAfter(errSold, 1300*time.Millisecond), "retry_after", 1300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			e := ends{of: []end{{c.result, c.err}}}
			r := rigUp(t, rigging{
				options: tether.Options{MinBackoff: 1200 * time.Millisecond},
				reconcile: gated(gate, func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
					g.Status.Note = fmt.Sprint("written in pass ", n)
					return e.step(ctx, g, n)
				}),
			})
			r.gadget(t, "one", `{}`)
			r.pass(t, 1, "one")
			r.patch(t, "one", `{"metadata":{"labels":{"by":"a-person"}}}`)
			close(gate)
			if p := r.hooks.ending(t, 1, "one"); p.Outcome != c.outcome {
				t.Errorf("the pass ended in %q", p.Outcome)
			}
			want := []string{"PATCH gadgets/status one 409", "GET gadgets one 200", "PATCH gadgets/status one 200"}
			if diff := cmp.Diff(want, r.wire.lines(requestsTo("gadgets"))[:3]); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if wait := e.wait(r, t, 2); wait < c.least {
				t.Errorf("the next pass came after %v", wait)
			}
			r.hooks.ending(t, 2, "one")
			g := r.get(t, "one")
			if g.Labels["by"] != "a-person" || g.Status.Note != "written in pass 2" {
				t.Errorf("an update is lost: %v, %q", g.Labels, g.Status.Note)
			}
			r.quiet(t)
			r.passed(t, 2, "one")
			if lines := r.log.errors(); (len(lines) > 0) != (c.err != nil) {
				t.Errorf("logged as errors: %q", lines)
			}
		})
	}
}

// Line 8.
func TestAConflictWithANewSpecRunsThePassAgainAndIsNoFailure(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := rigUp(t, rigging{options: never, reconcile: gated(gate, func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Count = g.Spec.Size
		return tether.Done, nil
	})})
	r.gadget(t, "one", `{"spec":{"size":1}}`)
	r.pass(t, 1, "one")
	r.patch(t, "one", `{"spec":{"size":2}}`)
	close(gate)
	g := r.await(t, "one", "ready", ready)
	if g.Status.Count != 2 {
		t.Errorf("status is about size %d", g.Status.Count)
	}
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "again" {
		t.Errorf("the first pass ended in %q", p.Outcome)
	}
	r.quiet(t)
	r.passed(t, 2, "one")
	want := []string{"PATCH gadgets/status one 409", "GET gadgets one 200", "PATCH gadgets/status one 200"}
	if diff := cmp.Diff(want, r.wire.lines(func(q request) bool { return requestsTo("gadgets")(q) && q.Name == "one" })); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if lines := r.log.errors(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}

// Line 8.
func TestAServersRetryAfterOutlivesAConflictWithANewSpec(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	e := ends{of: []end{{err: tether.RetryAfter(errSold, 1300*time.Millisecond)}}}
	r := rigUp(t, rigging{reconcile: gated(gate, e.step)})
	r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	r.patch(t, "one", `{"spec":{"size":2}}`)
	close(gate)
	if wait := e.wait(r, t, 2); wait < 1300*time.Millisecond {
		t.Errorf("the next pass came after %v", wait)
	}
}

// Line 8.
func TestAStatusIsNotWrittenToAnotherObjectOfTheName(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := rigUp(t, rigging{reconcile: gated(gate, func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		g.Status.Note = "of " + string(g.UID)
		return tether.Done, nil
	})})
	first := r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	r.remove(t, "one")
	second := r.gadget(t, "one", `{}`)
	close(gate)
	r.await(t, "one", "ready", ready)
	for _, e := range r.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one"))) {
		if e.Code == http.StatusOK && strings.Contains(e.Body, string(first.UID)) {
			t.Errorf("what was seen of %s was written to %s: %s", first.UID, second.UID, e.Body)
		}
	}
	if g := r.get(t, "one"); g.Status.Note != "of "+string(second.UID) {
		t.Errorf("status says %q", g.Status.Note)
	}
}

// Line 8.
func TestAStatusThatCannotBeWrittenMakesThePassFail(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{options: tether.Options{MinBackoff: 10 * time.Millisecond}, reconcile: done})
	r.wire.refuse(1, http.StatusInternalServerError, to(http.MethodPatch, "gadgets/status", "one"))
	r.gadget(t, "one", `{}`)
	r.await(t, "one", "ready", ready)
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "error" {
		t.Errorf("the first pass ended in %q", p.Outcome)
	}
	r.log.line(t, "pass failed", "write the status")
}

// Line 8.
func TestAPassThatAStopCancelledHasItsStatusWritten(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{
		run: tether.RunOptions{StopTimeout: 200 * time.Millisecond},
		reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
			<-ctx.Done()
			g.Status.Note = "as far as it got"
			return tether.Done, ctx.Err()
		},
	})
	r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	if err := r.run.end(t); err != nil {
		t.Error(err)
	}
	g := r.get(t, "one")
	if g.Status.Note != "as far as it got" || !is("Ready", metav1.ConditionFalse, "Failed")(g) {
		t.Errorf("status is %+v", g.Status)
	}
	if got := condition(g, "Ready").Message; got != "context canceled (the controller is stopping)" {
		t.Errorf("the condition says %q", got)
	}
}

// Line 8.
func TestTheLastWritesOfAStopAreBounded(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{run: tether.RunOptions{StopTimeout: 100 * time.Millisecond}, reconcile: done})
	write := r.wire.hold(before, 1, to(http.MethodPatch, "gadgets/status", "one"))
	r.gadget(t, "one", `{}`)
	write.reached(t)
	began := time.Now()
	if err := r.run.end(t); err != nil { // though the write is never answered
		t.Error(err)
	}
	if took := time.Since(began); took > 9*time.Second { // the write has 5 s
		t.Errorf("the stop took %v", took)
	}
}

// Line 9.
func TestConditionsFollowKstatusThroughALife(t *testing.T) {
	t.Parallel()
	e := ends{of: []end{
		{err: errSold}, {err: tether.Reason("NoWheels", errSold)}, {err: tether.Terminal(errSold)}, {result: tether.After(time.Hour)}, {},
	}}
	r := rigUp(t, rigging{options: never, reconcile: e.step})
	const long = "2020-02-02T02:02:02Z"
	type told struct {
		Type, Status, Reason string
		Generation           int64
		Moved                bool // lastTransitionTime
	}
	r.gadget(t, "one", `{}`)
	for n, want := range [][]told{
		{{"Ready", "False", "Failed", 1, true}, {"Reconciling", "True", "Failed", 1, true}},
		{{"Ready", "False", "NoWheels", 2, false}, {"Reconciling", "True", "NoWheels", 2, false}},
		{{"Ready", "False", "Rejected", 3, false}, {"Stalled", "True", "Rejected", 3, true}},
		{{"Ready", "Unknown", "Progressing", 4, true}},
		{{"Ready", "True", "Reconciled", 5, true}},
	} {
		n++
		r.hooks.ending(t, n, "one")
		g := r.get(t, "one")
		if g.Status.ObservedGeneration != int64(n) {
			t.Errorf("pass %d: observed generation %d", n, g.Status.ObservedGeneration)
		}
		var got []told
		for _, c := range g.Status.Conditions {
			moved := c.LastTransitionTime.UTC().Format(time.RFC3339) != long
			got = append(got, told{c.Type, string(c.Status), c.Reason, c.ObservedGeneration, moved})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pass %d (-want +got):\n%s", n, diff)
		}
		// As if all that had been so for long; and a new generation.
		for i := range g.Status.Conditions {
			at, err := time.Parse(time.RFC3339, long)
			if err != nil {
				t.Fatal(err)
			}
			g.Status.Conditions[i].LastTransitionTime = metav1.NewTime(at)
		}
		list, err := json.Marshal(g.Status.Conditions)
		if err != nil {
			t.Fatal(err)
		}
		if n < 3 { // what waits for a backoff does not put it right
			r.patch(t, "one", fmt.Sprintf(`{"status":{"conditions":%s}}`, list), "status")
			r.heard(t)
		}
		if n < 5 {
			r.patch(t, "one", fmt.Sprintf(`{"spec":{"size":%d}}`, n+1))
		}
	}
}

// Line 9.
func TestTheAuthorsReadyIsKeptForItsGeneration(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
		if g.Spec.Size == 1 && n == 1 {
			g.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Empty", Message: "nothing in it"}}
		}
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{"spec":{"size":1}}`)
	r.await(t, "one", "told by the author", is("Ready", metav1.ConditionFalse, "Empty"))
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	r.hooks.ending(t, 2, "one")
	if g := r.get(t, "one"); !is("Ready", metav1.ConditionFalse, "Empty")(g) {
		t.Errorf("a pass that set nothing left %+v", g.Status.Conditions)
	}
	r.patch(t, "one", `{"spec":{"size":2}}`)
	r.await(t, "one", "ready, since Done without a Ready of this generation means so", ready)
}

// Line 9.
func TestATypeWithStatusOfAResourceWithoutOneIsAMistakeThatRunNames(t *testing.T) {
	t.Parallel()
	s := setup(t)
	wrong := tether.NewInformer(tether.Resource[*Gadget]{GroupVersion: groupVersion, Kind: "Part", Plural: "parts"}, s.here())
	r := s.start(t, tether.RunOptions{}, tether.New(wrong, &author{reconcile: done}, tether.Options{}))
	err := received(t, r.ended, "the end of the Run")
	for _, word := range []string{`controller "part"`, "parts.shop.example.com has no status subresource", "add subresources: {status: {}}"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
}

// Line 9.
func TestOneOfTheControllersOfAResourceWritesItsConditions(t *testing.T) {
	t.Parallel()
	never := tether.Options{MinBackoff: time.Hour, MaxBackoff: time.Hour, Workers: 1}
	assembling := reconciles[*Gadget](func(_ context.Context, g *Gadget) (tether.Result, error) {
		g.Status.Tags = map[string]string{"assembling": "yes"}
		return tether.Backoff("Assembling", "wheel 3 of 4"), nil
	})
	content := reconciles[*Gadget](func(_ context.Context, g *Gadget) (tether.Result, error) {
		g.Status.Count = 4
		return tether.Done, nil
	})
	for name, c := range map[string]struct {
		controllers func(*stage, *tether.Informer[*Gadget]) []*tether.Controller
		want        func(*Gadget) bool
	}{
		"the first": {func(_ *stage, in *tether.Informer[*Gadget]) []*tether.Controller {
			first, second := never, never
			first.Name, second.Name = "first", "second"
			return []*tether.Controller{tether.New(in, assembling, first), tether.New(in, content, second)}
		}, func(g *Gadget) bool {
			return is("Ready", metav1.ConditionUnknown, "Assembling")(g) && is("Reconciling", metav1.ConditionTrue, "Assembling")(g) && g.Status.Count == 4
		}},
		"the managed one": {func(s *stage, in *tether.Informer[*Gadget]) []*tether.Controller {
			first, second := never, never
			first.Name, second.Name = "first", "second"
			return []*tether.Controller{tether.New(in, assembling, first), tether.Manage(in, newWorkshop(s.wire), tether.ManageOptions[*Gadget]{
				Options: second, ID: serial, Guarantee: tether.UniqueReference,
			})}
		}, func(g *Gadget) bool {
			return ready(g) && len(g.Status.Conditions) == 1 && g.Status.SerialNumber != ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, hooks := setup(t), newHooks()
			in := tether.NewInformer(gadgets, s.here())
			s.start(t, tether.RunOptions{SingleProcess: true, Hooks: hooks}, c.controllers(s, in)...)
			s.log.line(t, "controllers run")
			s.gadget(t, "one", `{"spec":{"size":1}}`)
			s.await(t, "one", "told by the one that is to", c.want)
			for _, n := range []string{"1", "2"} { // whoever writes last
				s.patch(t, "one", `{"metadata":{"labels":{"n":"`+n+`"}}}`)
				s.look(t, hooks)
				s.await(t, "one", "told by the one that is to", c.want)
			}
			for _, e := range s.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one"))) {
				if name == "the managed one" && strings.Contains(e.Body, "Assembling") || name == "the first" && strings.Contains(e.Body, "Reconciled") {
					t.Errorf("another wrote conditions: %s", e.Body)
				}
			}
		})
	}
}

var budgets = tether.Resource[*policyv1.PodDisruptionBudget]{GroupVersion: policyv1.SchemeGroupVersion, Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets"}

// Line 9.
func TestABuiltInObjectsStatusHasWhatItsAuthorEditsAndNoConditions(t *testing.T) {
	t.Parallel()
	s, hooks := setup(t), newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(tether.NewInformer(budgets, s.here()), reconciles[*policyv1.PodDisruptionBudget](func(_ context.Context, b *policyv1.PodDisruptionBudget) (tether.Result, error) {
		if b.Labels["note"] != "" {
			b.Status.DesiredHealthy = 3
		}
		return tether.Done, nil
	}), tether.Options{}))
	at := schema.GroupVersionResource{Group: policyv1.GroupName, Version: "v1", Resource: budgets.Plural}
	s.make(t, at, budgets.Kind, "one", `{"spec":{"minAvailable":1}}`)
	hooks.ending(t, 1, "one")
	if got := s.wire.lines(writes(budgets.Plural)); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
	s.patchOf(t, at, "one", `{"metadata":{"labels":{"note":"yes"}}}`)
	hooks.ending(t, 2, "one")
	b := as[policyv1.PodDisruptionBudget](t, s.awaitOf(t, at, "one", "there", func(*unstructured.Unstructured) bool { return true }))
	if b.Status.DesiredHealthy != 3 || len(b.Status.Conditions) > 0 || b.Status.ObservedGeneration != 0 {
		t.Errorf("status is %+v", b.Status)
	}
}
