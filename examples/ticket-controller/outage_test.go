package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// requests is when the booking server was asked for anything.
func requests(w *world, since time.Time) (at []time.Duration) {
	for _, e := range w.Booking.Journal() {
		if d := e.Time.Sub(since); d >= 0 && !e.Late {
			at = append(at, d)
		}
	}
	return at
}

// busiest is how many of the requests came within a window, of all there are.
func busiest(at []time.Duration, window time.Duration) (most int) {
	for i, first := 0, 0; i < len(at); i++ {
		for at[i]-at[first] >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestAnOutageOfSixHoursEndsWithoutAStampedeAndAllIsBooked(t *testing.T) {
	t.Parallel()
	const (
		rate    = 0.1
		burst   = 2
		tickets = 60
		outage  = 6 * time.Hour
	)
	o := faketest.Options{Seed: 1, API: fake.APIOptions{BookmarkInterval: 24 * time.Hour}}
	passing(t, o, func(ctx context.Context, t *testing.T, w *world) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingUnavailable, For: outage})
		began := time.Now()
		w.Start(controls(func(o *manageOptions, _ *tether.RunOptions) {
			o.Budget = tether.NewBudget(tether.BudgetOptions{Rate: rate, Burst: burst})
		}))
		p := someone(t, w)
		for i := range tickets {
			p.create(ctx, fmt.Sprint("t", i))
			time.Sleep(time.Second)
		}
		time.Sleep(outage - time.Since(began))
		if n := len(requests(w, began)); n > 500 {
			t.Errorf("%d requests in six hours of outage, want about one a minute", n)
		}
		said, err := w.API.Await(ctx, func(e fake.APIEntry) bool { return e.Resource == "tickets/status" && e.Name == "t59" })
		var tk v1.Ticket
		if err != nil || json.Unmarshal(said.After, &tk) != nil || tk.Status.Conditions[0].Reason != "EndpointUnavailable" {
			t.Errorf("who waits is told %+v, %v", tk.Status.Conditions, err)
		}

		back := time.Now()
		time.Sleep(time.Minute)
		if n := len(requests(w, back)); n == 0 || n > rate*60+burst {
			t.Errorf("%d requests in the first minute, want at most %v", n, rate*60+burst)
		}
		time.Sleep(59 * time.Minute)
		if n := busiest(requests(w, began), time.Minute); n > rate*60+burst {
			t.Errorf("%d requests in one minute, want at most %v", n, rate*60+burst)
		}
		for i := range tickets {
			p.ready(ctx, fmt.Sprint("t", i))
		}
		if n := len(w.Booking.Bookings()); n != tickets {
			t.Errorf("%d bookings, want %d", n, tickets)
		}
	})
}

// By chance alone, some two seconds would have more.
func TestNoTwoSecondsHaveMoreThanTwiceTheirShareOfPolls(t *testing.T) {
	t.Parallel()
	const (
		tickets = 60
		poll    = time.Minute
		window  = 2 * time.Second
		share   = tickets * int(window) / int(poll)
	)
	o := faketest.Options{Seed: 1, API: fake.APIOptions{BookmarkInterval: 24 * time.Hour}}
	passing(t, o, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		for i := range tickets {
			p.create(ctx, fmt.Sprint("t", i))
		}
		w.Start(controls(func(o *manageOptions, _ *tether.RunOptions) {
			o.Poll, o.Budget = poll, tether.NewBudget(tether.BudgetOptions{Rate: 1.5, Burst: 1})
		}))
		time.Sleep(3 * time.Minute)
		begin := time.Now()
		time.Sleep(5 * time.Minute)
		var looks []time.Duration
		for _, e := range w.Booking.Journal() {
			if d := e.Time.Sub(begin); d >= 0 && e.Op == booking.OpGet {
				looks = append(looks, d)
			}
		}
		if want := 5 * tickets; len(looks) < want*9/10 || len(looks) > want*11/10 {
			t.Errorf("%d looks in five minutes, want about %d", len(looks), want)
		}
		if n := busiest(looks, window); n > 2*share {
			t.Errorf("%d looks within %v: their share is %d", n, window, share)
		}
	})
}
