package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

// under are hasty options with a policy for all.
func under(p tether.Policy) tether.ManageOptions[*Gadget] {
	o := hasty()
	o.Policy = func(*Gadget) tether.Policy { return p }
	return o
}

// looked makes a pass look.
func (b *bench) looked(t *testing.T, name string) {
	t.Helper()
	b.annotate(t, name, "shop.example.com/reconcile-at", time.Now().Format(time.RFC3339Nano))
}

func TestWhatIsLostIsMadeAnewWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*bench){
		"vanished": func(b *bench) { b.shop.vanish(func(*machine) bool { return true }) },
		"scrapped": func(b *bench) { b.shop.change(func(m *machine) { m.Scrapped = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: under(tether.Policy{OnLost: tether.RecreateLoss}), external: fenced})
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			lose(b)
			lost := time.Now()
			b.looked(t, "one")
			b.await(t, "one", "made anew", func(now *Gadget) bool { return ready(now) && now.Status.SerialNumber != g.Status.SerialNumber })
			if took := time.Since(lost); name == "vanished" && took < time.Second {
				t.Errorf("its absence was proved in %v", took)
			}
			b.one(t, "one")
			if c := tells(t, b.get(t, "one")); c["incarnation"] != 2.0 || c["id"] != g.Status.SerialNumber {
				t.Errorf("the claim is %v", c)
			}
			b.remove(t, "one")
			b.awaitGone(t, g.UID, "one")
			if left := b.shop.standing(); len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

func TestWhatIsOnlyObservedIsNeitherMadeNorChangedNorEnded(t *testing.T) {
	t.Parallel()
	var only atomic.Bool
	o := hasty()
	o.Policy = func(*Gadget) tether.Policy { return tether.Policy{ObserveOnly: only.Load()} }
	b := manageUp(t, managing{options: o})
	g := b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
	only.Store(true)
	b.gadget(t, "two", `{"spec":{"size":1}}`)
	b.await(t, "two", "observed", is("Ready", metav1.ConditionUnknown, "ObserveOnly"))
	b.patch(t, "one", `{"spec":{"color":"blue","size":2}}`)
	seen := b.await(t, "one", "observed", func(now *Gadget) bool {
		c := condition(now, "Ready")
		return c != nil && c.Reason == "ObserveOnly" && c.ObservedGeneration == now.Generation
	})
	if c := condition(seen, "Ready"); !strings.Contains(c.Message, "observed, and left as it is: Present") {
		t.Errorf("Ready is %+v", c)
	}
	b.remove(t, "one")
	b.awaitGone(t, g.UID, "one")
	for _, verb := range []string{"update", "delete"} {
		if calls := b.shop.called(verb, "one"); len(calls) > 0 {
			t.Errorf("%s was called: %+v", verb, calls)
		}
	}
	if calls := b.shop.called("create", "two"); len(calls) > 0 {
		t.Errorf("create was called: %+v", calls)
	}
	if left := b.shop.standing(); len(left) != 1 || left[0].Color != "red" {
		t.Errorf("standing are %+v", left)
	}
	b.awaitEvents(t, 1, "one", "Orphaned")
}

func TestManyLossesAtOnceAreReportedWhateverThePolicySays(t *testing.T) {
	t.Parallel()
	o := under(tether.Policy{OnLost: tether.RecreateLoss})
	o.Settle = 4 * time.Second
	b := manageUp(t, managing{options: o})
	const all, few = 9, 4
	had := map[string]string{}
	for i := range all {
		g := b.book(t, fmt.Sprint("lost-", i), `{"spec":{"size":1}}`)
		had[g.Name] = g.Status.SerialNumber
	}
	b.shop.vanish(func(*machine) bool { return true })
	for i := range all {
		b.looked(t, fmt.Sprint("lost-", i))
	}
	reported := b.hooks.passes.await(t, all-few, "reports", func(p tether.PassInfo) bool { return p.Reason == "Lost" })
	for i := range all {
		b.await(t, fmt.Sprint("lost-", i), "judged", func(g *Gadget) bool {
			return is("Stalled", metav1.ConditionTrue, "Lost")(g) || ready(g) && g.Status.SerialNumber != had[g.Name]
		})
	}
	if n := len(b.shop.standing()); n > few {
		t.Errorf("%d were made anew", n)
	}
	g := b.get(t, reported[len(reported)-1].Key.Name)
	if message := condition(g, "Stalled").Message; !strings.Contains(message, "too much was lost at once") || !strings.Contains(message, string(g.UID)) {
		t.Errorf("it says %q", message)
	}
}

func TestALossThatIsReportedIsMadeAnewOnceWhenAPersonSaysSo(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: hasty()})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b.shop.change(func(m *machine) { m.Scrapped = true })
	b.looked(t, "one")
	message := b.stalled(t, "one", "Ended")
	if want := "shop.example.com/gadget.new=" + string(g.UID); !strings.Contains(message, want) {
		t.Errorf("%q does not say %s", message, want)
	}
	b.annotate(t, "one", "shop.example.com/gadget.new", "something-else")
	b.hooks.ending(t, 3, "one")
	if n := len(b.shop.called("create", "one")); n != 1 {
		t.Errorf("created %d times", n)
	}
	b.annotate(t, "one", "shop.example.com/gadget.new", string(g.UID))
	b.await(t, "one", "made anew", ready)
	b.one(t, "one")
	b.shop.change(func(m *machine) { m.Scrapped = true })
	b = b.again(t, nil)
	b.looked(t, "one")
	b.stalled(t, "one", "Ended")
	b.quiet(t)
	if n := len(b.shop.called("create", "one")); n != 2 {
		t.Errorf("created %d times", n)
	}
}

func TestAReplacementThatDeletesFirstNeverHasTwo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		external func(*workshop) tether.External[*Gadget]
		mishap   string
	}{"waits": {}, "fences": {fenced, ""}, "delete unknown": {nil, "delete"}, "create unknown": {fenced, "create"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: under(tether.Policy{Replace: tether.DeleteFirst}), external: c.external})
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			most := 0
			b.shop.every("create", after, func() error {
				n := 0
				for _, m := range b.shop.machines {
					if !m.Scrapped {
						n++
					}
				}
				most = max(most, n)
				return nil
			})
			if c.mishap != "" {
				b.shop.next(c.mishap, after, answers(errors.New("connection reset")))
			}
			b.patch(t, "one", `{"spec":{"size":2}}`)
			now := b.await(t, "one", "replaced", func(g *Gadget) bool { return ready(g) && g.Status.Tags["size"] == "2" })
			if m := b.one(t, "one"); m.Size != 2 || most != 1 {
				t.Errorf("it is %+v, and %d stood at once", m, most)
			}
			if claim := tells(t, now); claim["incarnation"] != 2.0 || claim["next"] != nil {
				t.Errorf("the claim is %v", claim)
			}
			b.remove(t, "one")
			b.awaitGone(t, g.UID, "one")
			if left := b.shop.standing(); len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

func allow(*Gadget, tether.Observation) error { return nil }

func TestWhatOthersMadeIsAdoptedWhereTheAuthorAllowsIt(t *testing.T) {
	t.Parallel()
	for name, reference := range map[string]string{"with a reference": "by-hand", "without one": ""} {
		for _, order := range []string{"from its birth", "after a loss", "after a rejection"} {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				o := hasty()
				o.AllowAdopt = allow
				b := manageUp(t, managing{options: o, external: rebound})
				m := b.shop.build("nobody", reference, GadgetSpec{Size: 1})
				content, adopt := `{"spec":{"size":1}}`, fmt.Sprintf(`{"metadata":{"annotations":{"shop.example.com/gadget.adopt":%q}},"spec":{"size":1}}`, m.ID)
				var g *Gadget
				switch order {
				case "from its birth":
					g = b.gadget(t, "one", adopt)
				case "after a rejection":
					b.shop.next("create", before, answers(tether.Terminal(errSold)))
					g = b.gadget(t, "one", content)
					b.stalled(t, "one", "Rejected")
					b.patch(t, "one", adopt)
				default:
					g = b.book(t, "one", content)
					b.shop.change(func(o *machine) { o.Scrapped = o.ID == g.Status.SerialNumber })
					b.looked(t, "one")
					b.stalled(t, "one", "Ended")
					b.patch(t, "one", adopt)
				}
				b.await(t, "one", "adopted", func(g *Gadget) bool { return ready(g) && g.Status.SerialNumber == m.ID })
				if got := b.one(t, "one"); got.Reference == reference || reference != "" && !b.shop.closed[reference] {
					t.Errorf("it is %+v", got)
				}
				if c := tells(t, b.get(t, "one")); fmt.Sprint(c["answered"]) != "map[adopt:"+m.ID+"]" {
					t.Errorf("the claim has answered %v", c["answered"])
				}
				for _, c := range b.shop.called("", "one") {
					if (c.Verb == "fence" || c.Verb == "rebind") && c.Reference == "" {
						t.Errorf("called without a reference: %+v", c)
					}
				}
				b = b.again(t, nil)
				b.quiet(t)
				b.one(t, "one")
				b.remove(t, "one")
				b.awaitGone(t, g.UID, "one")
				if left := b.shop.standing(); len(left) > 0 {
					t.Errorf("left: %+v", left)
				}
			})
		}
	}
}

func TestWhatMayNotBeAdoptedIsLeftAloneAndTheReasonIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		external func(*workshop) tether.External[*Gadget]
		allow    func(*Gadget, tether.Observation) error
		id       string // "": that of a machine that nobody has
		says     string
	}{
		"nobody allows it":       {rebound, nil, "", "does not allow it"},
		"the author says no":     {rebound, func(*Gadget, tether.Observation) error { return errors.New("it is not yours") }, "", "it is not yours"},
		"there is no Rebinder":   {fenced, nil, "", "does not allow it"},
		"it is another object's": {rebound, allow, "machine-1", "it belongs to "},
		"there is none":          {rebound, allow, "machine-77", "nothing live is found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.AllowAdopt = c.allow
			b := manageUp(t, managing{options: o, external: c.external})
			rich := b.book(t, "rich", `{"spec":{"size":1}}`)
			was := b.one(t, "rich")
			m := b.shop.build("nobody", "by-hand", GadgetSpec{Size: 1})
			if c.id == "" {
				c.id = m.ID
			}
			g := b.gadget(t, "one", fmt.Sprintf(`{"metadata":{"annotations":{"shop.example.com/gadget.adopt":%q}},"spec":{"size":1}}`, c.id))
			if message := b.stalled(t, "one", "CannotAdopt"); !strings.Contains(message, c.says) {
				t.Errorf("it says %q", message)
			}
			b.quiet(t)
			for _, e := range b.wire.log.all(ended(about("one"))) {
				if strings.Contains(e.Body, was.Secret) || strings.Contains(e.Body, m.Secret) {
					t.Errorf("%s tells of it: %s", e, e.Body)
				}
			}
			b.annotate(t, "one", "shop.example.com/gadget.adopt", nil)
			b.await(t, "one", "with one of its own", ready)
			b.remove(t, "one")
			b.awaitGone(t, g.UID, "one")
			if all := b.shop.standing(); len(all) != 2 || all[0] != was || all[1] != m || all[0].ID != rich.Status.SerialNumber {
				t.Errorf("machines %+v", all)
			}
		})
	}
}

func TestAPersonSaysWhatCameOfACreateThatNobodyCanLookUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  string
		deleted bool
		creates int
	}{
		"it happened":                   {"1.1=happened:machine-1", false, 1},
		"it did not happen":             {"1.1=did-not-happen", false, 2},
		"it happened, being deleted":    {"1.1=happened:machine-1", true, 1},
		"it did not, and being deleted": {"1.1=did-not-happen", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.Guarantee = tether.None
			o.Settle = 10 * time.Second // the object must be seen while it is newborn, on a busy machine too
			b := manageUp(t, managing{options: o})
			happened := strings.Contains(c.answer, "machine-1")
			b.shop.next("create", map[bool]moment{true: after, false: before}[happened], answers(errors.New("connection reset")))
			g := b.gadget(t, "one", `{"spec":{"size":1}}`)
			if message := b.stalled(t, "one", "OutcomeUnknown"); !strings.Contains(message, "shop.example.com/gadget.outcome=1.1=") {
				t.Errorf("it says %q", message)
			}
			if c.deleted {
				b.remove(t, "one")
				b.await(t, "one", "being deleted", func(g *Gadget) bool {
					return is("Stalled", metav1.ConditionTrue, "OutcomeUnknown")(g) && g.DeletionTimestamp != nil
				})
			}
			b.annotate(t, "one", "shop.example.com/gadget.outcome", "2.1=did-not-happen") // which nobody asked
			b.quiet(t)
			if n := len(b.shop.called("create", "one")); n != 1 {
				t.Errorf("created %d times", n)
			}
			b.stalled(t, "one", "OutcomeUnknown")
			b.annotate(t, "one", "shop.example.com/gadget.outcome", c.answer)
			if !c.deleted {
				b.await(t, "one", "ready", ready)
				b = b.again(t, nil) // an answer acts once
				b.quiet(t)
				b.one(t, "one")
				if now := b.get(t, "one"); !ready(now) {
					t.Errorf("status %+v", now.Status)
				}
				b.remove(t, "one")
			}
			b.awaitGone(t, g.UID, "one")
			if left := b.shop.standing(); len(left) > 0 || len(b.shop.called("create", "one")) != c.creates {
				t.Errorf("left: %+v; calls %+v", left, b.shop.called("", "one"))
			}
		})
	}
}

func TestWhatIsRetainedStaysOutOfTheReachOfALaterObject(t *testing.T) {
	t.Parallel()
	for name, external := range map[string]func(*workshop) tether.External[*Gadget]{"with a Rebinder": rebound, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: under(tether.Policy{Deletion: tether.RetainOutside}), external: external})
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			was := b.one(t, "one")
			b.remove(t, "one")
			b.awaitGone(t, g.UID, "one")
			b.awaitEvents(t, 1, "one", "Retained")
			all := b.shop.standing()
			if len(all) != 1 || all[0].ID != was.ID || (all[0].Reference == was.Reference) == (external != nil) {
				t.Fatalf("machines %+v; it was %+v", all, was)
			}
			// Whoever knows the old claim gets nothing of it where it could be put elsewhere.
			b.gadget(t, "one", saved(t, g))
			if external != nil {
				b.await(t, "one", "told", func(g *Gadget) bool { return len(g.Status.Conditions) > 0 && condition(g, "Stalled") != nil })
			}
			if now := b.shop.standing(); len(now) < 1 || now[0] != all[0] {
				t.Errorf("machines %+v", now)
			}
		})
	}
}

func TestAReplacementIsNotRetainedTwice(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: under(tether.Policy{Deletion: tether.RetainOutside}), external: rebound})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	wait, reached, release := held()
	b.shop.next("delete", before, func(ctx context.Context) error { _ = wait(ctx); return tether.NoEffect(errSold) })
	b.patch(t, "one", `{"spec":{"size":2}}`)
	received(t, reached, "the old one's delete")
	b.remove(t, "one")
	close(release)
	b.awaitGone(t, g.UID, "one")
	if all := b.shop.standing(); len(all) != 1 || all[0].Size != 2 {
		t.Errorf("machines %+v", all)
	}
}
