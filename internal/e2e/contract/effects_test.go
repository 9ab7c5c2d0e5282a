package contract

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

func TestARejectionMakesNoCallUntilSpecOrReconcileAtChangesAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	reject := func() { b.shop.next("create", before, answers(tether.Terminal(tether.Reason("SoldOut", errSold)))) }
	// calls makes sure of how many calls there have been, creates all of them but for
	// looks; and that none is on its way.
	calls := func(creates int) {
		t.Helper()
		b.quiet(t)
		if got := b.shop.called("create", "one"); len(got) != creates {
			t.Fatalf("%d creates, want %d: %+v", len(got), creates, b.shop.called("", "one"))
		}
	}
	reject()
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	if message := b.stalled(t, "one", "SoldOut"); message != "none is left" {
		t.Errorf("it says %q", message)
	}
	b.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	calls(1)
	b = b.again(t, nil)
	calls(1)
	if got := b.shop.called("", "one"); len(got) != 1 {
		t.Errorf("after the restart it was called: %+v", got)
	}

	reject()
	b.annotate(t, "one", "shop.example.com/reconcile-at", "now")
	b.hooks.passes.await(t, 1, "a pass that was asked for", func(p tether.PassInfo) bool {
		return p.Key.Name == "one" && p.Reason == "SoldOut" && p.Lane == "people"
	})
	calls(2)
	b = b.again(t, nil)
	calls(2)
	if c := tells(t, b.get(t, "one")); !cmp.Equal(c["answered"], map[string]any{"reconcile-at": "now"}) {
		t.Errorf("the claim has answered %v", c["answered"])
	}

	b.patch(t, "one", `{"spec":{"size":2}}`)
	b.await(t, "one", "ready", ready)
	calls(3)
	b.one(t, "one")
	keys := map[string]bool{}
	for _, c := range b.shop.called("create", "one") {
		keys[c.Key] = true
	}
	if len(keys) != 3 {
		t.Errorf("three attempts had %d keys", len(keys))
	}
}

func TestACallWhoseAnswerDoesNotComeIsRepeatedWithItsKeyAndTakesEffectOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		when   moment
		mishap func(context.Context) error
		says   string
	}{
		"lost":           {after, answers(errors.New("connection reset")), "connection reset"},
		"never sent":     {before, answers(errors.New("connection refused")), "connection refused"},
		"late":           {after, waitsForEver, "create took longer than a call may take, 300ms"},
		"late, not sent": {before, waitsForEver, "create took longer than a call may take, 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{CallTimeout: 300 * time.Millisecond}})
			b.shop.next("create", c.when, c.mishap)
			b.book(t, "one", `{"spec":{"size":1}}`)
			b.one(t, "one")
			calls := b.shop.called("create", "one")
			if want := map[moment]int{before: 2, after: 1}[c.when]; len(calls) != want {
				t.Errorf("created %d times, want %d", len(calls), want)
			}
			for _, again := range calls {
				if again.Key != calls[0].Key || again.Reference != calls[0].Reference || again.Key == "" {
					t.Errorf("repeated as %+v after %+v", again, calls[0])
				}
			}
			first := b.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one")))[0]
			for _, word := range []string{
				c.says, `"reason":"OutcomeUnknown"`, "whether the create took effect is not known since 2", ": it is looked for, and repeated with the same key",
			} {
				if !strings.Contains(first.Body, word) {
					t.Errorf("it was told without %q: %s", word, first.Body)
				}
			}
		})
	}
}

func TestAServersRetryAfterIsWaitedForWithTheSameKey(t *testing.T) {
	t.Parallel()
	const word = 5 * time.Second // the change below comes within it, also on a busy machine
	b := manageUp(t, managing{})
	var refused time.Time
	b.shop.next("create", before, func(context.Context) error {
		refused = time.Now()
		return tether.RetryAfter(tether.NoEffect(errSold), word)
	})
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	b.hooks.ending(t, 1, "one")
	b.patch(t, "one", `{"spec":{"size":2}}`)
	b.await(t, "one", "ready", ready)
	calls := b.shop.called("create", "one")
	if len(calls) != 2 || calls[0].Key != calls[1].Key {
		t.Errorf("calls %+v", calls)
	}
	created := b.wire.log.all(func(e exchange) bool { return e.Method == outside && e.Resource == "create" })
	if wait := created[1].Began.Sub(refused); wait < word {
		t.Errorf("called again after %v", wait)
	}
}

func TestADeletedObjectGoesOnlyWhenItsThingHasEnded(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	wait, reached, release := held()
	b.shop.next("delete", before, wait)
	b.remove(t, "one")
	received(t, reached, "the delete")
	if now := b.get(t, "one"); !lasts(now) || now.DeletionTimestamp == nil {
		t.Errorf("while it is scrapped the object has %v", now.Finalizers)
	}
	close(release)
	b.awaitGone(t, g.UID, "one")
	want := []string{"PATCH gadgets one 200", "create one", "PATCH gadgets/status one 200", "delete one", "PATCH gadgets one 200"}
	b.hooks.ending(t, 2, "one")
	got := slices.DeleteFunc(b.wire.lines(about("one")), func(line string) bool { return line == "observe one" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestAnOrphanedObjectGoesWithAnEventAndWithoutACall(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]bool{"at rest": false, "while a server asks to come back later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{})
			g := b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
			if hold {
				b.shop.next("update", before, answers(tether.RetryAfter(tether.NoEffect(errSold), time.Hour)))
				b.patch(t, "one", `{"spec":{"color":"blue"}}`)
				b.hooks.passes.await(t, 1, "the Retry-After", func(p tether.PassInfo) bool { return p.Outcome == "retry_after" })
			}
			b.quiet(t)
			b.annotate(t, "one", "shop.example.com/orphan", "true")
			b.quiet(t) // until it is deleted, a look is allowed
			calls := len(b.shop.called("", "one"))
			b.remove(t, "one")
			b.awaitGone(t, g.UID, "one")
			b.awaitEvents(t, 1, "one", "Orphaned")
			if n := len(b.shop.called("", "one")); n != calls {
				t.Errorf("%d calls were made", n-calls)
			}
			if all := b.shop.standing(); len(all) != 1 || all[0].Color != "red" {
				t.Errorf("machines %+v", all)
			}
		})
	}
}

func TestAPausedObjectIsObservedAndItsDeletionWaits(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	g := b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
	b.annotate(t, "one", "shop.example.com/paused", "true")
	b.patch(t, "one", `{"spec":{"color":"blue"}}`)
	b.await(t, "one", "paused", is("Reconciling", metav1.ConditionTrue, "Paused"))
	b.remove(t, "one")
	b.await(t, "one", "waiting", func(g *Gadget) bool {
		c := condition(g, "Reconciling")
		return g.DeletionTimestamp != nil && c != nil && strings.Contains(c.Message, "the deletion waits")
	})
	b.quiet(t)
	if all := b.shop.standing(); len(all) != 1 || all[0].Color != "red" {
		t.Errorf("machines %+v", all)
	}
	b.annotate(t, "one", "shop.example.com/paused", nil)
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestAThingThatMovedIsPutRightAtThePollOrReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drift tether.Drift
		want  func(*Gadget) bool
		color string
	}{
		"corrected": {tether.CorrectDrift, ready, "red"},
		"reported":  {tether.ReportDrift, is("Ready", metav1.ConditionFalse, "Differs"), "green"},
		"ignored":   {tether.IgnoreDrift, ready, "green"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{
				Options: tether.Options{Poll: 300 * time.Millisecond},
				Policy:  func(*Gadget) tether.Policy { return tether.Policy{Drift: c.drift} },
			}})
			b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
			b.shop.change(func(m *machine) { m.Color = "green"; m.Version++ })
			looked := len(b.hooks.passes.all(passesOf("one")))
			b.hooks.ending(t, looked+3, "one")
			if all := b.shop.standing(); len(all) != 1 || all[0].Color != c.color {
				t.Errorf("machines %+v", all)
			}
			if g := b.get(t, "one"); !c.want(g) || g.Status.Tags["color"] != c.color {
				t.Errorf("status %+v", g.Status)
			}
		})
	}
}

// replacing starts with one machine and asks for one that cannot be had in place.
func replacing(t *testing.T) (b *bench, was machine) {
	t.Helper()
	b = manageUp(t, managing{external: fenced})
	b.book(t, "one", `{"spec":{"size":1}}`)
	return b, b.one(t, "one")
}

func TestAReplacementIsRecordedAndStandsBeforeTheOldOneGoes(t *testing.T) {
	t.Parallel()
	b, was := replacing(t)
	wait, reached, release := held()
	b.shop.next("delete", before, wait)
	b.patch(t, "one", `{"spec":{"size":2}}`)
	received(t, reached, "the old one's delete")
	g, all := b.get(t, "one"), b.shop.standing()
	if claim := tells(t, g); len(all) != 2 || g.Status.SerialNumber != all[1].ID || claim["next"] != 2.0 || claim["id"] != was.ID {
		t.Errorf("machines %+v, status %+v, claim %v", all, g.Status, claim)
	}
	close(release)
	b.await(t, "one", "ready", ready)
	if m := b.one(t, "one"); m.Size != 2 || m.ID == was.ID {
		t.Errorf("it is %+v", m)
	}
	if claim := tells(t, b.get(t, "one")); claim["incarnation"] != 2.0 || claim["next"] != nil {
		t.Errorf("the claim is %v", claim)
	}
}

func TestAReplacementWhoseOldOneDoesNotGoAtOnceGoesOn(t *testing.T) {
	t.Parallel()
	reset := errors.New("connection reset")
	for name, mishaps := range map[string][]error{ // of deletes, or of looks
		"delete, nobody answers": {reset},
		"delete, not now":        {tether.NoEffect(errSold)},
		"delete, later":          {tether.RetryAfter(errSold, time.Millisecond)},
		"observe, the first":     {reset},
		"observe, the second":    {nil, reset}, // when the new id has been recorded
		"observe, the third":     {nil, nil, reset},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, was := replacing(t)
			verb, _, _ := strings.Cut(name, ",")
			for _, err := range mishaps {
				b.shop.next(verb, before, answers(err))
			}
			b.patch(t, "one", `{"spec":{"size":2}}`)
			b.await(t, "one", "ready", ready)
			if m := b.one(t, "one"); m.Size != 2 || m.ID == was.ID {
				t.Errorf("it is %+v", m)
			}
			for _, e := range b.wire.log.all(ended(to(http.MethodPatch, "gadgets/status", "one"))) {
				if strings.Contains(e.Body, "Stalled") {
					t.Errorf("it was told as %s", e.Body)
				}
			}
		})
	}
}

// clumsy is a workshop whose answers lack something, or that edits what it must not.
type clumsy struct {
	*workshop
	create func(*Gadget, tether.Observation) tether.Observation
}

func (c clumsy) Create(ctx context.Context, g *Gadget, call tether.Call) (tether.Observation, error) {
	o, err := c.workshop.Create(ctx, g, call)
	return c.create(g, o), err
}

func TestWhatAnExternalForgetsOrMustNotDoIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		create func(*Gadget, tether.Observation) tether.Observation
		says   string
	}{
		"no State":     {func(_ *Gadget, o tether.Observation) tether.Observation { o.State = 0; return o }, "the External's answer to create has no State; set one"},
		"Absent":       {func(_ *Gadget, o tether.Observation) tether.Observation { o.State = tether.Absent; return o }, "the External's answer to create is Absent, and no error"},
		"Closed":       {func(_ *Gadget, o tether.Observation) tether.Observation { o.State = tether.Closed; return o }, "the External's answer to create is Closed, and it is no Fencer"},
		"no such":      {func(_ *Gadget, o tether.Observation) tether.Observation { o.State = 77; return o }, "a State that there is not, State(77)"},
		"no Reference": {func(_ *Gadget, o tether.Observation) tether.Observation { o.Reference = ""; return o }, "the External's answer to create has no Reference"},
		"an edit": {func(g *Gadget, o tether.Observation) tether.Observation {
			g.Labels = map[string]string{"a": "b"}
			return o
		}, "metadata.labels was changed in the pass's own copy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{
				options:  tether.ManageOptions[*Gadget]{Options: never},
				external: func(w *workshop) tether.External[*Gadget] { return clumsy{w, c.create} },
			})
			b.gadget(t, "one", `{"spec":{"size":1}}`)
			g := b.await(t, "one", "told", func(g *Gadget) bool {
				return is("Ready", metav1.ConditionFalse, "EditOutsideStatus")(g) || is("Ready", metav1.ConditionUnknown, "OutcomeUnknown")(g)
			})
			if got := condition(g, "Ready").Message; !strings.Contains(got, c.says) {
				t.Errorf("it says %q", got)
			}
			if n := len(b.shop.standing()); n != 1 {
				t.Errorf("%d machines stand", n)
			}
		})
	}
}

func TestWithoutAnyGuaranteeAnUnknownOutcomeWaitsForAPersonAndIsNeverRepeated(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{Guarantee: tether.None}})
	b.shop.next("create", after, answers(errors.New("connection reset")))
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	b.stalled(t, "one", "OutcomeUnknown")
	b.patch(t, "one", `{"spec":{"size":2}}`)
	b.quiet(t)
	b = b.again(t, nil)
	b.quiet(t)
	if n := len(b.shop.called("create", "one")); n != 1 {
		t.Errorf("created %d times", n)
	}
}

func TestARejectedObjectIsLookedAtOnlyWhereSomethingIsLive(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{Options: tether.Options{Poll: 200 * time.Millisecond}}})
	b.shop.next("create", before, answers(tether.Terminal(errSold)))
	b.gadget(t, "none", `{"spec":{"size":1}}`)
	b.stalled(t, "none", "Rejected")
	b.hooks.ending(t, 1, "none")

	b.book(t, "live", `{"spec":{"color":"red","size":1}}`)
	looks := func(n int) {
		t.Helper()
		already := len(b.wire.lines(looksAt("live")))
		b.wire.log.await(t, already+n, "looks at what is live", ended(looksAt("live")))
	}
	looks(1)
	b.shop.next("update", before, answers(tether.Terminal(errSold)))
	b.patch(t, "live", `{"spec":{"color":"blue"}}`)
	b.stalled(t, "live", "Rejected")
	looks(3) // the first poll, and those after it
	if n := len(b.shop.called("update", "live")); n != 1 {
		t.Errorf("%d updates", n)
	}
	if got := b.shop.called("", "none"); len(got) != 1 {
		t.Errorf("where nothing is live, it was called: %+v", got)
	}
	if n := len(b.hooks.passes.all(passesOf("none"))); n != 1 {
		t.Errorf("where nothing is live, it has had %d passes", n)
	}
}

// looksAt are the looks at an object's thing.
func looksAt(name string) func(request) bool {
	return func(r request) bool { return r.Method == outside && r.Resource == "observe" && r.Name == name }
}
