package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

func answered(ctx context.Context, t *v1.Ticket, a booking.Answer) tether.Observation {
	if a.Replayed { // it happened; how it stands now, a look-up tells
		return tether.Observation{State: tether.Present, ID: a.Booking.ID, Reference: a.Booking.ClientReference, Replay: true}
	}
	return observe(ctx, t, a.Booking)
}

// observeAll picks the live one of the bookings under a reference, or else the
// last.
func observeAll(ctx context.Context, t *v1.Ticket, all []booking.Booking) tether.Observation {
	live := slices.DeleteFunc(slices.Clone(all), func(b booking.Booking) bool {
		return b.Status == booking.Cancelled || b.Status == booking.Failed
	})
	switch {
	case len(all) == 0:
		return tether.Observation{State: tether.Absent}
	case len(live) > 1:
		return tether.Observation{State: tether.Ambiguous, Message: fmt.Sprintf("bookings %s and %s", live[0].ID, live[1].ID)}
	case len(live) == 1:
		return observe(ctx, t, live[0])
	}
	return observe(ctx, t, all[len(all)-1])
}

// observe says how a booking stands, and fills status with it.
func observe(ctx context.Context, t *v1.Ticket, b booking.Booking) tether.Observation {
	o := tether.Observation{State: states[b.Status], ID: b.ID, Reference: b.ClientReference, Version: b.Version}
	switch b.Status {
	case booking.Pending:
		o.Message = "the airline has not confirmed the booking yet"
	case booking.Confirmed:
		o.Message = "booked as " + b.RecordLocator
		o.Differs, o.Replace = differs(t, b)
	case booking.Flown: // it ran its course; what is being deleted has nothing left to cancel
		o.Reason, o.Message = "Flown", "the flight has been flown"
		if t.DeletionTimestamp != nil {
			o.State = tether.Ended
		}
		o.Differs, _ = differs(t, b)
	case booking.Failed:
		o.Reason, o.Message = "NotConfirmed", "the airline did not confirm the booking; change the ticket to book anew"
	case booking.Cancelled:
		o.Reason, o.Message = "Cancelled", "the booking was cancelled at the booking site"
		if b.Cancellation != nil && b.Cancellation.By == booking.ByAirline {
			o.Reason, o.Message = "CancelledByAirline", "the airline cancelled the booking"
		}
	}
	if t.Status.BookingID == "" || t.Status.BookingID == b.ID {
		tellChanges(ctx, t, b)
	}
	fill(&t.Status, b)
	return o
}

// tellChanges records an Event for what the airline did to a booking that stands. That
// one does not stand any more, Tether tells.
func tellChanges(ctx context.Context, t *v1.Ticket, b booking.Booking) {
	was := t.Status
	if was.Flight != nil && was.Flight.Departure != nil && b.Flight != nil && b.ScheduleChange != nil && !was.Flight.Departure.Time.Equal(seconds(b.Flight.DepartureTime)) {
		tether.Event(ctx, corev1.EventTypeWarning, "ScheduleChanged", fmt.Sprintf("the airline moved %s from %s to %s",
			b.Flight.Number, was.Flight.Departure.UTC().Format(time.RFC3339), b.Flight.DepartureTime.UTC().Format(time.RFC3339)))
	}
}

// observedEvery is how old lastObservedAt may get where nothing else changes: a
// write for each look would tell nobody anything.
const observedEvery = time.Hour

// seconds is a time as status keeps it: what is finer would differ at every look.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

func fill(s *v1.TicketStatus, b booking.Booking) {
	was := *s
	s.State, s.RecordLocator, s.Seats = v1.BookingState(b.Status), b.RecordLocator, b.Seats
	s.Price = &v1.Money{Amount: b.Price.Amount, Currency: b.Price.Currency}
	s.BookedAt = new(metav1.NewTime(seconds(b.BookedAt)))
	s.Flight = nil
	if b.Flight != nil {
		s.Flight = &v1.Flight{Number: b.Flight.Number, Departure: new(metav1.NewTime(seconds(b.Flight.DepartureTime)))}
	}
	if was.LastObservedAt == nil || time.Since(was.LastObservedAt.Time) > observedEvery || !equality.Semantic.DeepEqual(was, *s) {
		s.LastObservedAt = new(metav1.NewTime(seconds(time.Now())))
	}
}
