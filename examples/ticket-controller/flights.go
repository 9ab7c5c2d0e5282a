package main

import (
	"context"
	"errors"
	"iter"
	"slices"

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
		if c.ID == t.Status.BookingID {
			t.Status.State = v1.BookingNotFound
		}
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
	if slices.Contains(seen.Differs, pathFrom) || slices.Contains(seen.Differs, pathTo) { // it came past an older definition
		return tether.Observation{}, tether.Terminal(tether.Reason("InvalidSpec", errors.New("spec.from and spec.to do not change: another route is another ticket; change them back, and create a new Ticket")))
	}
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
