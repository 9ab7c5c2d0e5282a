package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// rights are what a controller may do, and all that it may do.
const rights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: ticket-controller, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ticket-controller}
rules:
- {apiGroups: [flights.com], resources: [tickets], verbs: [get, list, watch, patch]}
- {apiGroups: [flights.com], resources: [tickets/status], verbs: [patch]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ticket-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ticket-controller}
subjects: [{kind: ServiceAccount, name: ticket-controller, namespace: default}]
`

// grant gives the rights, and returns a configuration of who has them.
func grant(ctx context.Context, c *controlplane.ControlPlane) (*rest.Config, error) {
	kubeconfig, err := c.AdminKubeconfig()
	if err != nil {
		return nil, err
	}
	if _, err := c.Kubectl(kubeconfig).Run(ctx, rights, "apply", "-f", "-"); err != nil {
		return nil, err
	}
	return c.ServiceAccount(ctx, "default", "ticket-controller")
}

// stage is a world with a booking API, and a journal of all that passes between a
// controller and the two servers.
type stage struct {
	*world
	site    *fake.BookingServer
	journal *proxy.Journal
	*route
}

// newStage makes a world with a booking server, and one route to both servers. When
// the test fails, it shows what went over the wire.
func newStage(t *testing.T, o fake.BookingOptions) *stage {
	t.Helper()
	return stageOn(t, setup(t), o)
}

func stageOn(t *testing.T, w *world, o fake.BookingOptions) *stage {
	t.Helper()
	s := &stage{world: w, site: fake.NewBookingServer(o), journal: &proxy.Journal{}}
	if err := s.site.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what passed the proxies:\n%s", s.journal)
			t.Logf("what the booking server saw:\n%s", s.site.Transcript())
		}
		s.site.Close()
	})
	s.route = s.newRoute(t, "")
	return s
}

// route is the way of one replica to the two servers. Each has its own proxies, so
// that the journal tells who sent what.
type route struct {
	stage      *stage
	api, site  string // the proxies' names in the journal
	toAPI      *proxy.HTTP
	toSite     *proxy.HTTP
	kubeconfig string
	token      string // the booking token's file
}

// newRoute makes a route; suffix tells it from others of the same stage.
func (s *stage) newRoute(t *testing.T, suffix string) *route {
	t.Helper()
	r := &route{stage: s, api: "api" + suffix, site: "site" + suffix, token: filepath.Join(t.TempDir(), "token")}
	certificate, err := s.cluster.ServingCertificate()
	if err != nil {
		t.Fatal(err)
	}
	r.toAPI = listen(t, proxy.HTTPOptions{
		Name: r.api, Target: s.cluster.URL(), Journal: s.journal, Certificate: &certificate, Trust: s.cluster.CAPool(),
	})
	r.toSite = listen(t, proxy.HTTPOptions{Name: r.site, Target: s.site.URL(), Journal: s.journal})
	cfg := rest.CopyConfig(s.account)
	cfg.Host = r.toAPI.URL()
	if r.kubeconfig, err = s.cluster.WriteKubeconfig(s.namespace+r.api, cfg); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.token, []byte("token-of-the-tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func listen(t *testing.T, o proxy.HTTPOptions) *proxy.HTTP {
	t.Helper()
	p, err := proxy.ListenHTTP(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// hasty flags make calls time out, and windows pass, within a test. Without them
// the program's own defaults hold, so that nothing times out while a test looks at
// what it holds.
var hasty = []string{"--call-timeout=1s", "--settle=2s"}

// plenty is a booking API that bears what the machine does: the tests are not about
// waiting for a turn.
const plenty = "--booking-rate=10000"

// launch starts a controller for the test's namespace. Flags come last, and win.
func (r *route) launch(t *testing.T, flags ...string) *controller {
	t.Helper()
	return startProgram(t, append([]string{
		"--kubeconfig=" + r.kubeconfig, "--namespace=" + r.stage.namespace,
		"--booking-url=" + r.toSite.URL(), "--booking-token-file=" + r.token,
		plenty, "-v=2",
	}, flags...)...)
}

// start is launch, and waits until passes run.
func (r *route) start(t *testing.T, flags ...string) *controller {
	t.Helper()
	c := r.launch(t, flags...)
	c.line(t, 0, "controllers run")
	return c
}

// hold makes the n-th request from now on for which match is true wait at the
// point. At the end of the test it goes on, so that nothing waits for ever.
func (s *stage) hold(t *testing.T, at proxy.Point, n int, match func(proxy.Exchange) bool) *proxy.Hold {
	t.Helper()
	h := s.journal.Hold(at, n, match)
	t.Cleanup(h.Drop)
	return h
}

// reached waits until the held request has come, and returns it.
func reached(t *testing.T, h *proxy.Hold) proxy.Exchange {
	t.Helper()
	ctx, cancel := patience(t, "the request to hold")
	defer cancel()
	select {
	case e := <-h.Reached():
		return e
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	}
	return proxy.Exchange{}
}

// entry waits for an entry of the booking server's journal.
func (s *stage) entry(t *testing.T, what string, match func(fake.BookingEntry) bool) fake.BookingEntry {
	t.Helper()
	ctx, cancel := patience(t, what)
	defer cancel()
	e, err := s.site.Await(ctx, match)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// calls waits until n more requests for which match is true have been answered by
// the booking server.
func (s *stage) calls(t *testing.T, n int, what string, match func(fake.BookingEntry) bool) {
	t.Helper()
	before, more := len(s.site.Journal()), map[int]bool{}
	s.entry(t, what, func(e fake.BookingEntry) bool {
		if e.Seq > before && e.Done && match(e) {
			more[e.Seq] = true
		}
		return len(more) == n
	})
}

// entries are those of the booking server's journal for which match is true.
func (s *stage) entries(match func(fake.BookingEntry) bool) []fake.BookingEntry {
	var found []fake.BookingEntry
	for _, e := range s.site.Journal() {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// effects counts how often an operation took effect.
func (s *stage) effects(op booking.Operation) int {
	return len(s.entries(func(e fake.BookingEntry) bool { return e.Op == op && e.Effect }))
}

// live is every booking that is neither cancelled nor failed.
func (s *stage) live() []booking.Booking {
	var found []booking.Booking
	for _, b := range s.site.Bookings() {
		if b.Status.Live() {
			found = append(found, b)
		}
	}
	return found
}

// booked returns the booking with the id.
func (s *stage) booked(t *testing.T, id string) booking.Booking {
	t.Helper()
	for _, b := range s.site.Bookings() {
		if b.ID == id {
			return b
		}
	}
	t.Fatalf("there is no booking %q", id)
	return booking.Booking{}
}
