package contract

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

func TestAPanicOfAnExternalIsAnUnknownOutcomeAndTheEffectHappensOnce(t *testing.T) {
	t.Parallel()
	for _, when := range []moment{before, after} {
		for _, verb := range []string{"create", "observe", "update", "delete"} {
			t.Run(verb+" panics "+string(when)+" its effect", func(t *testing.T) {
				t.Parallel()
				b := manageUp(t, managing{external: fenced})
				panics := func() { b.shop.next(verb, when, func(context.Context) error { panic("too hot") }) }
				if verb == "create" {
					panics()
				}
				g := b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
				if verb != "create" {
					panics()
				}
				b.patch(t, "one", `{"spec":{"color":"blue"}}`)
				b.await(t, "one", "ready", ready)
				if m := b.one(t, "one"); m.Color != "blue" || m.Version != 2 {
					t.Errorf("the machine is %+v", m)
				}
				b.remove(t, "one")
				b.awaitGone(t, g.UID, "one")
				if left := b.shop.standing(); len(left) > 0 {
					t.Errorf("left: %+v", left)
				}
				got := b.hooks.calls.all(func(c tether.CallInfo) bool { return c.Outcome != "done" })
				if len(got) != 1 || got[0].Verb != verb || got[0].Outcome != "unknown" {
					t.Errorf("calls that were not done: %+v", got)
				}
				if p := b.hooks.passes.all(func(p tether.PassInfo) bool { return p.Panic }); len(p) != 1 {
					t.Errorf("passes that panicked: %+v", p)
				}
				b.log.line(t, "pass panicked", `"error"="panic: too hot"`, "workshop")
			})
		}
	}
}

func TestAPanicInAFunctionOfTheOptionsHarmsItsObjectAlone(t *testing.T) {
	t.Parallel()
	red := func(g *Gadget) {
		if g.Spec.Color == "red" {
			panic("too red")
		}
	}
	for name, m := range map[string]managing{
		"Policy": {options: tether.ManageOptions[*Gadget]{Policy: func(g *Gadget) tether.Policy { red(g); return tether.Policy{} }}},
		"ID":     {options: tether.ManageOptions[*Gadget]{ID: func(g *Gadget) *string { red(g); return serial(g) }}},
		"Validate": {external: func(w *workshop) tether.External[*Gadget] {
			return picky{w, func(g *Gadget) error { red(g); return nil }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, m)
			b.gadget(t, "bad", `{"spec":{"color":"red","size":1}}`)
			b.book(t, "good", `{"spec":{"size":1}}`)
			g := b.await(t, "bad", "told of the panic", is("Ready", metav1.ConditionFalse, "Failed"))
			if got := condition(g, "Ready").Message; got != "panic: too red" {
				t.Errorf("it says %q", got)
			}
			b.one(t, "good")
		})
	}
}
