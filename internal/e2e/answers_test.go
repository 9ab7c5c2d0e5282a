package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

func TestAnAnswerThatIsNoneIsToldWithoutAHotLoopAndOthersAreServed(t *testing.T) {
	t.Parallel()
	for kind, words := range map[fake.BookingFaultKind]string{
		fake.BookingHuge:      "its body is larger than 1048576 bytes",
		fake.BookingMalformed: "its body is not the JSON that the contract has",
		fake.BookingWrongType: "its content type is not application/json",
		fake.BookingTruncated: "the connection was lost before the answer was complete",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fake.BookingOptions{})
			s.start(t)
			all := s.site.Inject(fake.BookingFault{Kind: kind})
			s.create(t, "odd", `{}`)
			reference := s.entry(t, "its call", func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && e.Effect }).Reference
			own := s.site.Inject(fake.BookingFault{Kind: kind, Reference: reference})
			all.Remove()

			said := func(tk *v1.Ticket) bool {
				r := condition(tk, "Reconciling")
				return r != nil && strings.Contains(r.Message, "booking: ") && strings.Contains(r.Message, words)
			}
			s.await(t, "odd", "told about", said)
			s.create(t, "other", `{}`)
			tk := s.awaitReady(t, "other")
			s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))

			// It is asked again and again, and ever more seldom.
			of := func(e fake.BookingEntry) bool { return e.Reference == reference }
			s.calls(t, 3, "more calls", of)
			calls := s.entries(of)
			for i, wait := range []time.Duration{800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond} {
				if i+1 < len(calls) && calls[i+1].Time.Sub(calls[i].Time) < wait {
					t.Errorf("call %d came %v after the one before, not %v", i+2, calls[i+1].Time.Sub(calls[i].Time), wait)
				}
			}
			own.Remove()
			s.mustPatch(t, "odd", changes["contact"]) // ends the back-off
			tk = s.awaitReady(t, "odd")
			s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))
			s.neverTwice(t)
			if n := s.effects(booking.OpCreate); n != 2 {
				t.Errorf("%d bookings were made for 2 Tickets", n)
			}
		})
	}
}
