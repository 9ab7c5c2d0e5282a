package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// only makes sure that one create was sent for each, and no delete.
func (b *bench) only(t *testing.T, machines int, names ...string) {
	t.Helper()
	if all := b.shop.standing(); len(all) != machines {
		t.Errorf("machines %+v", all)
	}
	for _, name := range names {
		if n := len(b.shop.called("create", name)); n != 1 {
			t.Errorf("%s was created %d times", name, n)
		}
		if calls := b.shop.called("delete", name); len(calls) > 0 {
			t.Errorf("%s was deleted: %+v", name, calls)
		}
	}
}

func (b *bench) objects() int { return b.hooks.now().Informers[0].Objects }

// Line 3: the API server's store was emptied, or an old one restored.
func TestAListThatComesBackEmptyEndsNothing(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: hasty()})
	for _, name := range []string{"one", "two"} {
		b.book(t, name, `{"spec":{"size":1}}`)
	}
	going := b.book(t, "going", `{"metadata":{"finalizers":["example.com/of-another"]},"spec":{"size":1}}`)
	lift := b.wire.dropEvents(func(e event) bool {
		return e.Type == "ADDED" && (e.Name == "one" || e.Name == "two" || e.Name == "going")
	})
	b.wire.relist("gadgets")
	b.quiet(t)
	b.quiet(t)                   // the first may have come with the list
	if n := b.objects(); n > 2 { // sentinels
		t.Errorf("the informer shows %d", n)
	}
	b.only(t, 3, "one", "two", "going")
	lift()
	b.wire.relist("gadgets")
	b.looked(t, "one")
	b.looked(t, "two")
	b.await(t, "one", "ready", ready)
	b.await(t, "two", "ready", ready)
	b.remove(t, "going")
	b.await(t, "going", "released", func(g *Gadget) bool { return !lasts(g) })
	b.only(t, 2, "one", "two")
	b.patch(t, "going", `{"metadata":{"finalizers":null}}`)
	b.awaitGone(t, going.UID, "going")
}

func TestAnObjectThatLeavesTheSelectorIsLeftAlone(t *testing.T) {
	t.Parallel()
	const mine, others = `{"metadata":{"labels":{"mine":"yes"}},"spec":{"size":1}}`, `{"metadata":{"labels":{"mine":"no"}}}`
	for name, deleted := range map[string]bool{"at rest": false, "while it is being deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.Options = never
			b := manageUp(t, managing{options: o, selector: "mine=yes"})
			var g *Gadget
			mend, machines := func() {}, 2
			if deleted {
				g, mend = stuckWith(t, b, mine)
			} else {
				g = b.book(t, "one", mine)
			}
			b.patch(t, "one", others)
			if deleted {
				p := b.hooks.passes.nth(t, 1, "what looks as if it vanished", vanished("one"))
				if !strings.HasPrefix(p.Reason, "not tried") {
					t.Errorf("it was %q", p.Reason)
				}
			}
			tries := len(b.shop.called("delete", "one"))
			b.book(t, "two", mine)
			if n := b.objects(); n != 1 {
				t.Errorf("the informer shows %d", n)
			}
			if all := b.shop.standing(); len(all) != machines || len(b.shop.called("delete", "one")) != tries {
				t.Errorf("machines %+v; calls %+v", all, b.shop.called("", "one"))
			}
			mend()
			b.patch(t, "one", mine)
			if !deleted {
				b.looked(t, "one")
				b.await(t, "one", "ready", ready)
				b.only(t, 2, "one", "two")
				return
			}
			b.awaitGone(t, g.UID, "one")
			b.only(t, 1, "two")
		})
	}
}

func TestAnObjectThatLeavesTheSelectorDuringAPassDoesNotComeBack(t *testing.T) {
	t.Parallel()
	const mine, others = `{"metadata":{"labels":{"mine":"yes"}},"spec":{"size":1}}`, `{"metadata":{"labels":{"mine":"no"}}}`
	b := manageUp(t, managing{selector: "mine=yes"})
	status := b.wire.hold(before, 1, to(http.MethodPatch, "gadgets/status", "one"))
	b.gadget(t, "one", mine)
	status.reached(t)
	b.patch(t, "one", others)
	b.gadget(t, "two", mine)
	b.wire.came(t, "an event after it", of("gadgets", "two"))
	b.gadget(t, "three", mine)
	b.wire.came(t, "and another", of("gadgets", "three")) // so that the one before was taken
	status.release()
	for _, name := range []string{"two", "three"} {
		b.await(t, name, "ready", ready)
	}
	if n := b.objects(); n != 2 {
		t.Errorf("the informer shows %d", n)
	}
	b.only(t, 3, "one", "two", "three")
}

func renamed(m *managing) { m.options.Name = "renamed" }

func succeeds(m *managing) { m.options.Name, m.options.Formerly = "renamed", []string{ourFinalizer} }

func TestAProgramOfAnotherNameEndsNothingAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: hasty()})
	old := b.made
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b = b.again(t, renamed)
	message := b.stalled(t, "one", "TakenOver")
	if !strings.Contains(message, id(g)) {
		t.Errorf("it says %q", message)
	}
	b.only(t, 1, "one")
	b.remove(t, "one")
	b.await(t, "one", "released by the other", func(g *Gadget) bool { return len(g.Finalizers) == 1 })
	b.only(t, 1, "one")
	b.down(t)
	b.made = old
	b = b.up(t, nil)
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestAProgramThatKnowsItsFormerNameTakesOverWhatCarriesIt(t *testing.T) {
	t.Parallel()
	const newName = "shop.example.com/renamed"
	b := manageUp(t, managing{options: hasty()})
	old := b.made
	g := b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
	b.down(t)
	b.annotate(t, "one", ourFinalizer+".new", string(g.UID)) // a question that nobody has asked
	b = b.up(t, succeeds)
	now := b.await(t, "one", "taken over", func(g *Gadget) bool {
		_, has := g.Annotations[newName+".claim"]
		return has && g.Annotations[claimName] == "" && len(g.Finalizers) == 1 && g.Finalizers[0] == newName
	})
	if now.Annotations[newName+".claim"] != g.Annotations[claimName] || now.Annotations[newName+".new"] != string(g.UID) || now.Annotations[ourFinalizer+".new"] != "" {
		t.Errorf("annotations %v", now.Annotations)
	}
	b.annotate(t, "one", newName+".new", nil)
	b.patch(t, "one", `{"spec":{"color":"blue"}}`)
	b.await(t, "one", "ready", ready)
	b.only(t, 1, "one")

	b.down(t) // rolled back, to a program that knows nothing of the new name
	b.made = old
	b = b.up(t, nil)
	b.await(t, "one", "claimed by the old one", func(g *Gadget) bool { return lasts(g) && g.Annotations[claimName] != "" })
	b.only(t, 1, "one")
	b = b.again(t, succeeds)
	b.looked(t, "one")
	b.await(t, "one", "ready", ready)
	b.only(t, 1, "one")
	b.remove(t, "one")
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// What was being deleted before anybody looked: nothing is made, what is this
// object's is ended, and the rest is left alone.
func TestWhatIsBeingDeletedWhenItIsFirstSeenIsFinishedOrLeftAlone(t *testing.T) {
	t.Parallel()
	const another = `"finalizers":["example.com/of-another"]`
	for name, c := range map[string]struct {
		finalizers string // of a new object; "": one that was booked
		change     func(*managing)
		status     bool // with the id of another's machine
		alone      bool
	}{
		"booked":                                   {},
		"booked, under a former name":              {change: succeeds},
		"the finalizer of an older version":        {finalizers: `"finalizers":["shop.example.com/gadget"]`},
		"the finalizer of a former name":           {finalizers: `"finalizers":["shop.example.com/gadget"]`, change: succeeds},
		"nothing of ours":                          {finalizers: another, alone: true},
		"nothing of ours, and another's id":        {finalizers: another, status: true, alone: true},
		"an older finalizer, and another's id":     {finalizers: `"finalizers":["shop.example.com/gadget"]`, status: true},
		"a former finalizer, and another's id":     {finalizers: `"finalizers":["shop.example.com/gadget"]`, status: true, change: succeeds},
		"an older finalizer, and one of another's": {finalizers: `"finalizers":["shop.example.com/gadget","example.com/of-another"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{options: hasty()})
			rich := b.book(t, "rich", `{"spec":{"size":1}}`)
			was := b.one(t, "rich")
			var g *Gadget
			if c.finalizers == "" {
				g = b.book(t, "one", `{"spec":{"size":1}}`)
			}
			b.down(t)
			if g == nil {
				g = b.gadget(t, "one", `{"metadata":{`+c.finalizers+`},"spec":{"size":1}}`)
			}
			if c.status {
				b.patch(t, "one", fmt.Sprintf(`{"status":{"serialNumber":%q}}`, id(rich)), "status")
			}
			b.remove(t, "one")
			writes := len(b.wire.lines(to(http.MethodPatch, "gadgets", "one")))
			b = b.up(t, c.change)
			switch {
			case c.alone && !c.status:
				b.settled(t)
				if n := len(b.wire.lines(to(http.MethodPatch, "gadgets", "one"))); n != writes || len(b.shop.called("", "one")) > 0 {
					t.Errorf("it was not left alone: %v", b.wire.lines(about("one")))
				}
			case c.alone || strings.Contains(c.finalizers, "of-another"):
				b.await(t, "one", "released", func(g *Gadget) bool { return len(g.Finalizers) == 1 && g.Finalizers[0] == "example.com/of-another" })
				b.settled(t)
			default:
				b.awaitGone(t, g.UID, "one")
			}
			if all := b.shop.standing(); len(all) != 1 || all[0] != was {
				t.Errorf("machines %+v; it was %+v", all, was)
			}
			if n := len(b.shop.called("create", "one")); c.finalizers != "" && n > 0 {
				t.Errorf("created %d times", n)
			}
			for _, e := range b.wire.log.all(ended(about("one"))) {
				if strings.Contains(e.Body, was.Secret) {
					t.Errorf("%s tells of it: %s", e, e.Body)
				}
			}
		})
	}
}

// settled waits for two sentinels: the second is not of the initial list.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	for range 2 {
		b.look(t, b.hooks)
	}
}

func TestADeletionInAClusterThatIsCalledOtherwiseWaitsForItsOldName(t *testing.T) {
	t.Parallel()
	o := hasty()
	o.ClusterID = "old-name"
	b := manageUp(t, managing{options: o})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b.down(t)
	b.remove(t, "one")
	b = b.up(t, func(m *managing) { m.options.ClusterID = "new-name" })
	b.stalled(t, "one", "ClusterIDChanged")
	b.only(t, 1, "one")
	b = b.again(t, func(m *managing) { m.options.FormerClusterIDs = []string{"old-name"} })
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestWhatIsRestoredInAnotherClusterMakesNothingUntilAPersonSaysSo(t *testing.T) {
	t.Parallel()
	o := hasty()
	o.ClusterID = "here"
	b := manageUp(t, managing{options: o})
	first := b.book(t, "one", `{"spec":{"size":1}}`)
	was := b.one(t, "one")
	b.down(t)
	b.patch(t, "one", `{"metadata":{"finalizers":null}}`)
	b.remove(t, "one")
	b.awaitGone(t, first.UID, "one")
	g := b.gadget(t, "one", saved(t, first))
	b = b.up(t, func(m *managing) { m.options.ClusterID = "elsewhere" })
	message := b.stalled(t, "one", "ForeignClaim")
	if want := ourFinalizer + ".new=" + string(first.UID); !strings.Contains(message, want) {
		t.Errorf("%q does not say %s", message, want)
	}
	b.only(t, 1, "one")
	b.annotate(t, "one", ourFinalizer+".new", string(first.UID))
	b.await(t, "one", "with one of its own", func(g *Gadget) bool { return ready(g) && id(g) != "" })
	b.remove(t, "one")
	b.awaitGone(t, g.UID, "one")
	if all := b.shop.standing(); len(all) != 1 || all[0] != was {
		t.Errorf("machines %+v; it was %+v", all, was)
	}
}

func TestAClaimThatIsLostWithAllThatStoodWaitsForAPerson(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: hasty()})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b.down(t)
	b.annotate(t, "one", claimName, nil)
	b.patch(t, "one", `{"status":null}`, "status")
	b.shop.vanish(func(*machine) bool { return true })
	b = b.up(t, nil)
	message := b.stalled(t, "one", "ClaimLost")
	if want := ourFinalizer + ".new=" + string(g.UID); !strings.Contains(message, want) {
		t.Errorf("%q does not say %s", message, want)
	}
	b.only(t, 0, "one")
	b.annotate(t, "one", ourFinalizer+".new", string(g.UID))
	b.await(t, "one", "made anew", ready)
	b.one(t, "one")
	b.shop.change(func(m *machine) { m.Scrapped = true })
	b.looked(t, "one")
	b.stalled(t, "one", "Ended") // an answer acts once
	b.quiet(t)
	if n := len(b.shop.called("create", "one")); n != 2 {
		t.Errorf("created %d times", n)
	}
}

func TestAFinalizerThatIsTakenOffEndsNothingWhereThatIsNotWanted(t *testing.T) {
	t.Parallel()
	strip := func(t *testing.T, b *bench) { b.patch(t, "one", `{"metadata":{"finalizers":null}}`) }
	for name, f := range map[string]func(t *testing.T, b *bench) *bench{
		"it is orphaned": func(t *testing.T, b *bench) *bench {
			lift := b.wire.refuse(always, http.StatusInternalServerError, to(http.MethodPatch, "gadgets", "one")) // or it would be released
			b.annotate(t, "one", "shop.example.com/orphan", "true")
			strip(t, b)
			lift()
			return b
		},
		"nobody looked": func(t *testing.T, b *bench) *bench {
			b.down(t)
			strip(t, b)
			return b.up(t, nil)
		},
		"a list tells": func(t *testing.T, b *bench) *bench {
			b.wire.dropEvents(func(e event) bool { return e.Name == "one" })
			strip(t, b)
			b.wire.relist("gadgets")
			return b
		},
		"the name is in use again": func(t *testing.T, b *bench) *bench {
			lift := b.wire.holdEvents(func(e event) bool { return e.Name == "one" && e.Type == "DELETED" })
			strip(t, b)
			b.gadget(t, "one", `{"metadata":{"annotations":{"shop.example.com/paused":"true"}},"spec":{"size":1}}`)
			lift()
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := hasty()
			o.Options = never
			b := manageUp(t, managing{options: o})
			_, mend := stuck(t, b)
			tries := len(b.shop.called("delete", "one"))
			mend()
			b = f(t, b)
			b.settled(t)
			for _, p := range b.hooks.passes.all(vanished("one")) {
				if !strings.HasPrefix(p.Reason, "not tried") {
					t.Errorf("it was %q", p.Reason)
				}
			}
			if n := len(b.shop.called("delete", "one")); n != tries || len(b.shop.standing()) != 1 {
				t.Errorf("%d tries, and %+v", n, b.shop.standing())
			}
		})
	}
}
