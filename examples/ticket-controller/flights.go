package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

// Tickets is the resource that this controller works on.
var Tickets = tether.Resource[*v1.Ticket]{GroupVersion: v1.GroupVersion, Kind: "Ticket", Plural: "tickets"}

// flights books Tickets at the booking API: one booking for each, exactly once.
type flights struct{ api *booking.Client }

// Observe looks a booking up, by its id or by the reference that stands beside it.
func (f *flights) Observe(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) {
	if c.ID == "" {
		found, err := f.api.Lookup(ctx, c.Reference)
		if err != nil {
			return tether.Observation{}, outcome(t, err)
		}
		return observeAll(ctx, t, found), nil
	}
	b, err := f.api.Get(ctx, c.ID)
	switch {
	case is(err, booking.NotFound), is(err, booking.BadArgument): // what is no id is no booking's
		return tether.Observation{State: tether.Absent}, nil
	case err != nil:
		return tether.Observation{}, outcome(t, err)
	}
	return observe(ctx, t, b), nil
}

// Create books.
func (f *flights) Create(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) {
	a, err := f.api.Create(ctx, c.Key, request(t, c.Reference))
	switch {
	case is(err, booking.ReferenceTaken):
		return tether.Observation{State: tether.Present, ID: takenBy(err), Reference: c.Reference, Replay: true}, nil
	case is(err, booking.ReferenceClosed):
		return tether.Observation{State: tether.Closed}, nil
	case err != nil:
		return tether.Observation{}, outcome(t, err)
	}
	return answered(ctx, t, a), nil
}

// Update changes the booking in place.
func (f *flights) Update(ctx context.Context, t *v1.Ticket, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	if seen.Reason == "Flown" {
		return tether.Observation{}, tether.Terminal(tether.Reason("Flown", errors.New("the flight has been flown and does not change; create a new Ticket for another flight")))
	}
	a, err := f.api.Change(ctx, c.Key, seen.ID, seen.Version, change(t, seen.Differs))
	if err != nil {
		return tether.Observation{}, outcome(t, err)
	}
	return answered(ctx, t, a), nil
}

// Delete cancels the booking.
func (f *flights) Delete(ctx context.Context, t *v1.Ticket, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	a, err := f.api.Cancel(ctx, c.Key, seen.ID, seen.Version)
	switch {
	case is(err, booking.NotFound):
		return tether.Observation{State: tether.Absent}, nil
	case is(err, booking.StatusConflict):
		return f.uncancellable(ctx, t, seen.ID)
	case err != nil:
		return tether.Observation{}, outcome(t, err)
	}
	return answered(ctx, t, a), nil
}

// uncancellable is a booking that cannot be cancelled any more: one that was flown
// meanwhile has nothing left to cancel.
func (f *flights) uncancellable(ctx context.Context, t *v1.Ticket, id string) (tether.Observation, error) {
	b, err := f.api.Get(ctx, id)
	if err != nil {
		return tether.Observation{}, tether.NoEffect(outcome(t, err))
	}
	o := observe(ctx, t, b)
	if b.Status == booking.Flown {
		o.State = tether.Ended
	}
	return o, nil
}

// Fence closes the reference: no booking can be made under it any more.
func (f *flights) Fence(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) {
	closed, err := f.api.CloseReference(ctx, c.Key, c.Reference)
	if err != nil {
		return tether.Observation{}, outcome(t, err)
	}
	o := observeAll(ctx, t, closed.Bookings)
	o.Replay = closed.Replayed
	if o.State == tether.Absent {
		o.State = tether.Closed
	}
	return o, nil
}

// Rebind puts the booking under another reference.
func (f *flights) Rebind(ctx context.Context, t *v1.Ticket, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	a, err := f.api.Change(ctx, c.Key, seen.ID, seen.Version, booking.Change{ClientReference: &c.Reference})
	if err != nil {
		return tether.Observation{}, outcome(t, err)
	}
	return answered(ctx, t, a), nil
}

// List is every booking of the account.
func (f *flights) List(ctx context.Context) iter.Seq2[tether.Listed, error] {
	return func(yield func(tether.Listed, error) bool) {
		for b, err := range f.api.List(ctx, "") {
			if !yield(tether.Listed{Reference: b.ClientReference, ID: b.ID, State: states[b.Status]}, err) {
				return
			}
		}
	}
}

// states are what a booking's status is to Tether.
var states = map[booking.Status]tether.State{
	booking.Pending: tether.Pending, booking.Confirmed: tether.Present, booking.Flown: tether.Present,
	booking.Failed: tether.Failed, booking.Cancelled: tether.Ended,
}

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
		tellChanges(ctx, t, b, o)
	}
	fill(&t.Status, b)
	return o
}

// tellChanges records an Event for what the airline did to a booking that stood.
func tellChanges(ctx context.Context, t *v1.Ticket, b booking.Booking, o tether.Observation) {
	was := t.Status
	if was.State == v1.BookingConfirmed && o.Reason == "CancelledByAirline" {
		tether.Event(ctx, corev1.EventTypeWarning, o.Reason, o.Message)
	}
	if was.Flight != nil && was.Flight.Departure != nil && b.Flight != nil && b.ScheduleChange != nil && !was.Flight.Departure.Time.Equal(b.Flight.DepartureTime) {
		tether.Event(ctx, corev1.EventTypeWarning, "ScheduleChanged", fmt.Sprintf("the airline moved %s from %s to %s",
			b.Flight.Number, was.Flight.Departure.UTC().Format(time.RFC3339), b.Flight.DepartureTime.UTC().Format(time.RFC3339)))
	}
}

// observedEvery is how old lastObservedAt may get where nothing else changes: a
// write for each look would tell nobody anything.
const observedEvery = time.Hour

func fill(s *v1.TicketStatus, b booking.Booking) {
	was := *s
	s.State, s.RecordLocator, s.Seats = v1.BookingState(b.Status), b.RecordLocator, b.Seats
	s.Price = &v1.Money{Amount: b.Price.Amount, Currency: b.Price.Currency}
	s.BookedAt = new(metav1.NewTime(b.BookedAt.Truncate(time.Second)))
	s.Flight = nil
	if b.Flight != nil {
		s.Flight = &v1.Flight{Number: b.Flight.Number, Departure: new(metav1.NewTime(b.Flight.DepartureTime))}
	}
	if was.LastObservedAt == nil || time.Since(was.LastObservedAt.Time) > observedEvery || !equality.Semantic.DeepEqual(was, *s) {
		s.LastObservedAt = new(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
}
