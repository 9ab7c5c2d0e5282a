package main

import (
	"context"
	"testing"
	"time"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// lookupOnly is an airline that accepts whatever is asked of it, whose lists are
// behind, and keeps no keys: what a window is for.
var lookupOnly = fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone, KeyLifetime: time.Nanosecond, ReferenceLag: 45 * time.Second}

const settle = 2 * time.Minute

func looksUpOnly(o *manageOptions, _ *tether.RunOptions) {
	o.Guarantee, o.Settle = tether.LookupOnly, settle
}

func TestALostAnswerIsWaitedForAndTheBookingMadeOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fake.BookingFault
		calls int // creates
	}{
		{"it took effect", fake.BookingFault{Kind: fake.BookingCutAfter}, 1},
		{"it did not", fake.BookingFault{Kind: fake.BookingCutBefore}, 2},
		{"it takes effect late", fake.BookingFault{Kind: fake.BookingLateCommit, Delay: time.Minute}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1, Booking: lookupOnly}, func(ctx context.Context, t *testing.T, w *world) {
				c.fault.Op, c.fault.Nth = booking.OpCreate, 1
				w.Booking.Inject(c.fault)
				w.Start(controls(looksUpOnly))
				time.Sleep(time.Hour)
				someone(t, w).create(ctx, "a")
				begin := time.Now()
				time.Sleep(time.Hour)
				someone(t, w).ready(ctx, "a")
				once(t, w, 1)
				at := creates(w, begin)
				if len(at) != c.calls || len(at) > 1 && (at[1] < at[0]+settle || at[1] > at[0]+2*settle) {
					t.Errorf("creates at %v, want %d, a second one when the window of %v has passed, and not much later", at, c.calls, settle)
				}
			})
		})
	}
}

func TestAfterACrashTheWindowIsWaitedForBeforeAnotherCreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fake.BookingFault
		calls int
	}{
		{"the create took effect", fake.BookingFault{Kind: fake.BookingLateAnswer, Delay: 10 * time.Second}, 1},
		{"the create did not", fake.BookingFault{Kind: fake.BookingCutBefore}, 2},
		{"the create takes effect late", fake.BookingFault{Kind: fake.BookingLateCommit, Delay: 50 * time.Second}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1, Booking: lookupOnly}, func(ctx context.Context, t *testing.T, w *world) {
				c.fault.Op, c.fault.Nth = booking.OpCreate, 1
				w.Booking.Inject(c.fault)
				first := w.Start(controls(looksUpOnly))
				time.Sleep(time.Hour)
				someone(t, w).create(ctx, "a")
				if _, err := w.Booking.Await(ctx, func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && len(e.Faults) > 0 }); err != nil {
					t.Fatal(err)
				}
				first.Crash()
				begin := time.Now()
				w.Start(controls(looksUpOnly))
				time.Sleep(time.Hour)
				someone(t, w).ready(ctx, "a")
				once(t, w, 1)
				if at := creates(w, begin); len(at) != c.calls || len(at) > 1 && (at[1] < settle || at[1] > 2*settle) {
					t.Errorf("creates at %v after the crash, want %d, a second one when the window of %v has passed, and not much later", at, c.calls, settle)
				}
			})
		})
	}
}
