package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// life is what one Ticket goes through under a controller that is killed in it.
type life struct {
	*stage
	c *controller // the one that runs, if any
}

// begin starts a controller. Its windows are longer than a test: whatever waits for
// one to pass is seen.
func (l *life) begin(t *testing.T) {
	t.Helper()
	l.c = l.start(t, "--call-timeout=20s", "--settle=90s")
}

func (l *life) restart(t *testing.T) {
	t.Helper()
	l.c.kill(t)
	l.begin(t)
}

// killedAt kills the controller when its n-th request that matches has come to the
// point. One that the server has not seen by then never comes.
func (l *life) killedAt(t *testing.T, at proxy.Point, n int, match func(proxy.Exchange) bool, act func(*testing.T, *life)) {
	t.Helper()
	hold := l.hold(t, at, n, match)
	act(t, l)
	reached(t, hold)
	l.c.kill(t)
}

// What people do.
func ordered(t *testing.T, l *life)  { l.create(t, "short", `{}`) }
func changed(t *testing.T, l *life)  { l.mustPatch(t, "short", changes["contact"]) }
func replaced(t *testing.T, l *life) { l.mustPatch(t, "short", changes["passengers"]) }
func deleted(t *testing.T, l *life)  { l.remove(t, "short") }

// What comes before.
func running(t *testing.T, l *life) { l.begin(t) }
func resumed(t *testing.T, l *life) { l.begin(t) }

func booked(t *testing.T, l *life) {
	l.begin(t)
	ordered(t, l)
	l.awaitReady(t, "short")
}

func bookedEarlier(t *testing.T, l *life) {
	booked(t, l)
	l.restart(t)
	l.c.line(t, 0, "pass ended") // of the first list: what comes after it is of what people do
}

// halfway is what a controller leaves that is killed at a request.
func halfway(before func(*testing.T, *life), at proxy.Point, match func(proxy.Exchange) bool, act func(*testing.T, *life)) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		before(t, l)
		l.killedAt(t, at, 1, match, act)
	}
}

// What must have come of it: how often each operation took effect, ever, and how
// the last booking stands.
func endsAs(creates, changes, cancels int) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		t.Helper()
		if creates > cancels {
			l.exactlyOne(t, l.awaitReady(t, "short"))
			l.neverNone(t)
		} else {
			l.awaitGone(t, "short")
			if live := l.live(); len(live) > 0 {
				t.Errorf("what is left: %+v", live)
			}
		}
		l.neverTwice(t)
		for op, want := range map[booking.Operation]int{booking.OpCreate: creates, booking.OpChange: changes, booking.OpCancel: cancels} {
			if got := l.effects(op); got != want {
				t.Errorf("%s took effect %d times, not %d", op, got, want)
			}
		}
	}
}

// neverNone checks that from the first booking on there was always one: what is
// replaced ends after the new one stands.
func (s *stage) neverNone(t *testing.T) {
	t.Helper()
	live := 0
	for _, e := range s.entries(func(e fake.BookingEntry) bool { return e.Effect }) {
		switch e.Op {
		case booking.OpCreate:
			live++
		case booking.OpCancel:
			if live--; live == 0 {
				t.Errorf("with %s nothing was booked any more", e)
			}
		}
	}
}

var lives = []struct {
	name    string
	prepare func(*testing.T, *life)
	act     func(*testing.T, *life)
	end     func(*testing.T, *life)
}{
	{"create", running, ordered, endsAs(1, 0, 0)},
	{"create, begun by one that was killed before it booked", halfway(running, proxy.Before, creates, ordered), resumed, endsAs(1, 0, 0)},
	{"create, begun by one that was killed after it booked", halfway(running, proxy.After, creates, ordered), resumed, endsAs(1, 0, 0)},
	{"change", booked, changed, endsAs(1, 1, 0)},
	{"change of what an earlier one booked", bookedEarlier, changed, endsAs(1, 1, 0)},
	{"replacement", booked, replaced, endsAs(2, 0, 1)},
	{"replacement of what an earlier one booked", bookedEarlier, replaced, endsAs(2, 0, 1)},
	{"replacement, begun by one that was killed after it booked", halfway(booked, proxy.After, creates, replaced), resumed, endsAs(2, 0, 1)},
	{"delete", booked, deleted, endsAs(1, 0, 1)},
	{"delete of what an earlier one booked", bookedEarlier, deleted, endsAs(1, 0, 1)},
	{"delete, begun by one that was killed after it cancelled", halfway(booked, proxy.After, cancels, deleted), resumed, endsAs(1, 0, 1)},
	{"delete, begun by one that was killed before it booked", halfway(running, proxy.Before, creates, ordered), func(t *testing.T, l *life) {
		deleted(t, l)
		resumed(t, l)
	}, endsAs(0, 0, 0)},
}

func TestAControllerThatIsKilledBetweenAnyTwoCallsLeavesNothingUndoneOrDoneTwice(t *testing.T) {
	t.Parallel()
	for _, story := range lives {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			for n, e := range callsOf(t, story.prepare, story.act, story.end) {
				for _, at := range []proxy.Point{proxy.Before, proxy.After} {
					if at == proxy.After && e.Method == http.MethodGet {
						continue // the same as before the next call
					}
					t.Run(fmt.Sprintf("%s call %d, %s %s", at, n+1, e.Proxy, e.Method), func(t *testing.T) {
						t.Parallel()
						l := &life{stage: newStage(t, fake.BookingOptions{})}
						story.prepare(t, l)
						l.killedAt(t, at, n+1, ofATicket, story.act)
						l.begin(t)
						story.end(t, l)
					})
				}
			}
		})
	}
}

// callsOf lives a life undisturbed, and returns the calls that it takes.
func callsOf(t *testing.T, prepare, act, end func(*testing.T, *life)) []proxy.Exchange {
	t.Helper()
	l := &life{stage: newStage(t, fake.BookingOptions{})}
	prepare(t, l)
	before := len(l.journal.Exchanges(nil))
	act(t, l)
	end(t, l)
	calls := l.journal.Exchanges(func(e proxy.Exchange) bool { return e.Number > before && ofATicket(e) })
	if len(calls) < 2 {
		t.Fatalf("it took these calls: %v", calls)
	}
	return calls
}
