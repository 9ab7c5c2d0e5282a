package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

// exactlyOne checks what a Ticket that is ready promises: its booking is the only
// one that lives, nothing was ever booked twice, the booking is as spec says, and
// status says what the airline does.
func (s *stage) exactlyOne(t *testing.T, tk *v1.Ticket) {
	t.Helper()
	s.neverTwice(t)
	live := s.live()
	if len(live) != 1 {
		t.Errorf("%d bookings live: %+v", len(live), live)
		return
	}
	s.toldRight(t, tk, live[0])
}

// neverTwice checks that no reference was booked more than once, ever.
func (s *stage) neverTwice(t *testing.T) {
	t.Helper()
	for _, b := range s.site.Bookings() {
		if n := s.site.CreatesInEffect(b.ClientReference); n != 1 {
			t.Errorf("reference %s was booked %d times", b.ClientReference, n)
		}
	}
}

// toldRight checks a Ticket that is ready against its booking.
func (s *stage) toldRight(t *testing.T, tk *v1.Ticket, b booking.Booking) {
	t.Helper()
	if !ready(tk) {
		t.Errorf("the Ticket is not ready: %+v", tk.Status.Conditions)
	}
	type told struct{ ID, Locator, State, Flight, Price, Currency string }
	want := told{b.ID, b.RecordLocator, string(b.Status), b.Flight.Number, b.Price.Amount, b.Price.Currency}
	got := told{ID: tk.Status.BookingID, Locator: tk.Status.RecordLocator, State: string(tk.Status.State)}
	if f, p := tk.Status.Flight, tk.Status.Price; f != nil && p != nil {
		got.Flight, got.Price, got.Currency = f.Number, p.Amount, p.Currency
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status is not as the booking (-booking +status):\n%s", diff)
	}
	if diff := cmp.Diff(b.Seats, tk.Status.Seats); diff != "" {
		t.Errorf("seats (-booking +status):\n%s", diff)
	}
	if diff := cmp.Diff(wantedBy(tk.Spec), wantedIn(b)); diff != "" {
		t.Errorf("the booking is not as spec wants (-spec +booking):\n%s", diff)
	}
}

// wanted is what a spec and a booking have in common.
type wanted struct {
	From, To, Date, Flight, Cabin string
	Email, Phone                  string
	Passengers                    []v1.Passenger
}

func wantedBy(s v1.TicketSpec) wanted {
	w := wanted{From: s.From, To: s.To, Date: s.DepartureDate, Flight: s.FlightNumber, Cabin: string(s.Cabin), Passengers: s.Passengers}
	if s.Contact != nil {
		w.Email, w.Phone = s.Contact.Email, s.Contact.Phone
	}
	return w
}

func wantedIn(b booking.Booking) wanted {
	w := wanted{From: b.From, To: b.To, Date: b.DepartureDate, Flight: b.FlightNumber, Cabin: string(b.Cabin)}
	if b.Contact != nil {
		w.Email, w.Phone = b.Contact.Email, b.Contact.Phone
	}
	for _, p := range b.Passengers {
		w.Passengers = append(w.Passengers, v1.Passenger{GivenName: p.GivenName, FamilyName: p.FamilyName, DateOfBirth: p.DateOfBirth})
	}
	return w
}
