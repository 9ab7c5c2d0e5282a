// Package register holds the booking server, which is the oracle of the crash
// matrix, to what an oracle has to be: that each reference behaves as one register,
// whoever speaks to it at the same time, and whatever answers are lost.
package register

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// input is what a caller asks of a reference.
type input struct {
	op        string // create, cancel, close or look
	reference string
	key       string
}

// output is what it was told. Unknown: it may have taken effect, or not.
type output struct {
	state   string // absent, live, cancelled or closed
	unknown bool
}

// register is what a reference may be: nothing was booked, one is live, it was
// cancelled. A closed one accepts no booking any more.
type register struct {
	booked, live, closed bool
}

func (r register) String() string {
	switch {
	case r.live:
		return "live"
	case r.booked:
		return "cancelled"
	case r.closed:
		return "closed"
	}
	return "absent"
}

var model = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			reference := op.Input.(input).reference //nolint:forcetypeassert // it holds nothing else
			by[reference] = append(by[reference], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{register{}} },
	Step: func(state, in, out any) []any {
		was, what, told := state.(register), in.(input), out.(output) //nolint:forcetypeassert // it holds nothing else
		next := was
		switch what.op {
		case "create":
			if !was.booked && !was.closed {
				next.booked, next.live = true, true
			}
		case "cancel":
			next.live = false
		case "close":
			next.closed = true
		}
		switch {
		case told.unknown:
			return []any{was, next} // it took effect, or it did not
		case told.state == next.String(), told.state == "absent" && !next.booked: // a list does not tell that it is closed
			return []any{next}
		}
		return nil
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}).ToModel()

// caller is one of those that speak to the server at the same time.
type caller struct {
	id     int
	api    *booking.Client
	random *rand.Rand
	since  time.Time
	done   []porcupine.Operation
}

func (c *caller) act(t *testing.T, n int) {
	t.Helper()
	in := input{
		op:        []string{"create", "create", "cancel", "close", "look", "look"}[c.random.IntN(6)],
		reference: fmt.Sprintf("reference-%d", c.random.IntN(4)),
		key:       fmt.Sprintf("key-%d-%d", c.id, n),
	}
	begin := time.Since(c.since)
	told, err := c.call(t, in)
	end := time.Since(c.since)
	var e *booking.Error
	switch {
	case err == nil:
	case in.op != "look" && errors.As(err, &e) && !e.Definite():
		told, end = output{unknown: true}, time.Hour // it may land any time later
	default:
		return // it had no effect, or nothing follows from it
	}
	c.done = append(c.done, porcupine.Operation{ClientId: c.id, Input: in, Call: begin.Nanoseconds(), Output: told, Return: end.Nanoseconds()})
}

// call says what the reference is like after the call, as the answer tells it.
func (c *caller) call(t *testing.T, in input) (output, error) {
	t.Helper()
	ctx := t.Context()
	state := func(all []booking.Booking) output {
		switch {
		case len(all) == 0:
			return output{state: "absent"}
		case all[0].Status == booking.Cancelled:
			return output{state: "cancelled"}
		}
		return output{state: "live"}
	}
	switch in.op {
	case "create":
		a, err := c.api.Create(ctx, in.key, booking.Request{
			ClientReference: in.reference, From: "ICN", To: "JFK", DepartureDate: "2027-05-01", Cabin: booking.Economy,
			Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
		})
		var e *booking.Error
		switch {
		case errors.As(err, &e) && e.Kind == booking.ReferenceTaken:
			return c.call(t, input{op: "look", reference: in.reference})
		case errors.As(err, &e) && e.Kind == booking.ReferenceClosed:
			return c.call(t, input{op: "look", reference: in.reference})
		}
		return state([]booking.Booking{a.Booking}), err
	case "close":
		a, err := c.api.CloseReference(ctx, in.key, in.reference)
		told := state(a.Bookings)
		if told.state == "absent" {
			told.state = "closed"
		}
		return told, err
	}
	found, err := c.api.Lookup(ctx, in.reference)
	if in.op == "look" || err != nil || len(found) == 0 {
		return state(found), err
	}
	a, err := c.api.Cancel(ctx, in.key, found[0].ID, found[0].Version)
	return state([]booking.Booking{a.Booking}), err
}

func TestEachReferenceIsOneRegister(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			server := fake.NewBookingServer(fake.BookingOptions{Seed: seed, ReferenceUniqueness: fake.UniqueForever})
			defer server.Close()
			server.Inject(fake.BookingFault{Kind: fake.BookingCutAfter, Probability: 0.1})
			server.Inject(fake.BookingFault{Kind: fake.BookingCutBefore, Probability: 0.1})
			server.Inject(fake.BookingFault{Kind: fake.BookingInternalAfter, Probability: 0.05})
			callers := make([]*caller, 5)
			since := time.Now()
			var wg sync.WaitGroup
			for i := range callers {
				api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: server.Transport(), Timeout: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer api.Close()
				c := &caller{id: i, api: api, random: rand.New(rand.NewPCG(seed, uint64(i))), since: since}
				callers[i] = c
				wg.Go(func() {
					for n := range 25 {
						c.act(t, n)
					}
				})
			}
			wg.Wait()
			var history []porcupine.Operation
			for _, c := range callers {
				history = append(history, c.done...)
			}
			if got := porcupine.CheckOperationsTimeout(model, history, time.Minute); got != porcupine.Ok {
				t.Errorf("%s: no order of these explains what was told: %s", got, server.Transcript())
			}
		})
	}
}
