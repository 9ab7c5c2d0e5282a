package contract

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tetherkube/tether"
)

// hasty are options whose window passes within a test.
func hasty() tether.ManageOptions[*Gadget] {
	return tether.ManageOptions[*Gadget]{CallTimeout: time.Second, Settle: time.Second}
}

func vanished(name string) func(tether.PassInfo) bool {
	return func(p tether.PassInfo) bool { return p.Key.Name == name && p.Outcome == "vanished" }
}

// stuck has a Gadget whose machine cannot be scrapped, and which is being deleted.
func stuck(t *testing.T, b *bench) (g *Gadget, mend func()) {
	t.Helper()
	return stuckWith(t, b, `{"spec":{"size":1}}`)
}

func stuckWith(t *testing.T, b *bench, content string) (g *Gadget, mend func()) {
	t.Helper()
	g = b.book(t, "one", content)
	var works atomic.Bool
	b.shop.every("delete", before, func() error {
		if works.Load() {
			return nil
		}
		return tether.NoEffect(errors.New("the crane is out of order"))
	})
	b.remove(t, "one")
	b.hooks.calls.await(t, 1, "a try to scrap it", func(c tether.CallInfo) bool { return c.Verb == "delete" && c.Outcome == "no_effect" })
	return g, func() { works.Store(true) }
}

func TestAFinalizerThatIsTakenOffWhileTheCancellationFailsHasTheThingEndedOnceMore(t *testing.T) {
	t.Parallel()
	o := hasty()
	o.Options = never
	b := manageUp(t, managing{options: o})
	g, mend := stuck(t, b)
	if now := b.get(t, "one"); !lasts(now) {
		t.Errorf("it was released with %v", now.Finalizers)
	}
	mend()
	b.patch(t, "one", `{"metadata":{"finalizers":null}}`)
	b.awaitGone(t, g.UID, "one")
	p := b.hooks.passes.nth(t, 1, "the end of what vanished", vanished("one"))
	if left := b.shop.standing(); len(left) > 0 || p.Reason != "ended" {
		t.Errorf("it was %q; left: %+v", p.Reason, left)
	}
	b.quiet(t)
	if n := len(b.hooks.passes.all(vanished("one"))); n != 1 {
		t.Errorf("%d tries", n)
	}
}

func TestWhatIsReleasedHasNotVanished(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: hasty()})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	answer := b.wire.hold(after, 1, to(http.MethodPatch, "gadgets", "one"))
	b.remove(t, "one")
	answer.reached(t)
	b.wire.came(t, "its end", func(e event) bool { return e.Name == "one" && e.Type == "DELETED" })
	b.post(t)
	answer.release()
	b.awaitGone(t, g.UID, "one")
	b.quiet(t)
	if all := b.hooks.passes.all(vanished("one")); len(all) > 0 {
		t.Errorf("what it released itself: %+v", all)
	}
	if n := len(b.shop.called("delete", "one")); n != 1 {
		t.Errorf("scrapped %d times", n)
	}
}
