package e2e

import (
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// faults are what may go wrong with one request, in times that fit hasty flags: an
// answer comes later than a call may take, and a late commit within the window.
func faults(op booking.Operation, times int) []fake.BookingFault {
	var all []fake.BookingFault
	for _, kind := range fake.BookingFaultKinds() {
		f := fake.BookingFault{Kind: kind, Op: op, Times: times}
		switch kind {
		case fake.BookingProblem:
			continue // the airline's own words: a rejection, and no fault
		case fake.BookingLatency, fake.BookingLateAnswer:
			f.Delay = 1500 * time.Millisecond
		case fake.BookingLateCommit:
			f.Delay = time.Second
		case fake.BookingRateLimit:
			f.RetryAfter = 3 * time.Second
		}
		all = append(all, f)
	}
	return all
}

func TestWhateverGoesWrongOnTheWayThereIsExactlyOneBooking(t *testing.T) {
	t.Parallel()
	creates, updates, cancels := faults(booking.OpCreate, 2), faults(booking.OpChange, 1), faults(booking.OpCancel, 1)
	for i, create := range creates {
		t.Run(string(create.Kind), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fake.BookingOptions{})
			s.start(t, hasty...)
			met := func(f fake.BookingFault) (check func()) {
				injected := s.site.Inject(f)
				return func() {
					t.Helper()
					// What took effect is found by a look, and not asked for again.
					if injected.Met() == 0 {
						t.Errorf("%s met no %s", f.Kind, f.Op)
					}
					s.waitedFor(t, f)
				}
			}
			once := func(op booking.Operation) {
				t.Helper()
				if n := s.effects(op); n != 1 {
					t.Errorf("%s took effect %d times", op, n)
				}
			}

			check := met(create)
			s.apply(t, "hard", `{}`)
			s.exactlyOne(t, s.awaitReady(t, "hard"))
			check()
			once(booking.OpCreate)

			check = met(updates[i])
			s.mustPatch(t, "hard", changes["departureDate"])
			s.exactlyOne(t, s.awaitReady(t, "hard"))
			check()
			once(booking.OpChange)

			check = met(cancels[i])
			s.run(t, "delete", "ticket", "hard", "--wait=false")
			s.awaitGone(t, "hard")
			check()
			once(booking.OpCancel)
			if live := s.live(); len(live) > 0 {
				t.Errorf("what is left: %+v", live)
			}
		})
	}
}

// waitedFor checks that a Retry-After was waited for.
func (s *stage) waitedFor(t *testing.T, f fake.BookingFault) {
	t.Helper()
	var asked time.Time
	for _, e := range s.entries(func(e fake.BookingEntry) bool { return e.Op == f.Op }) {
		if wait := e.Time.Sub(asked); f.RetryAfter > 0 && !asked.IsZero() && wait < f.RetryAfter {
			t.Errorf("%s was called %v after a Retry-After of %v", e.Op, wait, f.RetryAfter)
		}
		if asked = (time.Time{}); e.Problem == booking.RateLimited {
			asked = e.Time
		}
	}
}

func TestAStormOfFaultsEndsInExactlyOneBookingEach(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{Seed: 4})
	s.start(t, hasty...)
	// It ends: a back-off that grows to minutes is right, and too long for a test.
	for _, f := range faults("", 3) {
		f.Probability = 0.1
		s.site.Inject(f)
	}
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		s.apply(t, name, `{}`)
	}
	for _, name := range names {
		s.awaitReady(t, name)
		s.mustPatch(t, name, changes["passengers"])
	}
	for _, name := range names {
		tk := s.awaitReady(t, name)
		s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))
	}
	s.neverTwice(t)
	if live := s.live(); len(live) != len(names) {
		t.Errorf("%d bookings live for %d Tickets", len(live), len(names))
	}
	s.run(t, "delete", "tickets", "--all", "--wait=false")
	for _, name := range names {
		s.awaitGone(t, name)
	}
	if live := s.live(); len(live) > 0 {
		t.Errorf("what is left: %+v", live)
	}
}
