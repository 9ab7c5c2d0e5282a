package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

// slow is a booking API that follows its contract and takes its time: look-ups by
// reference lag, by less than a window, and confirmations come later.
var slow = fake.BookingOptions{ReferenceLag: 3 * time.Second, ConfirmAfter: time.Second}

// patient flags fit it.
var patient = []string{"--call-timeout=2s", "--settle=4s"}

// begunReplacement books a Ticket and lets its replacement be asked for.
func begunReplacement(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, slow)
	s.start(t, patient...)
	s.create(t, "slow", `{}`)
	old := s.awaitReady(t, "slow").Status.BookingID
	s.mustPatch(t, "slow", changes["passengers"])
	ctx, cancel := patience(t, "a second booking")
	defer cancel()
	if _, err := s.site.Await(ctx, func(e fake.BookingEntry) bool {
		return e.Op == booking.OpCreate && e.Effect && e.Done && e.BookingID != old
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATicketThatIsDeletedWhileItsReplacementIsPendingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := begunReplacement(t)
	s.remove(t, "slow")
	s.awaitGone(t, "slow")
	if live := s.live(); len(live) > 0 {
		t.Errorf("released, and %v stands", live)
	}
	s.bounded(t)
}

func TestATicketThatIsChangedWhileItsReplacementIsPendingEndsAsItSays(t *testing.T) {
	t.Parallel()
	s := begunReplacement(t)
	s.mustPatch(t, "slow", `{"spec":{"passengers":[{"givenName":"Fourth","familyName":"Passenger"}]}}`)
	s.exactlyOne(t, s.await(t, "slow", "ready for its last change", func(tk *v1.Ticket) bool {
		return ready(tk) && tk.Status.ObservedGeneration == 3
	}))
	s.bounded(t)
}

// bounded checks that nobody asked in circles.
func (s *stage) bounded(t *testing.T) {
	t.Helper()
	if n := len(s.site.Journal()); n > 40 {
		t.Errorf("%d calls were made, want a few dozen at most", n)
	}
}

func TestAFlownTicketGoesWithoutACancellation(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	s.start(t)
	s.create(t, "flown", `{}`)
	id := s.awaitReady(t, "flown").Status.BookingID
	if err := s.site.Fly(id); err != nil {
		t.Fatal(err)
	}
	s.remove(t, "flown")
	s.awaitGone(t, "flown")
	if b := s.booked(t, id); b.Status != booking.Flown {
		t.Errorf("the booking is %s", b.Status)
	}
	if refused := slices.ContainsFunc(s.site.Journal(), func(e fake.BookingEntry) bool { return e.Op == booking.OpCancel }); refused {
		t.Error("a cancellation was tried")
	}
}
