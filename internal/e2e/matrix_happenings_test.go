package e2e

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// happening is one thing that may happen at a point.
type happening struct {
	name  string
	flags []string
	at    proxy.Point
	width width // of the stories that it happens in
	reads bool  // it may happen to a read as well: to be killed before one is to be killed after what came before it
	// lives goes from act to end, with the controller's n-th request at the point.
	lives func(t *testing.T, l *life, s story, n int, at proxy.Point)
}

// width is how much happens in a story.
type width int

const (
	slowest width = iota // what takes so long that it must be asked for
	wide                 // and all that happens within a minute
	middle               // and what lands last
	narrow               // and kills
)

// happenings are the columns of the matrix.
var happenings = []happening{
	{name: "killed before", at: proxy.Before, width: narrow, flags: longWindows, lives: killed},
	{name: "killed after", at: proxy.After, width: narrow, flags: longWindows, lives: killed},
	{name: "killed, lands last", at: proxy.Before, width: middle, flags: longWindows, lives: landsLast},
	{name: "frozen before", at: proxy.Before, width: middle, flags: electing, lives: frozen},
	{name: "frozen after", at: proxy.After, width: wide, flags: electing, lives: frozen},
	{name: "answer lost", at: proxy.After, width: wide, reads: true, flags: longWindows, lives: answerLost},
	{name: "lands late", at: proxy.Before, width: wide, flags: scaledWindows, lives: late(scaledLateness, false)},
	{name: "killed, lands late", at: proxy.Before, width: wide, flags: scaledWindows, lives: late(scaledLateness, true)},
	{name: "watch lags", at: proxy.Before, width: wide, flags: longWindows, lives: lags(false)},
	{name: "watch lags, answer lost", at: proxy.After, width: wide, flags: longWindows, lives: lags(true)},
	{name: "lands 30 s late", at: proxy.Before, width: slowest, flags: trueWindows, lives: late(30*time.Second, false)},
	{name: "killed, lands 30 s late", at: proxy.Before, width: slowest, flags: trueWindows, lives: late(30*time.Second, true)},
}

// happensIn tells whether it happens in a story, at a request.
func (h happening) happensIn(s story, e proxy.Exchange) bool {
	least := s.width
	if *slowMatrix {
		least = min(least, max(s.width-1, slowest))
	}
	return h.width >= least && (h.reads || e.Method != http.MethodGet)
}

// A call that lands late does so within the window, which is what it is for: by half
// of it. What is 30 s by the program's own flags is scaled, so that a test has the
// time for it.
var (
	scaledWindows = []string{"--call-timeout=2s", "--settle=4s"}
	trueWindows   = []string{"--call-timeout=30s", "--settle=1m"}
)

const scaledLateness = 2 * time.Second

// electing is for two replicas.
var electing = append([]string{"--leader-elect=true", "--lease-duration=" + shortLease.String()}, longWindows...)

// killed: SIGKILL at the point, and another run. What the server has not seen by
// then never comes.
func killed(t *testing.T, l *life, s story, n int, at proxy.Point) {
	hold := l.pointAt(t, at, n, isPoint)
	s.act(t, l)
	reached(t, hold)
	l.c.kill(t)
	s.meanwhile(t, l)
	l.begin(t)
	s.end(t, l)
}

// answerLost: the server did it, and the connection was cut.
func answerLost(t *testing.T, l *life, s story, n int, at proxy.Point) {
	hold := l.pointAt(t, at, n, isPoint)
	s.act(t, l)
	reached(t, hold)
	s.meanwhile(t, l)
	hold.Drop()
	s.end(t, l)
}

// late: the connection was cut, or the controller killed, and the call lands by so
// much later.
func late(by time.Duration, kill bool) func(*testing.T, *life, story, int, proxy.Point) {
	return func(t *testing.T, l *life, s story, n int, at proxy.Point) {
		hold := l.pointAt(t, at, n, isPoint)
		s.act(t, l)
		reached(t, hold)
		if kill {
			l.c.signal(t, syscall.SIGSTOP) // it is not to see that its connection goes
		}
		land, landed := hold.Cut()
		defer time.AfterFunc(by, land).Stop()
		if kill {
			l.c.kill(t)
		}
		s.meanwhile(t, l)
		if kill {
			l.begin(t)
		}
		s.end(t, l)
		arrived(t, landed)
		s.end(t, l)
	}
}

// landsLast: the controller is killed, another one brings all to its end, and then
// the call lands: by more than any window.
func landsLast(t *testing.T, l *life, s story, n int, at proxy.Point) {
	hold := l.pointAt(t, at, n, isPoint)
	s.act(t, l)
	reached(t, hold)
	l.c.signal(t, syscall.SIGSTOP)
	land, landed := hold.Cut()
	l.c.kill(t)
	s.meanwhile(t, l)
	l.begin(t)
	s.end(t, l)
	land()
	arrived(t, landed)
	s.end(t, l)
}

// arrived waits until a call has landed.
func arrived(t *testing.T, landed <-chan struct{}) {
	t.Helper()
	ctx, cancel := patience(t, "the late call")
	defer cancel()
	select {
	case <-landed:
	case <-ctx.Done():
		t.Fatal("the late call did not land")
	}
}

// lags: from the point on the watch tells nothing, until all has come to its end, or
// as far as it can without a word of what people did meanwhile. Then it tells all
// that has been.
func lags(lost bool) func(*testing.T, *life, story, int, proxy.Point) {
	return func(t *testing.T, l *life, s story, n int, at proxy.Point) {
		hold := l.pointAt(t, at, n, isPoint)
		s.act(t, l)
		reached(t, hold)
		flow := l.way.toAPI.LagWatches()
		defer flow()
		s.meanwhile(t, l)
		log := len(l.c.Log().Since(0))
		if lost {
			hold.Drop()
		} else {
			hold.Release()
		}
		if s.unheard {
			l.c.line(t, log, `"pass ended"`)
		} else {
			s.end(t, l)
		}
		flow()
		// A Ticket that is never booked comes last, and tells that all was heard.
		l.create(t, "last", `{"spec":{"departureDate":"2001-05-01"}}`)
		l.await(t, "last", "stalled", func(tk *v1.Ticket) bool { return condition(tk, "Stalled") != nil })
		s.end(t, l)
	}
}

// frozen: of two replicas the one that leads is stopped at the point; the other one
// takes over, and brings all to its end. Then what was in the air lands, and the
// first one goes on.
func frozen(t *testing.T, l *life, s story, n int, at proxy.Point) {
	r := &replicas{stage: l.stage}
	standBy := func() {
		r.standby = l.newRoute(t, "-standby").launch(t, l.flags...)
		r.standby.line(t, 0, "Caches populated")
		r.standby.line(t, 0, "Attempting to acquire leader lease")
	}
	leads := l.c.runs()
	if leads { // what the other one has read by then is old when it takes over
		standBy()
	}
	hold := l.pointAt(t, at, n, isPoint)
	s.act(t, l)
	e := reached(t, hold)
	r.leader = l.c
	l.c.signal(t, syscall.SIGSTOP)
	if !leads {
		standBy()
	}
	s.meanwhile(t, l)
	r.takenOver(t)
	s.end(t, l)
	if at == proxy.Before {
		landed := l.hold(t, proxy.After, 1, func(x proxy.Exchange) bool { return x.Number == e.Number })
		hold.Release()
		reached(t, landed)
		landed.Release()
	} else {
		hold.Release()
	}
	r.thawed(t)
	s.end(t, l)
}
