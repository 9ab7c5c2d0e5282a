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
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

// The faults that controllers of external resources are known for, and the tests
// that show what becomes of them here.
//
//	created, crash before the id was stored   TestACrashBeforeTheIDIsStoredLeavesOneThing
//	look-ups lag after a create               TestALookUpThatLagsBehindACreateHasNothingMadeTwice
//	403 taken for absence                     TestBeingForbiddenToLookIsNoAbsence
//	not found in one region: deleted          TestWhatIsNotFoundInAnotherRegionIsNotGone
//	a request id in a message: a hot loop     TestARefusalWithARequestIDIsWrittenOnceAndBacksOff,
//	                                          TestTwoErrorsThatDifferInARequestIDAloneAreWrittenOnce
//	status dropped by a backup                TestAStatusThatABackupDropsIsRebuiltAndNothingIsMadeTwice
//	a copy with its annotations               TestACopyOfAnObjectWithItsAnnotationsHasAThingOfItsOwn
//	credentials removed before the deletion   TestADeletionWhoseCredentialsAreGoneWaitsAndHasAnExit
//	a difference that never ends              TestADifferenceThatNoCorrectionEndsIsNamedAndNotFought,
//	                                          TestAChangeThatTheOutsideNeverShowsBacksOff
//	a time-out, then found twice              TestWhatIsFoundTwiceAfterATimeOutIsNamedAndLeftAlone,
//	                                          TestACallWhoseAnswerDoesNotComeIsRepeatedWithItsKeyAndTakesEffectOnce
//	a stale cache after an own write          TestAPassSeesWhatThePassBeforeItWroteThoughNoEventHasCome,
//	                                          TestAClaimThatTheWatchNeverShowsIsActedOn
//	a delete while the create is unknown      TestADeletionWaitsForACreateThatMayStillLand
//	finalizer off although the cancel failed  TestAnObjectWhoseCancellationFailsKeepsItsFinalizer,
//	                                          TestAFinalizerThatIsTakenOffWhileTheCancellationFailsHasTheThingEndedOnceMore
//	a storm of own status writes              TestAStatusThatDiffersWithEveryLookStartsNoPass,
//	                                          TestAPassIsStartedByNoneOfItsOwnWrites
//	a secret rotated during a call            TestASecretThatIsRotatedDuringACallIsTriedAtOnce

func TestACrashBeforeTheIDIsStoredLeavesOneThing(t *testing.T) {
	t.Parallel()
	for _, g := range []tether.Guarantee{tether.UniqueReference, tether.UniqueLiveReference, tether.IdempotencyKeys, tether.LookupOnly} {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.Guarantee = g
			b := manageUp(t, managing{options: o})
			b.shop.careless = g == tether.LookupOnly
			lift := b.wire.lose(before, always, to(http.MethodPatch, "gadgets/status", "one"))
			b.gadget(t, "one", `{"spec":{"size":1}}`)
			b.hooks.calls.await(t, 1, "the create", func(c tether.CallInfo) bool { return c.Verb == "create" && c.Outcome == "done" })
			b.down(t)
			if id := b.get(t, "one").Status.SerialNumber; id != "" {
				t.Fatalf("the id is stored: %s", id)
			}
			lift()
			b = b.up(t, nil)
			b.await(t, "one", "ready", ready)
			b.one(t, "one")
			if n := len(b.shop.called("create", "one")); n != 1 {
				t.Errorf("created %d times", n)
			}
		})
	}
}

func TestALookUpThatLagsBehindACreateHasNothingMadeTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		says   func(*Gadget) bool // what the status says before look-ups show it
	}{
		"unknown":  {errors.New("connection reset"), is("Reconciling", metav1.ConditionTrue, "Settling")},
		"answered": {nil, ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.Guarantee, o.Poll = tether.LookupOnly, 200*time.Millisecond
			o.Settle = 5 * time.Second // within which this test has to see it settle, however busy the machine
			b := manageUp(t, managing{options: o})
			b.shop.careless = true
			var shows atomic.Bool
			b.shop.lag = func() bool { return !shows.Load() }
			b.shop.next("create", after, answers(c.answer))
			b.gadget(t, "one", `{"spec":{"size":1}}`)
			b.await(t, "one", "told", c.says)
			if c.answer == nil { // what the answer told must do
				b.patch(t, "one", `{"status":null}`, "status")
				b.await(t, "one", "ready", func(g *Gadget) bool { return ready(g) && g.Status.SerialNumber != "" })
			}
			shows.Store(true)
			b.await(t, "one", "ready", ready)
			b.one(t, "one")
			if n := len(b.shop.called("create", "one")); n != 1 {
				t.Errorf("created %d times", n)
			}
		})
	}
}

var errForbidden = errors.New("403: not with these credentials")

func TestBeingForbiddenToLookIsNoAbsence(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: hasty()})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b.down(t)
	b.patch(t, "one", `{"status":null}`, "status")
	var allowed atomic.Bool
	b.shop.every("observe", before, func() error {
		if allowed.Load() {
			return nil
		}
		return tether.Terminal(errForbidden) // whatever the author calls it
	})
	b = b.up(t, nil)
	b.await(t, "one", "told", func(g *Gadget) bool {
		c := condition(g, "Ready")
		return c != nil && c.Status == metav1.ConditionUnknown && strings.Contains(c.Message, "403")
	})
	b.hooks.ending(t, 3, "one")
	if n := len(b.shop.called("create", "one")); n != 1 {
		t.Errorf("created %d times", n)
	}
	b.remove(t, "one")
	tried := len(b.hooks.passes.all(passesOf("one")))
	b.hooks.ending(t, tried+3, "one")
	if now := b.get(t, "one"); !lasts(now) {
		t.Errorf("it was released with %v", now.Finalizers)
	}
	allowed.Store(true)
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestWhatIsNotFoundInAnotherRegionIsNotGone(t *testing.T) {
	t.Parallel()
	var region atomic.Value
	region.Store("north")
	o := hasty()
	o.Settle = 10 * time.Second // the object must be seen while it is newborn, on a busy machine too
	o.Policy = func(*Gadget) tether.Policy { return tether.Policy{OnLost: tether.RecreateLoss} }
	b := manageUp(t, managing{options: o, external: func(w *workshop) tether.External[*Gadget] {
		return regional{w, func(*Gadget) (string, error) { return region.Load().(string), nil }, "north"}
	}})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	if c := tells(t, g); c["scope"] != "north" {
		t.Errorf("the claim says %v", c)
	}
	region.Store("south")
	b.annotate(t, "one", "shop.example.com/reconcile-at", "now")
	message := b.stalled(t, "one", "ScopeChanged")
	for _, word := range []string{"north", "south"} {
		if !strings.Contains(message, word) {
			t.Errorf("%q does not name %s", message, word)
		}
	}
	b.remove(t, "one")
	b.await(t, "one", "being deleted", func(g *Gadget) bool {
		return is("Stalled", metav1.ConditionTrue, "ScopeChanged")(g) && g.DeletionTimestamp != nil
	})
	b.quiet(t)
	if n := len(b.shop.called("", "one")); n != 1 {
		t.Errorf("called %d times: %+v", n, b.shop.called("", "one"))
	}
	region.Store("north")
	b.annotate(t, "one", "shop.example.com/reconcile-at", "later")
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestARefusalWithARequestIDIsWrittenOnceAndBacksOff(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	n := 0
	b.shop.every("create", before, func() error {
		n++
		return tether.NoEffect(fmt.Errorf("no wheels; request id: req-%d at %s", n, time.Now().Format(time.RFC3339Nano)))
	})
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	b.hooks.calls.await(t, 5, "refusals", func(c tether.CallInfo) bool { return c.Verb == "create" })
	if lines := b.wire.lines(to(http.MethodPatch, "gadgets/status", "one")); len(lines) != 1 {
		t.Errorf("written: %v", lines)
	}
	for _, p := range b.hooks.passes.all(passesOf("one"))[1:] {
		if p.Lane != "retry" {
			t.Errorf("a pass of lane %s", p.Lane)
		}
	}
}

func TestADeletionWhoseCredentialsAreGoneWaitsAndHasAnExit(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*bench, *atomic.Bool){
		"looks are refused": func(b *bench, gone *atomic.Bool) {
			b.shop.every("observe", before, func() error {
				if gone.Load() {
					return tether.NoEffect(errForbidden)
				}
				return nil
			})
		},
		"the scope cannot be told": func(*bench, *atomic.Bool) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gone atomic.Bool
			b := manageUp(t, managing{external: func(w *workshop) tether.External[*Gadget] {
				if !strings.HasPrefix(name, "the scope") {
					return w
				}
				return regional{w, func(*Gadget) (string, error) {
					if gone.Load() {
						return "", errForbidden
					}
					return "north", nil
				}, "north"}
			}})
			fails(b, &gone)
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			gone.Store(true)
			b.remove(t, "one")
			b.await(t, "one", "told", func(g *Gadget) bool {
				c := condition(g, "Ready")
				return g.DeletionTimestamp != nil && c.Status != metav1.ConditionTrue && strings.Contains(c.Message, "403: not with these credentials") && lasts(g)
			})
			b.annotate(t, "one", "shop.example.com/orphan", "true")
			b.awaitGone(t, g.UID, "one")
			b.awaitEvents(t, 1, "one", "Orphaned")
			if n := len(b.shop.standing()); n != 1 {
				t.Errorf("%d machines stand", n)
			}
		})
	}
}

// shouting is a workshop that keeps colours in capitals, and says so when it is asked.
type shouting struct{ *workshop }

// Observe tells the color that is kept.
func (w shouting) Observe(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	w.change(func(m *machine) { m.Color = strings.ToUpper(m.Color) })
	return w.workshop.Observe(ctx, g, c)
}

func TestADifferenceThatNoCorrectionEndsIsNamedAndNotFought(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{
		options:  tether.ManageOptions[*Gadget]{Options: tether.Options{Poll: 50 * time.Millisecond}},
		external: func(w *workshop) tether.External[*Gadget] { return shouting{w} },
	})
	b.gadget(t, "one", `{"spec":{"color":"red","size":1}}`)
	if message := b.stalled(t, "one", "PerpetualDiff"); !strings.Contains(message, "3 corrections") {
		t.Errorf("it says %q", message)
	}
	looks := len(b.wire.lines(looksAt("one")))
	b.wire.log.await(t, looks+2, "polls", ended(looksAt("one")))
	if n := len(b.shop.called("update", "one")); n != 3 {
		t.Errorf("corrected %d times", n)
	}
	b.patch(t, "one", `{"spec":{"color":"RED"}}`)
	b.await(t, "one", "ready", ready)
}

// stubborn is a workshop that paints, and whose machines are as they were.
type stubborn struct{ *workshop }

// Update does not do what it says.
func (w stubborn) Update(ctx context.Context, g *Gadget, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	o, err := w.workshop.Update(ctx, g, c, seen)
	w.change(func(m *machine) { m.Color = "rust" })
	o.Differs = []string{"spec.color"}
	return o, err
}

func TestAChangeThatTheOutsideNeverShowsBacksOff(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{external: func(w *workshop) tether.External[*Gadget] { return stubborn{w} }})
	b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
	b.patch(t, "one", `{"spec":{"color":"blue"}}`)
	b.await(t, "one", "told", func(g *Gadget) bool {
		return is("Reconciling", metav1.ConditionTrue, "Differs")(g) && is("Ready", metav1.ConditionUnknown, "Differs")(g)
	})
	b.hooks.ending(t, 5, "one")
	for i, p := range b.hooks.passes.all(passesOf("one"))[1:] {
		if p.Outcome != "backoff" || i > 0 && p.Lane != "retry" {
			t.Errorf("a pass of lane %s ended in %s", p.Lane, p.Outcome)
		}
	}
}

func TestWhatIsFoundTwiceAfterATimeOutIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	o := hasty()
	o.Guarantee, o.Poll = tether.LookupOnly, 200*time.Millisecond
	b := manageUp(t, managing{options: o})
	b.shop.careless = true
	b.shop.next("create", after, answers(errors.New("timed out")))
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	b.hooks.calls.await(t, 1, "the create", func(c tether.CallInfo) bool { return c.Verb == "create" })
	b.shop.build("one", b.shop.standing()[0].Reference, GadgetSpec{Size: 1})
	message := b.stalled(t, "one", "Ambiguous")
	for _, id := range []string{"machine-1", "machine-2"} {
		if !strings.Contains(message, id) {
			t.Errorf("%q does not name %s", message, id)
		}
	}
	looks := len(b.wire.lines(looksAt("one")))
	b.wire.log.await(t, looks+2, "polls", ended(looksAt("one")))
	if n := len(b.shop.standing()); n != 2 {
		t.Errorf("%d machines stand", n)
	}
	b.shop.vanish(func(m *machine) bool { return m.ID == "machine-1" })
	b.await(t, "one", "ready", ready)
	if m := b.one(t, "one"); m.ID != "machine-2" || len(b.shop.called("create", "one")) != 1 {
		t.Errorf("it is %+v", m)
	}
}

func TestAClaimThatTheWatchNeverShowsIsActedOn(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{Options: tether.Options{Poll: 50 * time.Millisecond}}})
	b.wire.dropEvents(func(e event) bool { return e.Name == "one" && e.Type == "MODIFIED" })
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	b.await(t, "one", "ready", ready)
	b.wire.log.await(t, 4, "polls", ended(looksAt("one")))
	b.one(t, "one")
	want := []string{"PATCH gadgets one 200", "create one", "PATCH gadgets/status one 200"}
	got := slices.DeleteFunc(b.wire.lines(about("one")), func(line string) bool { return line == "observe one" })
	if !slices.Equal(got, want) {
		t.Errorf("what happened: %v", got)
	}
}

func TestADeletionWaitsForACreateThatMayStillLand(t *testing.T) {
	t.Parallel()
	for name, external := range map[string]func(*workshop) tether.External[*Gadget]{"waited for": nil, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.Guarantee = tether.UniqueLiveReference
			o.Settle = 5 * time.Second // so that the wait is seen, however busy the machine
			b := manageUp(t, managing{options: o, external: external})
			b.shop.next("create", before, answers(errors.New("timed out")))
			b.shop.next("observe", before, func(context.Context) error { return errors.New("not now") })
			uid := b.gadget(t, "one", `{"spec":{"size":1}}`).UID
			b.hooks.ending(t, 1, "one")
			b.remove(t, "one")
			sent := b.shop.called("create", "one")[0]
			if external == nil {
				b.await(t, "one", "waiting", func(g *Gadget) bool {
					c := condition(g, "Reconciling")
					return g.DeletionTimestamp != nil && c != nil && strings.Contains(c.Message, "may still land")
				})
				b.shop.build("one", sent.Reference, GadgetSpec{Size: 1}) // now it does
			}
			b.awaitGone(t, uid, "one")
			if left := b.shop.standing(); len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
			if external != nil && !b.shop.closed[sent.Reference] {
				t.Error("it was not closed")
			}
		})
	}
}

func TestAnObjectWhoseCancellationFailsKeepsItsFinalizer(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"unknown":        errors.New("connection reset"),
		"not now":        tether.NoEffect(errSold),
		"never":          tether.Terminal(tether.Reason("NotRefundable", errSold)),
		"not before a s": tether.RetryAfter(tether.NoEffect(errSold), time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: hasty()})
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			b.shop.next("delete", before, answers(err))
			b.remove(t, "one")
			b.hooks.ending(t, 2, "one")
			if name == "never" {
				b.stalled(t, "one", "NotRefundable")
				b.quiet(t)
				if now := b.get(t, "one"); !lasts(now) {
					t.Errorf("it was released with %v", now.Finalizers)
				}
				b.annotate(t, "one", "shop.example.com/reconcile-at", "now")
			}
			b.awaitGone(t, g.UID, "one")
			if left := b.shop.standing(); len(left) > 0 || len(b.shop.called("delete", "one")) != 2 {
				t.Errorf("left: %+v; calls %+v", left, b.shop.called("", "one"))
			}
		})
	}
}

// restless is a workshop whose every look says something new.
type restless struct{ *workshop }

// Observe tells when it looked.
func (w restless) Observe(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	o, err := w.workshop.Observe(ctx, g, c)
	g.Status.Count++
	return o, err
}

func TestAStatusThatDiffersWithEveryLookStartsNoPass(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{external: func(w *workshop) tether.External[*Gadget] { return restless{w} }})
	b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
	b.hooks.ending(t, 1, "one")
	b.annotate(t, "one", "shop.example.com/reconcile-at", "now")
	b.hooks.ending(t, 2, "one")
	b.await(t, "one", "looked at", func(g *Gadget) bool { return g.Status.Count == 1 })
	for range 2 {
		b.quiet(t)
	}
	if n := len(b.hooks.passes.all(passesOf("one"))); n != 2 {
		t.Errorf("%d passes", n)
	}
}

func TestAStatusThatABackupDropsIsRebuiltAndNothingIsMadeTwice(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*testing.T, *bench, *Gadget){
		"in place": func(t *testing.T, b *bench, _ *Gadget) { b.patch(t, "one", `{"status":null}`, "status") },
		"with the object, which is restored under a new UID": func(t *testing.T, b *bench, g *Gadget) {
			b.patch(t, "one", `{"metadata":{"finalizers":null}}`)
			b.remove(t, "one")
			b.awaitGone(t, g.UID, "one")
			b.gadget(t, "one", saved(t, g))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: hasty()})
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			b.down(t)
			drop(t, b, g)
			b = b.up(t, nil)
			now := b.await(t, "one", "ready", ready)
			if m := b.one(t, "one"); m.ID != g.Status.SerialNumber || len(b.shop.called("create", "one")) != 1 {
				t.Errorf("it is %+v, calls %+v", m, b.shop.called("", "one"))
			}
			if c := tells(t, now); c["owner"] != string(now.UID) || c["uid"] != string(g.UID) {
				t.Errorf("the claim is %v", c)
			}
			if now.UID != g.UID {
				b.awaitEvents(t, 1, "one", "Restored")
			}
			b.remove(t, "one")
			b.awaitGone(t, now.UID, "one")
			if left := b.shop.standing(); len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

// saved is a Gadget as a backup keeps it: without its status.
func saved(t *testing.T, g *Gadget) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": g.Annotations, "finalizers": g.Finalizers}, "spec": g.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// guarded is a workshop that wants the newest key, which its author reads from a Part.
type guarded struct {
	*workshop
	key    func() string // that the author reads
	wanted *atomic.Value // that the workshop wants
}

// Create shows the key.
func (w guarded) Create(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	key := w.key()
	if err := w.meet(ctx, "create", before); err != nil {
		return tether.Observation{}, err
	}
	if key != w.wanted.Load() {
		return tether.Observation{}, tether.Terminal(tether.Reason("Unauthorized", errors.New("401: the key is not valid")))
	}
	return w.workshop.Create(ctx, g, c)
}

func TestASecretThatIsRotatedDuringACallIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	keys := tether.NewInformer(parts, s.here())
	s.make(t, served("parts"), "Part", "key", `{"spec":{"material":"old"}}`)
	var wanted atomic.Value
	wanted.Store("old")
	b := manageOn(t, &bench{stage: s, shop: newWorkshop(s.wire)}, managing{
		options: tether.ManageOptions[*Gadget]{Options: tether.Options{Watches: []tether.Watch{tether.Watches(keys, func(*Part) iter.Seq[tether.Key] {
			return slices.Values([]tether.Key{s.key("one")})
		})}}},
		external: func(w *workshop) tether.External[*Gadget] {
			return guarded{w, func() string {
				p, _ := keys.Get(s.key("key"))
				return p.Spec.Material
			}, &wanted}
		},
	})
	wait, reached, release := held()
	b.shop.next("create", before, wait)
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	received(t, reached, "the create with the old key")
	wanted.Store("new")
	s.patchOf(t, served("parts"), "key", `{"spec":{"material":"new"}}`)
	b.wire.came(t, "the new key", func(e event) bool { return e.Resource == "parts" && e.Type == "MODIFIED" })
	s.patchOf(t, served("parts"), "key", `{"metadata":{"labels":{"a":"b"}}}`) // what came before it was judged
	b.wire.events.nth(t, 2, "an event after it", func(e event) bool { return e.Resource == "parts" && e.Type == "MODIFIED" })
	close(release)
	b.await(t, "one", "ready", ready)
	b.one(t, "one")
	if n := len(b.shop.called("create", "one")); n != 1 {
		t.Errorf("%d creates were let in", n)
	}
}
