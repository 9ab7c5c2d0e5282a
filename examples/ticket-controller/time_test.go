package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

func TestARetryAfterOfAnHourIsHonouredToTheSecond(t *testing.T) {
	t.Parallel()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingRateLimit, Op: booking.OpCreate, Times: 1, RetryAfter: time.Hour})
		w.Start(controls(nil))
		p := someone(t, w)
		p.create(ctx, "a")
		refused, err := w.Booking.Await(ctx, func(e fake.BookingEntry) bool { return e.Status == http.StatusTooManyRequests })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		p.label(ctx, "a", 1)
		time.Sleep(10 * time.Minute)
		p.moveTo(ctx, "a", "2027-06-01")
		time.Sleep(10 * time.Minute)
		p.patch(ctx, "a", `{"metadata":{"annotations":{"flights.com/reconcile-at":"now"}}}`)

		booked := untilReady(ctx, t, w, "a").Time.Sub(refused.Time)
		if booked < time.Hour || booked > time.Hour+time.Second {
			t.Errorf("booked %v after the refusal, want an hour", booked)
		}
		if all := calls(w, refused.Time); len(all) != 2 || all[1] < time.Hour {
			t.Errorf("the airline was called at %v after the refusal, want nothing before the hour", all[1:])
		}
		once(t, w, 1)
		if got := w.Booking.Bookings()[0].DepartureDate; got != "2027-06-01" {
			t.Errorf("booked for %s, want what is wanted by then", got)
		}
	})
}

func TestABackoffIsNotTouchedByEventsAndResetByANewGeneration(t *testing.T) {
	t.Parallel()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingUnavailable})
		// A budget would take the endpoint for unavailable, and let all wait for it.
		w.Start(controls(func(o *manageOptions, _ *tether.RunOptions) { o.Budget = nil }))
		p := someone(t, w)
		begin := time.Now()
		p.create(ctx, "a")
		time.Sleep(time.Hour)
		for i := range 60 {
			p.label(ctx, "a", i)
			time.Sleep(30*time.Second + time.Millisecond)
		}
		gaps := between(calls(w, begin))
		for i, gap := range gaps {
			most := min(time.Second<<i, 5*time.Minute)
			if gap < most*8/10 || gap > most {
				t.Errorf("%v before retry %d, want at most %v and at least four fifths of it", gap, i+1, most)
			}
		}
		if len(gaps) < 20 {
			t.Errorf("%d retries in an hour and a half", len(gaps))
		}

		changed := time.Now()
		p.moveTo(ctx, "a", "2027-06-01")
		time.Sleep(5 * time.Second)
		at := calls(w, changed)
		if len(at) < 3 || at[0] > 100*time.Millisecond || at[1]-at[0] > time.Second || at[2]-at[1] > 2*time.Second {
			t.Errorf("called at %v after a new generation, want at once, and a second and three later at most", at)
		}
	})
}

func between(at []time.Duration) (gaps []time.Duration) {
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	return gaps
}

func TestThePollsOfAWeekAreSpread(t *testing.T) {
	t.Parallel()
	const (
		tickets = 60
		poll    = 48 * time.Hour
		window  = 16 * time.Hour
		share   = tickets * int(window) / int(poll)
	)
	// What is not looked at here need not be worked out: a bookmark a minute.
	o := faketest.Options{Seed: 1, API: fake.APIOptions{BookmarkInterval: 24 * time.Hour}}
	passing(t, o, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		for i := range tickets {
			p.create(ctx, fmt.Sprint("t", i))
		}
		w.Start(controls(func(o *manageOptions, _ *tether.RunOptions) { o.Poll = poll }))
		time.Sleep(time.Minute)
		booked := time.Now()
		time.Sleep(7 * 24 * time.Hour)

		looks, from := map[int]int{}, 0
		for _, e := range w.Booking.Journal() {
			if d := e.Time.Sub(booked); d >= 0 && e.Op == booking.OpGet {
				looks[int(d/window)]++
				from++
			}
		}
		if want := tickets * int(7*24*time.Hour) / int(poll); from < want*9/10 || from > want*12/10 {
			t.Errorf("%d looks in a week, want about %d", from, want)
		}
		for at, n := range looks {
			if n > 2*share {
				t.Errorf("%d looks within %v, %v after all were booked: their share is %d", n, window, time.Duration(at)*window, share)
			}
		}
	})
}
