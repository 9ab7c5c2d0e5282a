package pods

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/realcluster"
)

// bookingSite is a booking server that pods reach, and that knows which of them
// asked.
type bookingSite struct {
	*fake.BookingServer
	url    string // for pods
	server *http.Server
	served sync.WaitGroup

	// mu guards what follows.
	mu    sync.Mutex
	calls []call // as they arrived
}

// A call is a request as it arrived.
type call struct {
	at           time.Time
	from         netip.Addr // of the pod
	method, path string
}

// acts tells whether it is to change what is booked.
func (c call) acts() bool { return c.method != http.MethodGet && c.method != http.MethodHead }

func startSite(ctx context.Context, c *realcluster.Cluster) (*bookingSite, error) {
	l, err := c.Listen(ctx, 0)
	if err != nil {
		return nil, err
	}
	s := &bookingSite{BookingServer: fake.NewBookingServer(fake.BookingOptions{}), url: "http://" + l.Addr().String()}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.server.Serve(l) }) // until stop
	return s, nil
}

func (s *bookingSite) serve(w http.ResponseWriter, r *http.Request) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil {
		s.mu.Lock()
		s.calls = append(s.calls, call{at: time.Now(), from: from.Addr().Unmap(), method: r.Method, path: r.URL.Path})
		s.mu.Unlock()
	}
	s.ServeHTTP(w, r)
}

func (s *bookingSite) stop() {
	_ = s.server.Close() // nothing was written
	s.served.Wait()
	s.Close()
}

// callsFrom are those of a pod since a time.
func (s *bookingSite) callsFrom(pod string, since time.Time) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool {
		return c.from.String() != pod || c.at.Before(since)
	})
}

// creates is how many requests there were for a booking since a time.
func (s *bookingSite) creates(since time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.method == http.MethodPost && c.path == "/v1/bookings" && !c.at.Before(since) {
			n++
		}
	}
	return n
}

// live are the bookings that stand, by id.
func (s *bookingSite) live() map[string]booking.Booking {
	all := map[string]booking.Booking{}
	for _, b := range s.Bookings() {
		if b.Status.Live() {
			all[b.ID] = b
		}
	}
	return all
}

// answerLate has the next create take effect at once and be answered after a
// time, and waits for it by the returned function.
func (s *bookingSite) answerLate(t *testing.T, by time.Duration) (reached func()) {
	t.Helper()
	known := len(s.Journal())
	fault := s.Inject(fake.BookingFault{Kind: fake.BookingLateAnswer, Op: booking.OpCreate, Delay: by, Times: 1})
	t.Cleanup(fault.Remove)
	return func() {
		t.Helper()
		ctx := patiently(t, "a booking call")
		_, err := s.Await(ctx, func(e fake.BookingEntry) bool { return e.Seq > known && e.Op == booking.OpCreate && e.Effect })
		if err != nil {
			t.Fatal(err)
		}
	}
}
