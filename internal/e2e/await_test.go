package e2e

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

var events = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// listWatch lists and watches what a field selector selects in the test's namespace.
func (w *world) listWatch(resource schema.GroupVersionResource, selector fields.Selector) cache.ListerWatcher {
	client := w.dynamic.Resource(resource).Namespace(w.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return client.Watch(ctx, o)
		},
	}
}

// await watches a Ticket until it is as wanted, and returns it.
func (w *world) await(t *testing.T, name, what string, wanted func(*v1.Ticket) bool) *v1.Ticket {
	t.Helper()
	ctx, cancel := patience(t, "a Ticket that is "+what)
	defer cancel()
	var last *v1.Ticket
	_, err := watchtools.UntilWithSync(ctx, w.listWatch(tickets, fields.OneTermEqualSelector("metadata.name", name)), &unstructured.Unstructured{}, nil,
		func(e watch.Event) (is bool, err error) {
			last, err = asTicket(e.Object)
			return err == nil && e.Type != watch.Deleted && wanted(last), err
		})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		seen, _ := yaml.Marshal(last) // of a type that can be marshalled
		t.Fatalf("Ticket %s: %v (%v); as last seen:\n%s", name, err, what, seen)
	}
	return last
}

// awaitGone watches until there is no such Ticket.
func (w *world) awaitGone(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := patience(t, "the end of Ticket "+name)
	defer cancel()
	_, err := watchtools.UntilWithSync(ctx, w.listWatch(tickets, fields.OneTermEqualSelector("metadata.name", name)), &unstructured.Unstructured{},
		func(known cache.Store) (bool, error) { return len(known.List()) == 0, nil },
		func(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil })
	if err != nil {
		t.Fatalf("%v: %v; it is\n%s", err, context.Cause(ctx), w.run(t, "get", "ticket", name, "-o", "yaml"))
	}
}

// awaitEvent watches until an Event about the Ticket has the reason, and returns it.
func (w *world) awaitEvent(t *testing.T, name, reason string) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := patience(t, "an Event "+reason)
	defer cancel()
	last, err := watchtools.UntilWithSync(ctx, w.listWatch(events, fields.SelectorFromSet(fields.Set{"involvedObject.name": name, "reason": reason})),
		&unstructured.Unstructured{}, nil,
		func(e watch.Event) (bool, error) { return e.Type == watch.Added, nil })
	if err != nil {
		t.Fatalf("%v: %v", err, context.Cause(ctx))
	}
	return last.Object.(*unstructured.Unstructured)
}

func condition(tk *v1.Ticket, kind string) *metav1.Condition {
	return meta.FindStatusCondition(tk.Status.Conditions, kind)
}

// ready: booked as the newest spec wants it.
func ready(tk *v1.Ticket) bool {
	c := condition(tk, "Ready")
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == tk.Generation &&
		tk.Status.ObservedGeneration == tk.Generation && condition(tk, "Reconciling") == nil && condition(tk, "Stalled") == nil
}

// stalled: only a change of the newest spec can help, for this reason.
func stalled(reason string) func(*v1.Ticket) bool {
	return func(tk *v1.Ticket) bool {
		c := condition(tk, "Stalled")
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && c.ObservedGeneration == tk.Generation
	}
}

// awaitReady watches until the Ticket is booked as its newest spec wants it.
func (w *world) awaitReady(t *testing.T, name string) *v1.Ticket {
	t.Helper()
	return w.await(t, name, "ready", ready)
}

// awaitAll watches until the test's namespace has n Tickets, and all are as wanted.
func (w *world) awaitAll(t *testing.T, n int, wanted func(*v1.Ticket) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 4*patienceTime, errors.New("not all Tickets became as wanted"))
	defer cancel()
	there, as := map[string]bool{}, map[string]bool{}
	_, err := watchtools.UntilWithSync(ctx, w.listWatch(tickets, fields.Everything()), &unstructured.Unstructured{},
		func(known cache.Store) (bool, error) { return n == 0 && len(known.List()) == 0, nil },
		func(e watch.Event) (bool, error) {
			tk, err := asTicket(e.Object)
			if err != nil {
				return false, err
			}
			delete(there, tk.Name)
			delete(as, tk.Name)
			if e.Type != watch.Deleted {
				there[tk.Name] = true
				if n > 0 && wanted(tk) {
					as[tk.Name] = true
				}
			}
			return len(there) == n && len(as) == n, nil
		})
	if err != nil {
		t.Fatalf("%v: %v; of %d there are %d, and %d as wanted", err, context.Cause(ctx), n, len(there), len(as))
	}
}

func asTicket(o runtime.Object) (*v1.Ticket, error) {
	tk := &v1.Ticket{}
	return tk, runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, tk)
}
