package pods

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

// flights is a namespace with the Tickets of one test.
type flights struct{ namespace string }

// newFlights makes one. At the end of the test its Tickets are taken away, while
// there is an operator that cancels what they booked.
func newFlights(t *testing.T) flights {
	t.Helper()
	f := flights{mustWith(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"flights-"}}`,
		"create", "-f", "-", "-o", "jsonpath={.metadata.name}")}
	t.Cleanup(func() {
		if t.Failed() {
			return // they tell why, and may be stuck; the cluster goes with them
		}
		// The Tickets first: a namespace that goes asks only now and then whether
		// what waits in it has gone.
		for _, args := range [][]string{
			{"delete", "tickets", "--all", "-n", f.namespace, "--timeout=100s"},
			{"delete", "namespace", f.namespace, "--wait=false"},
		} {
			if _, err := kubectl.Run(context.WithoutCancel(t.Context()), "", args...); err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

// create makes the smallest Ticket.
func (f flights) create(ctx context.Context, name string) error {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "flights.com/v1", "kind": "Ticket", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"from": "ICN", "to": "JFK", "departureDate": "2027-05-01",
			"passengers": []any{map[string]any{"givenName": "Test", "familyName": "Passenger"}},
		},
	}}
	_, err := resources.Resource(ticketResource).Namespace(f.namespace).Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// change gives a Ticket another contact, which its booking is changed for.
func (f flights) change(ctx context.Context, name, contact string) error {
	patch := fmt.Appendf(nil, `{"spec":{"contact":{"email":"%s@example.com"}}}`, contact)
	_, err := resources.Resource(ticketResource).Namespace(f.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// remove deletes a Ticket, and does not wait until it is gone.
func (f flights) remove(ctx context.Context, name string) error {
	return resources.Resource(ticketResource).Namespace(f.namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// book makes Tickets, and does not wait.
func (f flights) book(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := f.create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// exactlyOnce waits until there are n Tickets, all booked as their newest spec wants
// it and none on its way out, and checks that each has one booking, that this says
// what the Ticket does, and that no other booking stands.
func (f flights) exactlyOnce(t *testing.T, n int) {
	t.Helper()
	all := await(t, ticketResource, f.namespace, fmt.Sprintf("%d Tickets that are booked", n), func(all []*v1.Ticket) bool {
		for _, tk := range all {
			if !booked(tk) {
				return false
			}
		}
		return len(all) == n
	})
	site.neverTwice(t)
	live := site.live()
	for _, tk := range all {
		b, ok := live[tk.Status.BookingID]
		if !ok {
			t.Errorf("Ticket %s says that %q is booked, which does not stand", tk.Name, tk.Status.BookingID)
			continue
		}
		delete(live, b.ID)
		if (tk.Spec.Contact == nil) != (b.Contact == nil) || b.Contact != nil && b.Contact.Email != tk.Spec.Contact.Email {
			t.Errorf("Ticket %s wants the contact %+v, and booked is %+v", tk.Name, tk.Spec.Contact, b.Contact)
		}
	}
	for id, b := range live {
		t.Errorf("booking %s, of %s, stands for no Ticket", id, b.ClientReference)
	}
}

// booked: as the newest spec wants it.
func booked(tk *v1.Ticket) bool {
	c := meta.FindStatusCondition(tk.Status.Conditions, "Ready")
	return tk.DeletionTimestamp == nil && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == tk.Generation &&
		tk.Status.ObservedGeneration == tk.Generation && meta.FindStatusCondition(tk.Status.Conditions, "Reconciling") == nil
}
