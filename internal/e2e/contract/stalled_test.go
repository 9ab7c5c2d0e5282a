package contract

import (
	"context"
	"testing"

	"github.com/tetherkube/tether"
)

// Line 5, for an object whose author must not be asked again: what is put right is
// what the last pass left.
func TestAStatusThatIsWipedOnAStalledObjectIsPutRightWithoutAPassOfTheAuthors(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{options: never, reconcile: func(_ context.Context, g *Gadget, _ int) (tether.Result, error) {
		g.Status.Note = "none is left"
		return tether.Done, tether.Terminal(tether.Reason("SoldOut", errSold))
	}})
	r.gadget(t, "one", `{}`)
	soldOut := func(g *Gadget) bool {
		c := condition(g, "Stalled")
		return g.Status.Note == "none is left" && c != nil && c.Reason == "SoldOut"
	}
	r.await(t, "one", "stalled", soldOut)
	for _, by := range []string{`{"status":null}`, `{"status":{"note":"a seat is left"}}`, `{"status":{"conditions":[]}}`} {
		r.patch(t, "one", by, "status")
		r.await(t, "one", "stalled again", soldOut)
	}
	r.quiet(t)
	r.passed(t, 1, "one")
	r.patch(t, "one", `{"spec":{"size":2}}`)
	r.pass(t, 2, "one")
}
