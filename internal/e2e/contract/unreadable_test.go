package contract

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A definition may let through what a Go type does not hold: an older one, or a
// field without a type.
func TestAnObjectThatDoesNotFitItsTypeIsStalledAndTheOthersAreServed(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: done})
	r.make(t, served("gadgets"), "Gadget", "odd", `{"spec":{"size":"many"}}`)
	u := r.awaitOf(t, served("gadgets"), "odd", "stalled", func(u *unstructured.Unstructured) bool { return conditionOf(u, "Stalled") == "True" })
	if text := fmt.Sprint(u.Object["status"]); !strings.Contains(text, "Unreadable") || !strings.Contains(text, "size") {
		t.Errorf("its status does not say what does not fit: %s", text)
	}
	r.gadget(t, "fine", `{}`)
	r.await(t, "fine", "ready", ready)
	r.passed(t, 0, "odd")
	r.patchOf(t, served("gadgets"), "odd", `{"spec":{"size":3}}`)
	r.await(t, "odd", "ready", ready)
}
