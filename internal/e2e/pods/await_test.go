package pods

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

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
	ctx := patiently(t, what)
	client := resources.Resource(resource).Namespace(namespace)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}
	known := map[string]*T{}
	all := func() []*T { return slices.Collect(maps.Values(known)) }
	learn := func(o any) error {
		obj, into := o.(*unstructured.Unstructured), new(T)
		known[obj.GetName()] = into
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into)
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{},
		func(store cache.Store) (bool, error) { // has all that there were at first
			for _, o := range store.List() {
				if err := learn(o); err != nil {
					return false, err
				}
			}
			return wanted(all()), nil
		},
		func(e watch.Event) (bool, error) {
			if e.Type == watch.Deleted {
				delete(known, e.Object.(*unstructured.Unstructured).GetName())
			} else if err := learn(e.Object); err != nil {
				return false, err
			}
			return wanted(all()), nil
		})
	if err != nil {
		seen, _ := yaml.Marshal(all()) // of a type that can be marshalled
		t.Fatalf("%s: %v (%v); as last seen:\n%s", what, err, context.Cause(ctx), seen)
	}
	return all()
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
