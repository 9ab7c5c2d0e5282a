package e2e

import (
	"strings"
	"testing"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

func TestARejectedTicketRestsWithoutAnyCallUntilItsSpecChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		asked, remedy   string
		reason, message string
	}{
		"sold out": {
			`{"spec":{"departureDate":"2027-05-05"}}`, `{"spec":{"departureDate":"2027-05-06"}}`,
			"SoldOut", "no seat is left from ICN to JFK on 2027-05-05; choose another day, flight or cabin",
		},
		"over maxPrice": {
			`{"spec":{"maxPrice":{"amount":"1.50","currency":"EUR"}}}`, `{"spec":{"maxPrice":{"amount":"99999","currency":"EUR"}}}`,
			"PriceAboveLimit", "EUR, and spec.maxPrice is 1.50 EUR; raise it, or choose another flight",
		},
		"bad passenger": {
			`{"spec":{"passengers":[{"givenName":"T3st","familyName":"Passenger"}]}}`, `{"spec":{"passengers":[{"givenName":"Test","familyName":"Passenger"}]}}`,
			"InvalidPassenger", "the airline does not accept spec.passengers[0].givenName; correct spec.passengers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fake.BookingOptions{})
			s.site.SellOut("ICN", "JFK", "2027-05-05", true)
			c := s.start(t, "--poll=1s")
			// Another Ticket tells that time passes for the controller: it is polled.
			s.apply(t, "clock", `{"spec":{"to":"FRA"}}`)
			clock := s.awaitReady(t, "clock").Status.BookingID
			ticks := func() {
				t.Helper()
				s.calls(t, 3, "polls of another booking", func(e fake.BookingEntry) bool { return e.Op == booking.OpGet && e.BookingID == clock })
			}

			s.apply(t, "wrong", test.asked)
			s.run(t, "wait", "--for=condition=Stalled", "--timeout=30s", "ticket/wrong")
			tk := s.await(t, "wrong", "stalled", stalled(test.reason))
			if got := condition(tk, "Ready"); got.Status != "False" || got.Reason != test.reason || !strings.Contains(got.Message, test.message) {
				t.Errorf("Ready is %+v, want reason %s and message %q", got, test.reason, test.message)
			}
			rejected := s.entry(t, "the rejection", func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && e.Problem != "" })
			about := func() int {
				return len(s.entries(func(e fake.BookingEntry) bool { return e.Reference == rejected.Reference }))
			}
			calls := about()

			// Time, a label, another one's hand in status, a restart: none asks again.
			ticks()
			s.run(t, "label", "ticket", "wrong", "seen=yes")
			s.mustPatch(t, "wrong", `{"status":{"recordLocator":"FAKED1"}}`, "status")
			s.run(t, "annotate", "ticket", "wrong", "example.com/note=seen")
			ticks()
			s.await(t, "wrong", "still stalled", stalled(test.reason))
			c.kill(t)
			s.start(t, "--poll=1s")
			ticks()
			s.await(t, "wrong", "stalled after a restart", stalled(test.reason))
			if got := about(); got != calls {
				t.Errorf("%d calls until it was rejected, and %d later", calls, got)
			}

			s.mustPatch(t, "wrong", test.remedy)
			tk = s.awaitReady(t, "wrong")
			s.neverTwice(t)
			s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))
			if n := s.effects(booking.OpCreate); n != 2 {
				t.Errorf("%d bookings were made for 2 Tickets", n)
			}
		})
	}
}

func TestARejectedTicketIsDeletedWithoutAnythingToCancel(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"by the one that asked": false, "by one that came after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fake.BookingOptions{})
			s.site.SellOut("ICN", "JFK", "", true)
			c := s.start(t)
			s.create(t, "wrong", `{}`)
			s.await(t, "wrong", "stalled", stalled("SoldOut"))
			if restarted {
				c.kill(t)
				c = s.start(t)
			}
			s.remove(t, "wrong")
			s.awaitGone(t, "wrong")
			if all := s.site.Bookings(); len(all) > 0 || s.effects(booking.OpCancel) > 0 {
				t.Errorf("there were bookings: %+v", all)
			}
			if lines := c.errorsLogged(); len(lines) > 0 {
				t.Errorf("logged as errors: %q", lines)
			}
		})
	}
}
