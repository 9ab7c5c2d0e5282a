package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetherkube/tether/booking"
)

// BookingEntry is what the journal says of one request, or of the landing of one
// that came late.
type BookingEntry struct {
	Seq    int           // 1, 2, … in the order of arrival
	Time   time.Time     // of arrival
	Since  time.Duration // from the making of the server to Time
	Caller string        // never the token itself; empty where none was accepted

	Op        booking.Operation // empty for a path that the contract does not have
	Method    string
	Reference string // the client_reference that it is about, where known
	Key       string // its Idempotency-Key
	BookingID string // the booking that it is about, where known

	// Effect says that this request changed what is booked. A replay has none.
	Effect bool
	// Late says that this is no arrival but a landing: see BookingLateCommit.
	Late bool
	// Replayed says that the answer was kept from an earlier request.
	Replayed bool
	// Status is the HTTP status that was answered. It is 0 while the request runs,
	// where the connection was cut, and for a landing.
	Status int
	// Problem is the kind of problem that was answered, or that a landing met.
	Problem booking.Kind
	// Faults are those that met the request.
	Faults []BookingFaultKind
	// Done says that the entry does not change any more.
	Done bool
}

// String is one line, without the date, so that two runs can be compared.
func (e BookingEntry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d +%v ", e.Seq, e.Since.Round(time.Millisecond))
	if e.Op == "" {
		b.WriteString(e.Method + " (no such operation)")
	} else {
		b.WriteString(string(e.Op))
	}
	for _, f := range [][2]string{{"caller", e.Caller}, {"ref", e.Reference}, {"key", e.Key}, {"id", e.BookingID}} {
		if f[1] != "" {
			fmt.Fprintf(&b, " %s=%s", f[0], f[1])
		}
	}
	switch {
	case !e.Done:
		b.WriteString(" running")
	case e.Late:
		b.WriteString(" landed late")
	case e.Status == 0:
		b.WriteString(" cut")
	default:
		fmt.Fprintf(&b, " %d", e.Status)
	}
	if e.Problem != "" {
		b.WriteString(" " + string(e.Problem))
	}
	if e.Effect {
		b.WriteString(" EFFECT")
	}
	if e.Replayed {
		b.WriteString(" replayed")
	}
	for _, f := range e.Faults {
		b.WriteString(" fault=" + string(f))
	}
	return b.String()
}

// arrived, finished and clone are for the journal.
func (e BookingEntry) arrived(seq int, at time.Time, since time.Duration) BookingEntry {
	e.Seq, e.Time, e.Since = seq, at, since
	return e
}

func (e BookingEntry) finished() bool { return e.Done }

func (e BookingEntry) clone() BookingEntry {
	e.Faults = slices.Clone(e.Faults)
	return e
}

// Journal is every entry so far, oldest first, up to JournalLimit of the newest.
// The slice is the caller's.
func (s *BookingServer) Journal() []BookingEntry { return s.journal.snapshot() }

// Transcript is the journal for people, one line for each entry.
func (s *BookingServer) Transcript() string { return s.journal.transcript() }

// Await waits until an entry that match accepts is in the journal, and answers
// the first such. An entry is looked at when it arrives, takes effect, and is
// done. Where ctx ends first, the error holds the transcript.
func (s *BookingServer) Await(ctx context.Context, match func(BookingEntry) bool) (BookingEntry, error) {
	return s.journal.await(ctx, match)
}

// CreatesInEffect is the number of creates with the reference that ever took
// effect, whatever became of the bookings, for all callers together.
func (s *BookingServer) CreatesInEffect(reference string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.creates[reference]
}
