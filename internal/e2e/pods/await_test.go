package pods

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/e2e/objects"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

// patience is how long a test waits for what must come: a container that hangs is
// killed after more than a minute.
const patience = 3 * time.Minute

func patiently(t *testing.T, what string) context.Context {
	t.Helper()
	return suite.Patiently(t, patience, what)
}

var (
	podResource    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	eventResource  = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	leaseResource  = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	ticketResource = schema.GroupVersionResource{Group: "flights.com", Version: "v1", Resource: "tickets"}
)

// await watches a namespace's objects until all of them together are as wanted, and
// returns them.
func await[T any](t *testing.T, resource schema.GroupVersionResource, namespace, what string, wanted func([]*T) bool) []*T {
	t.Helper()
	all, err := objects.Await(patiently(t, what), resources.Resource(resource).Namespace(namespace), wanted)
	if err != nil {
		seen, _ := yaml.Marshal(all) // of a type that can be marshalled
		t.Fatalf("%s: %v; as last seen:\n%s", what, err, seen)
	}
	return all
}

// eventually asks again and again, where there is nothing to watch.
func eventually(t *testing.T, what string, is func(ctx context.Context) (bool, error)) {
	t.Helper()
	ctx := patiently(t, what)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := is(ctx)
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%v: %v", context.Cause(ctx), err)
		}
	}
}
