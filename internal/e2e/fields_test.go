package e2e

import (
	"encoding/json"
	"testing"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// bookedTicket is a stage with a controller and one Ticket that is booked.
func bookedTicket(t *testing.T, o fake.BookingOptions) (*stage, *v1.Ticket) {
	t.Helper()
	s := newStage(t, o)
	s.start(t)
	s.apply(t, "changed", `{}`)
	return s, s.awaitReady(t, "changed")
}

// changes are one for each field that makes a booking another one.
var changes = map[string]string{
	"departureDate": `{"spec":{"departureDate":"2027-05-09"}}`,
	"flightNumber":  `{"spec":{"flightNumber":"KE81"}}`,
	"cabin":         `{"spec":{"cabin":"business"}}`,
	"contact":       `{"spec":{"contact":{"email":"test@example.com","phone":"+82212345678"}}}`,
	"passengers":    `{"spec":{"passengers":[{"givenName":"Second","familyName":"Passenger"},{"givenName":"Third","familyName":"Passenger","dateOfBirth":"2020-02-29"}]}}`,
}

func TestAFieldThatTheFareLetsChangeIsChangedInPlace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		field string
		fixed float64 // share of fares that cannot be changed
	}{{"departureDate", 0}, {"flightNumber", 0}, {"cabin", 0}, {"contact", 0}, {"contact", 1}} {
		name := row.field
		if row.fixed == 1 {
			name += " of a fixed fare"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, before := bookedTicket(t, fake.BookingOptions{FixedFares: row.fixed})
			s.mustPatch(t, "changed", changes[row.field])
			after := s.awaitReady(t, "changed")
			s.exactlyOne(t, after)
			if after.Status.BookingID != before.Status.BookingID || len(s.site.Bookings()) != 1 {
				t.Errorf("booking %s was replaced by %s", before.Status.BookingID, after.Status.BookingID)
			}
			if n := s.effects(booking.OpChange); n != 1 {
				t.Errorf("it was changed %d times", n)
			}
		})
	}
}

func TestAFieldThatCannotChangeInPlaceReplacesTheBookingAndNoneIsUnrecorded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		field string
		fixed float64
	}{{"departureDate", 1}, {"flightNumber", 1}, {"cabin", 1}, {"passengers", 0}, {"passengers", 1}} {
		name := row.field
		if row.fixed == 1 {
			name += " of a fixed fare"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, before := bookedTicket(t, fake.BookingOptions{FixedFares: row.fixed})
			old := before.Status.BookingID
			create := s.hold(t, proxy.Before, 1, creates)
			cancel := s.hold(t, proxy.Before, 1, cancels)
			s.mustPatch(t, "changed", changes[row.field])

			// Before the second booking is made, the object says that it will be.
			reached(t, create)
			claim := s.claim(t, "changed")
			if claim.Next != 2 || claim.ID != old || s.ids(t) != old || len(s.live()) != 1 {
				t.Errorf("before the new booking is made: claim %+v, status %q, %d live", claim, s.ids(t), len(s.live()))
			}
			create.Release()
			// Before the first one goes, status has the second.
			reached(t, cancel)
			if id := s.ids(t); id == old || !s.booked(t, id).Status.Live() || len(s.live()) != 2 {
				t.Errorf("before the old booking is cancelled: status %q, %d live", id, len(s.live()))
			}
			cancel.Release()

			after := s.awaitReady(t, "changed")
			s.exactlyOne(t, after)
			if b := s.booked(t, old); b.Status != booking.Cancelled || len(s.site.Bookings()) != 2 {
				t.Errorf("the old booking is %s; there were %d", b.Status, len(s.site.Bookings()))
			}
			if claim := s.claim(t, "changed"); claim.Next != 0 || claim.Incarnation != 2 {
				t.Errorf("the claim is %+v", claim)
			}
		})
	}
}

// claimed is the part of a claim that tests look at.
type claimed struct {
	Incarnation, Attempt, Next int
	ID                         string
}

// claim is what is stored now.
func (w *world) claim(t *testing.T, name string) claimed {
	t.Helper()
	raw := w.run(t, "get", "ticket", name, "-o", `jsonpath={.metadata.annotations.flights\.com/ticket\.claim}`)
	var c claimed
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatalf("claim %q: %v", raw, err)
	}
	return c
}

// ids is the booking's id that is stored now.
func (w *world) ids(t *testing.T) string {
	t.Helper()
	return w.run(t, "get", "ticket", "changed", "-o", "jsonpath={.status.bookingID}")
}

func TestAFieldThatIsNoneOfTheAirlinesChangesNothingOutside(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"maxPrice":       `{"spec":{"maxPrice":{"amount":"99999.00","currency":"EUR"}}}`,
		"onLost":         `{"spec":{"onLost":"Recreate"}}`,
		"deletionPolicy": `{"spec":{"deletionPolicy":"Retain"}}`,
		"replace":        `{"spec":{"replace":"DeleteFirst"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, before := bookedTicket(t, fake.BookingOptions{})
			s.mustPatch(t, "changed", patch)
			after := s.awaitReady(t, "changed")
			s.exactlyOne(t, after)
			if after.Generation != 2 || after.Status.BookingID != before.Status.BookingID {
				t.Errorf("generation %d, booking %s after %s", after.Generation, after.Status.BookingID, before.Status.BookingID)
			}
			if acts := s.entries(func(e fake.BookingEntry) bool { return e.Op.Mutation() }); len(acts) != 1 {
				t.Errorf("more than the booking was asked for: %v", acts)
			}
		})
	}
}

func TestAMaxPriceBindsTheNextChange(t *testing.T) {
	t.Parallel()
	s, before := bookedTicket(t, fake.BookingOptions{})
	s.mustPatch(t, "changed", `{"spec":{"maxPrice":{"amount":"1.00","currency":"EUR"}}}`)
	s.exactlyOne(t, s.awaitReady(t, "changed"))

	s.mustPatch(t, "changed", `{"spec":{"cabin":"first"}}`)
	tk := s.await(t, "changed", "stalled", stalled("PriceAboveLimit"))
	if b := s.booked(t, before.Status.BookingID); b.Status != booking.Confirmed || b.Cabin != booking.Economy || tk.Status.BookingID != b.ID {
		t.Errorf("the booking is %s in %s, status has %q", b.Status, b.Cabin, tk.Status.BookingID)
	}
	s.mustPatch(t, "changed", `{"spec":{"maxPrice":null}}`)
	s.exactlyOne(t, s.awaitReady(t, "changed"))
}

func TestARouteThatWasBookedCannotChange(t *testing.T) {
	t.Parallel()
	s, before := bookedTicket(t, fake.BookingOptions{})
	calls := len(s.site.Journal())
	for _, field := range []string{"from", "to"} {
		s.refused(t, "", field+" cannot change: another route is another ticket. Create a new Ticket, and delete this one to cancel it",
			"patch", "ticket", "changed", "--type=merge", "-p", `{"spec":{"`+field+`":"FRA"}}`)
	}
	after := s.awaitReady(t, "changed")
	s.exactlyOne(t, after)
	if after.ResourceVersion != before.ResourceVersion || len(s.site.Journal()) != calls {
		t.Errorf("the Ticket has changed, or the booking API was called:\n%s", s.site.Transcript())
	}
}
