package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

func TestAnAppliedTicketIsBookedAndItsColumnsTellTheBooking(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	c := s.start(t)
	s.apply(t, "seoul", `{}`)
	s.run(t, "wait", "--for=condition=Ready", "--timeout=30s", "ticket/seoul")

	s.exactlyOne(t, s.awaitReady(t, "seoul"))
	b := s.live()[0]
	lines := strings.Split(strings.TrimSpace(s.run(t, "get", "tk")), "\n")
	want := []string{"seoul", "ICN", "JFK", "2027-05-01", "confirmed", "True", "Reconciled", b.RecordLocator}
	if len(lines) != 2 || !slices.Equal(strings.Fields(lines[1])[:len(want)], want) {
		t.Errorf("kubectl get tk, want %v:\n%s", want, strings.Join(lines, "\n"))
	}
	wide := s.run(t, "get", "tk", "-o", "wide")
	for _, word := range []string{b.Flight.Number, b.Price.Amount, b.Price.Currency, "booked as " + b.RecordLocator} {
		if !strings.Contains(wide, word) {
			t.Errorf("%q is not in:\n%s", word, wide)
		}
	}
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}

func TestABookingThatIsConfirmedLaterMakesTheTicketReadyThen(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{ConfirmAfter: 24 * time.Hour})
	s.start(t)
	s.apply(t, "later", `{}`)
	pending := s.await(t, "later", "pending", func(tk *v1.Ticket) bool {
		c := condition(tk, "Reconciling")
		return tk.Status.State == v1.BookingPending && c != nil && c.Reason == "Pending"
	})
	if err := s.site.Confirm(pending.Status.BookingID); err != nil {
		t.Fatal(err)
	}
	s.exactlyOne(t, s.awaitReady(t, "later"))
}

func TestADeletedTicketGoesWhenItsBookingIsCancelled(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	s.start(t)
	s.apply(t, "off", `{}`)
	id := s.awaitReady(t, "off").Status.BookingID

	cancel := s.hold(t, proxy.Before, 1, cancels)
	s.run(t, "delete", "ticket", "off", "--wait=false")
	reached(t, cancel)
	if got := s.run(t, "get", "ticket", "off", "-o", "jsonpath={.metadata.deletionTimestamp}"); got == "" {
		t.Error("the Ticket is not being deleted")
	}
	cancel.Release()
	s.awaitGone(t, "off")
	if b := s.booked(t, id); b.Status != booking.Cancelled || b.Cancellation.By == booking.ByAirline {
		t.Errorf("the booking is %s, by %+v", b.Status, b.Cancellation)
	}
	if n := s.effects(booking.OpCancel); n != 1 {
		t.Errorf("cancelled %d times", n)
	}
}

// untouched deletes a Ticket that is booked, waits until it is gone, and checks
// that the booking API heard nothing of it.
func (s *stage) untouched(t *testing.T, name, id string) {
	t.Helper()
	before := len(s.site.Journal())
	s.run(t, "delete", "ticket", name, "--wait=false")
	s.awaitGone(t, name)
	if b := s.booked(t, id); b.Status != booking.Confirmed {
		t.Errorf("the booking is %s", b.Status)
	}
	if after := s.site.Journal(); len(after) != before {
		t.Errorf("the booking API was called: %v", after[before:])
	}
}

func TestADeletedTicketThatRetainsGoesAndItsBookingStays(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	s.start(t)
	s.apply(t, "kept", `{"spec":{"deletionPolicy":"Retain"}}`)
	id := s.awaitReady(t, "kept").Status.BookingID
	before := s.booked(t, id)
	s.run(t, "delete", "ticket", "kept", "--wait=false")
	s.awaitGone(t, "kept")
	s.awaitEvent(t, "kept", "Retained")
	// It is put under a reference that no later Ticket of that name derives, and left
	// as it is in all else.
	after := s.booked(t, id)
	if after.Status != booking.Confirmed || after.ClientReference == before.ClientReference {
		t.Errorf("the booking is %s under reference %q, which was %q", after.Status, after.ClientReference, before.ClientReference)
	}
	after.ClientReference, after.Version, after.UpdatedAt = before.ClientReference, before.Version, before.UpdatedAt
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the booking (-before +after):\n%s", diff)
	}
}

func TestADeletedTicketThatIsOrphanedGoesWithAnEventAndItsBookingStays(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	c := s.start(t)
	s.apply(t, "left", `{}`)
	id := s.awaitReady(t, "left").Status.BookingID
	_, log := c.line(t, 0, `"pass ended"`)
	s.run(t, "annotate", "ticket", "left", "flights.com/orphan=true")
	c.line(t, log, `"pass ended"`) // what is asked is looked at, which calls once
	s.untouched(t, "left", id)
	if note := s.awaitEvent(t, "left", "Orphaned").Object["message"]; note != "released; what stands outside was left untouched" {
		t.Errorf("the Event says %q", note)
	}
}

func TestATicketThatIsNotNewIsBookedWhenAWindowHasPassed(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	s.create(t, "old", `{}`)
	s.mustPatch(t, "old", changes["contact"]) // whoever saw it before may have booked it
	c := s.start(t, hasty...)
	s.await(t, "old", "waiting", func(tk *v1.Ticket) bool {
		r := condition(tk, "Reconciling")
		return r != nil && r.Reason == "Settling"
	})
	if n := len(s.site.Journal()); n > 0 {
		t.Errorf("the booking API was called %d times within the window", n)
	}
	s.exactlyOne(t, s.awaitReady(t, "old"))
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}
