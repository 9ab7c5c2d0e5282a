// Package traffic makes Tickets, changes and deletes them as people do, and tells
// whether what came of it is exactly one booking each.
package traffic

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/objects"
)

// Resource is that of Tickets.
var Resource = schema.GroupVersionResource{Group: "flights.com", Version: "v1", Resource: "tickets"}

// Tickets are those of one namespace. It is safe for concurrent use.
type Tickets struct {
	Client    dynamic.Interface
	Namespace string
}

func (t Tickets) client() dynamic.ResourceInterface {
	return t.Client.Resource(Resource).Namespace(t.Namespace)
}

// Create makes the smallest Ticket.
func (t Tickets) Create(ctx context.Context, name string) error {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "flights.com/v1", "kind": "Ticket", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"from": "ICN", "to": "JFK", "departureDate": "2027-05-01",
			"passengers": []any{map[string]any{"givenName": "Test", "familyName": "Passenger"}},
		},
	}}
	_, err := t.client().Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// Change gives a Ticket another contact, which its booking is changed for.
func (t Tickets) Change(ctx context.Context, name, contact string) error {
	return t.patch(ctx, name, `{"spec":{"contact":{"email":"%s@example.com"}}}`, contact)
}

// Move gives it another day, for which another booking replaces the first.
func (t Tickets) Move(ctx context.Context, name, day string) error {
	return t.patch(ctx, name, `{"spec":{"departureDate":"%s"}}`, day)
}

func (t Tickets) patch(ctx context.Context, name, patch string, args ...any) error {
	_, err := t.client().Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, patch, args...), metav1.PatchOptions{})
	return err
}

// Remove deletes a Ticket, and does not wait until it is gone.
func (t Tickets) Remove(ctx context.Context, name string) error {
	return t.client().Delete(ctx, name, metav1.DeleteOptions{})
}

// Booked waits until there are n Tickets, all booked as their newest spec wants it and
// none on its way out.
func (t Tickets) Booked(ctx context.Context, n int) ([]*v1.Ticket, error) {
	return t.Await(ctx, func(all []*v1.Ticket) bool {
		return len(all) == n && !slices.ContainsFunc(all, func(tk *v1.Ticket) bool { return !Booked(tk) })
	})
}

// Await watches them until all of them together are as wanted. Its error tells how they
// were last.
func (t Tickets) Await(ctx context.Context, wanted func([]*v1.Ticket) bool) ([]*v1.Ticket, error) {
	all, err := objects.Await(ctx, t.client(), wanted)
	if err != nil {
		err = fmt.Errorf("%w; %d Tickets were there, and not booked: %s", err, len(all), unbooked(all))
	}
	return all, err
}

// unbooked describes those that are not booked, ten at most.
func unbooked(all []*v1.Ticket) (text string) {
	n := 0
	for _, tk := range all {
		if n < 10 && !Booked(tk) {
			n++
			text += fmt.Sprintf("\n%s, generation %d, deleted %v: %+v", tk.Name, tk.Generation, tk.DeletionTimestamp, tk.Status)
		}
	}
	return text
}

// Booked: as the newest spec wants it.
func Booked(tk *v1.Ticket) bool {
	c := meta.FindStatusCondition(tk.Status.Conditions, "Ready")
	return tk.DeletionTimestamp == nil && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == tk.Generation &&
		tk.Status.ObservedGeneration == tk.Generation && meta.FindStatusCondition(tk.Status.Conditions, "Reconciling") == nil
}

// Wrong tells, a line each, what a booking server has that Tickets do not say: of each
// Ticket one booking that is as it wants, no other that stands, and none that was ever
// booked twice.
func Wrong(all []*v1.Ticket, site *fake.BookingServer) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	live := map[string]string{} // references, by id
	for _, b := range site.Bookings() {
		if b.Status.Live() {
			live[b.ID] = b.ClientReference
		}
		if n := site.CreatesInEffect(b.ClientReference); n != 1 {
			say("reference %s was booked %d times", b.ClientReference, n)
		}
	}
	for _, tk := range all {
		reference, ok := live[tk.Status.BookingID]
		if !ok {
			say("Ticket %s says that %q is booked, which does not stand", tk.Name, tk.Status.BookingID)
			continue
		}
		delete(live, tk.Status.BookingID)
		for _, b := range site.Live(reference) {
			if (tk.Spec.Contact == nil) != (b.Contact == nil) || b.Contact != nil && b.Contact.Email != tk.Spec.Contact.Email {
				say("Ticket %s wants the contact %+v, and booked is %+v", tk.Name, tk.Spec.Contact, b.Contact)
			}
			if b.DepartureDate != tk.Spec.DepartureDate {
				say("Ticket %s wants to leave on %s, and booked is %s", tk.Name, tk.Spec.DepartureDate, b.DepartureDate)
			}
		}
	}
	for id, reference := range live {
		say("booking %s, of %s, stands for no Ticket", id, reference)
	}
	return wrong
}
