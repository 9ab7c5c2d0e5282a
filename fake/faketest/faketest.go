package faketest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/internal/serving"
)

// Options configure [Run]. The zero value works.
type Options struct {
	// Seed fixes which requests a fault with a probability meets, ids and prices: it
	// is the seed of both servers, where their own is 0 [0].
	Seed uint64
	// API configures the API server [a cluster without definitions of one's own].
	API fake.APIOptions
	// Booking configures the booking server [one without faults].
	Booking fake.BookingOptions
	// Outside answers what programs send through their client, in place of the
	// booking server: the outside of a controller that books no flights. Its requests
	// are those of a process: counted, and cut at its end. It need not come to an end
	// before the client has given up, but must when a request's context ends [the
	// World's booking server].
	Outside http.Handler
	// Limit is how much virtual time a test may take; then the context that the test
	// has got ends [30 days].
	Limit time.Duration
	// StopTimeout is how long, in virtual time, a program may take to end once it is
	// told to [1 min].
	StopTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.API.Seed == 0 {
		o.API.Seed = o.Seed
	}
	if o.Booking.Seed == 0 {
		o.Booking.Seed = o.Seed
	}
	if o.Limit == 0 {
		o.Limit = 30 * 24 * time.Hour
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = time.Minute
	}
	return o
}

// validate says what is wrong with o, and names each field. The servers look at
// what is theirs.
func (o Options) validate() error {
	var errs []error
	if o.Limit < 0 || o.StopTimeout < 0 {
		errs = append(errs, errors.New("Options.Limit, Options.StopTimeout: want no negative duration"))
	}
	if err := o.API.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("Options.API: %w", err))
	}
	if err := o.Booking.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("Options.Booking: %w", err))
	}
	return errors.Join(errs...)
}

// World is what one bubble holds beside the test. Its methods are for the test's
// own goroutine; the servers may be used by any.
type World struct {
	// API is the Kubernetes API. Its Config is for the test's own clients, whom no
	// Stop or Crash of a program touches.
	API *fake.APIServer
	// Booking is the booking API.
	Booking *fake.BookingServer

	outside     *serving.Serving // nil: it is Booking
	t           *testing.T
	stopTimeout time.Duration
	processes   []*Process
}

// Run runs f in a bubble with a World. ctx ends when f has returned, or
// Options.Limit after the start; t is the bubble's, and the outer one is not to be
// used meanwhile. When f has returned, in whatever way, the programs are stopped in
// the reverse order of their starts, then the servers are closed. Where the test
// has failed by then, the journals of both servers are logged, with the seed.
//
// A program that does not end in time, or that returned an error without having
// been crashed, fails the test; see [World.Start] and [Process.Wait].
func Run(t *testing.T, o Options, f func(ctx context.Context, t *testing.T, w *World)) {
	t.Helper()
	if err := o.validate(); err != nil {
		t.Fatalf("faketest: %v", err)
	}
	o = o.withDefaults()
	synctest.Test(t, func(t *testing.T) {
		limit := fmt.Errorf("faketest: the test has taken more than %v of virtual time: what it waits for does not come; Options.Limit says how long it may", o.Limit)
		ctx, cancel := context.WithTimeoutCause(t.Context(), o.Limit, limit)
		defer cancel()
		w := &World{
			API: fake.NewAPIServer(o.API), Booking: fake.NewBookingServer(o.Booking),
			t: t, stopTimeout: o.StopTimeout,
		}
		if o.Outside != nil {
			w.outside = serving.New(o.Outside, serving.Options{})
		}
		// After f, whether it returned, failed or panicked. It is no Cleanup, for t's
		// context has ended by then, and programs would stop all at once.
		defer w.close(o.Seed)
		f(ctx, t, w)
	})
}

// close ends all that is in the bubble.
func (w *World) close(seed uint64) {
	for i := len(w.processes) - 1; i >= 0; i-- {
		w.processes[i].finish()
	}
	if w.outside != nil {
		w.outside.Close()
	}
	w.API.Close()
	w.Booking.Close()
	if w.t.Failed() {
		w.t.Logf("seed %d; the API server's journal:\n%s\nthe booking server's journal:\n%s", seed, w.API.Transcript(), w.Booking.Transcript())
	}
}
