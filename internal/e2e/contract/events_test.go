package contract

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether"
)

func TestAnEventIsAboutThePassesObjectAndWhatRepeatsIsCounted(t *testing.T) {
	t.Parallel()
	r := rigUp(t, rigging{reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		tether.Event(ctx, corev1.EventTypeWarning, "Rusty", "the wheels are rusty")
		if n == 1 {
			tether.Event(ctx, corev1.EventTypeNormal, "Long", strings.Repeat("é", 1000))
			tether.Event(ctx, "Nonsense", "Odd", "of no known type")
		}
		return tether.Done, nil
	}})
	tether.Event(t.Context(), corev1.EventTypeNormal, "Outside", "of a pass") // does nothing
	g := r.gadget(t, "one", `{}`)
	for n := 1; n < 4; n++ {
		r.hooks.ending(t, n, "one")
		r.patch(t, "one", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, n))
	}
	all := r.awaitEvents(t, 3, "one", "Rusty")
	if len(all) != 1 {
		t.Errorf("three of the same are %d Events", len(all))
	}
	e := all[0].Object
	regarding, _, _ := unstructured.NestedStringMap(e, "regarding")
	for field, want := range map[string]string{"apiVersion": "shop.example.com/v1", "kind": "Gadget", "namespace": r.namespace, "name": "one", "uid": string(g.UID)} {
		if regarding[field] != want {
			t.Errorf("regarding %s: %q, want %q", field, regarding[field], want)
		}
	}
	if e["type"] != "Warning" || e["note"] != "the wheels are rusty" || e["reportingController"] != "shop.example.com/gadget" || e["reportingInstance"] == "" {
		t.Errorf("the Event is %v", e)
	}
	if long := r.awaitEvents(t, 1, "one", "Long")[0].Object["note"].(string); len(long) > 1024 || !strings.HasSuffix(long, "é…") {
		t.Errorf("a long note became %d bytes: …%q", len(long), long[len(long)-8:])
	}
	if odd := r.awaitEvents(t, 1, "one", "Odd")[0].Object["type"]; odd != "Normal" {
		t.Errorf("an odd type became %v", odd)
	}
	if got := r.wire.log.all(func(e exchange) bool { return e.Resource == "events" && strings.Contains(e.Body, "Outside") }); len(got) > 0 {
		t.Errorf("an Event outside a pass was sent: %v", got)
	}
}

func TestAnEventThatCannotBeWrittenHarmsNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.wire.refuse(always, http.StatusForbidden, func(q request) bool { return q.Resource == "events" })
	r := rigOn(t, s, rigging{reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		tether.Event(ctx, corev1.EventTypeNormal, "Refused", "by the test")
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	r.await(t, "one", "ready", ready)
	r.log.line(t, "event not recorded", `"reason"="Refused"`)
	if lines := r.log.errors(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}
