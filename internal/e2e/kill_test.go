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

func replacedAgain(t *testing.T, l *life) {
	l.mustPatch(t, "short", `{"spec":{"passengers":[{"givenName":"Fourth","familyName":"Passenger"}]}}`)
}

// soldOut is a day without a seat.
const soldOut = "2027-05-05"

func orderedSoldOut(t *testing.T, l *life) {
	l.create(t, "short", `{"spec":{"departureDate":"`+soldOut+`"}}`)
}

func changedToSoldOut(t *testing.T, l *life) {
	l.mustPatch(t, "short", `{"spec":{"departureDate":"`+soldOut+`"}}`)
}

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

// then does one thing after the other.
func then(all ...func(*testing.T, *life)) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		for _, do := range all {
			do(t, l)
		}
	}
}

// rejected: the Ticket is stalled for want of a seat.
func rejected(t *testing.T, l *life) {
	t.Helper()
	l.await(t, "short", "stalled", stalled("SoldOut"))
}

// booksAnotherDay shows that a rejection has spoiled nothing.
func booksAnotherDay(creates, updates int) func(*testing.T, *life) {
	return then(func(t *testing.T, l *life) { l.mustPatch(t, "short", changes["departureDate"]) }, endsAs(creates, updates, 0))
}

func nothing(*testing.T, *life) {}

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

// lives are the ones to be killed in, from act to end; afterwards comes what shows
// more, where there is anything.
var lives = []struct {
	name                          string
	prepare, act, end, afterwards func(*testing.T, *life)
}{
	{"create", running, ordered, endsAs(1, 0, 0), nothing},
	{"create, begun by one that was killed before it booked", halfway(running, proxy.Before, creates, ordered), resumed, endsAs(1, 0, 0), nothing},
	{"create, begun by one that was killed after it booked", halfway(running, proxy.After, creates, ordered), resumed, endsAs(1, 0, 0), nothing},
	{"change", booked, changed, endsAs(1, 1, 0), nothing},
	{"change of what an earlier one booked", bookedEarlier, changed, endsAs(1, 1, 0), nothing},
	{"replacement", booked, replaced, endsAs(2, 0, 1), nothing},
	{"replacement of what an earlier one booked", bookedEarlier, replaced, endsAs(2, 0, 1), nothing},
	{"replacement, begun by one that was killed after it booked", halfway(booked, proxy.After, creates, replaced), resumed, endsAs(2, 0, 1), nothing},
	{"delete", booked, deleted, endsAs(1, 0, 1), nothing},
	{"delete of what an earlier one booked", bookedEarlier, deleted, endsAs(1, 0, 1), nothing},
	{"delete, begun by one that was killed after it cancelled", halfway(booked, proxy.After, cancels, deleted), resumed, endsAs(1, 0, 1), nothing},
	{"delete, begun by one that was killed before it booked", halfway(running, proxy.Before, creates, ordered), then(deleted, resumed), endsAs(0, 0, 0), nothing},
	{"delete in the middle of a replacement", halfway(booked, proxy.After, creates, replaced), then(deleted, resumed), endsAs(2, 0, 2), nothing},
	{"replacement in the middle of a replacement", halfway(booked, proxy.After, creates, replaced), then(replacedAgain, resumed), endsAs(3, 0, 2), nothing},
	{"create that is rejected", running, orderedSoldOut, rejected, booksAnotherDay(1, 0)},
	{"change that is rejected", booked, changedToSoldOut, rejected, booksAnotherDay(1, 1)},
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
						l := newLife(t)
						story.prepare(t, l)
						l.killedAt(t, at, n+1, ofATicket, story.act)
						l.begin(t)
						story.end(t, l)
						story.afterwards(t, l)
					})
				}
			}
		})
	}
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{stage: newStage(t, fake.BookingOptions{})}
	l.site.SellOut("ICN", "JFK", soldOut, true)
	return l
}

// callsOf lives a life undisturbed, and returns the calls that it takes.
func callsOf(t *testing.T, prepare, act, end func(*testing.T, *life)) []proxy.Exchange {
	t.Helper()
	l := newLife(t)
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
