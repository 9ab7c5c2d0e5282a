package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// The crash matrix: the built program, against a real API server and a booking
// server, through proxies that tell it from neither. A life of a Ticket is lived
// once undisturbed, which gives its points: every request that the controller made
// for the Ticket, to either server. Then it is lived once more for each point and
// each thing that may happen there. The proxy chooses the moment, by the request's
// number, and no clock does. The booking server's journal and the Ticket's end say
// what came of it.

var slowMatrix = flag.Bool("slow", false, "run the rows of the crash matrix too that take long: those in which a call lands 30 s late, and more of the rest")

func TestWhateverHappensBetweenAnyTwoCallsNothingIsDoneTwiceOrLostOrLeakedOrStuck(t *testing.T) {
	t.Parallel()
	m := &matrix{began: time.Now()}
	t.Cleanup(func() { t.Logf("%s", m) })
	for _, s := range stories {
		if s.unheard = s.meanwhile != nil; !s.unheard {
			s.meanwhile = nothing
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for n, e := range pointsOf(t, s) {
				for _, h := range happenings {
					if !h.happensIn(s, e) {
						continue
					}
					t.Run(fmt.Sprintf("%s call %d, %s %s", h.name, n+1, e.Proxy, e.Method), func(t *testing.T) {
						t.Parallel()
						m.row(t, s, h, n+1, e)
					})
				}
			}
		})
	}
}

// isPoint: every request that is made for a Ticket, but reads of it. Whether one is
// needed depends on how fast the watch was, and what happens before or after it
// happens after or before another request as well.
func isPoint(e proxy.Exchange) bool {
	return ofATicket(e) && !(strings.HasPrefix(e.Proxy, "api") && e.Method == http.MethodGet)
}

// pointsOf lives a life undisturbed, and returns the requests that it takes.
func pointsOf(t *testing.T, s story) []proxy.Exchange {
	t.Helper()
	l := newLife(t, longWindows...)
	s.prepare(t, l)
	before := len(l.journal.Exchanges(nil))
	s.act(t, l)
	if s.undisturbed != nil {
		s.undisturbed(t, l)
	} else {
		s.end(t, l)
	}
	points := l.journal.Exchanges(func(e proxy.Exchange) bool { return e.Number > before && isPoint(e) })
	if len(points) == 0 {
		t.Fatal("it took no request")
	}
	return points
}

// row lives one row.
func (m *matrix) row(t *testing.T, s story, h happening, n int, e proxy.Exchange) {
	r := row{story: s.name, happening: h.name, n: n, call: nameOf(e), stuck: true}
	defer func() { // also where the end did not come
		r.failed = t.Failed()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rows = append(m.rows, r)
	}()
	l := newLife(t, append(slices.Clone(h.flags), s.flags...)...)
	if slices.Contains(h.flags, electing[0]) {
		l.flags = append(l.flags, "--lease-namespace="+l.namespace)
		l.way = l.newRoute(t, "-leader")
	}
	s.prepare(t, l)
	h.lives(t, l, s, n, h.at)
	if s.after != nil {
		s.after(t, l)
	}
	r.stuck = false
	r.verdict = l.audit(t, s.want, l.lookAt(t, "short"))
}

// lookAt returns a Ticket; nil where it is gone.
func (w *world) lookAt(t *testing.T, name string) *v1.Ticket {
	t.Helper()
	obj, err := w.dynamic.Resource(tickets).Namespace(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if code(err) == http.StatusNotFound {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	tk, err := asTicket(obj)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}
