package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/process"
	"github.com/tetherkube/tether/internal/e2e/proxy"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

const (
	namespace = "ticket-controller"
	account   = "system:serviceaccount:ticket-controller:ticket-controller"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

func patiently(t *testing.T, what string) context.Context {
	t.Helper()
	return suite.Patiently(t, patience, what)
}

// controller is the program, run as the Deployment of install.yaml says, with a token
// of the ServiceAccount.
type controller struct {
	*process.Process
	site    *fake.BookingServer
	journal *proxy.Journal // of what it asks the booking server
}

// newController starts the booking server of a controller, and returns where that
// reaches it.
func newController(t *testing.T) (c *controller, toSite *proxy.HTTP) {
	t.Helper()
	c = &controller{site: fake.NewBookingServer(fake.BookingOptions{}), journal: &proxy.Journal{}}
	if err := c.site.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.site.Close() })
	toSite, err := proxy.ListenHTTP(proxy.HTTPOptions{Name: "site", Target: c.site.URL(), Journal: c.journal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := toSite.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, toSite
}

// start starts a booking server and a controller that uses it.
func start(t *testing.T, flags ...string) *controller {
	t.Helper()
	c, toSite := newController(t)
	cfg, err := cluster.ServiceAccount(t.Context(), namespace, "ticket-controller")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.WriteKubeconfig("ticket-controller", cfg)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-the-tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	// What the pod has from its volumes and its network of its own is given here; a
	// flag's last value wins.
	args := append(find[appsv1.Deployment](t, unit(t), "Deployment", "ticket-controller").Spec.Template.Spec.Containers[0].Args,
		"--kubeconfig="+kubeconfig, "--lease-namespace="+namespace, "--booking-token-file="+token,
		"--health-addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0", "--call-timeout=5s", "--settle=5s")
	c.Process, err = process.Start(process.Options{
		Path: program, Args: append(args, flags...), Env: []string{"TICKET_CONTROLLER_BOOKING_URL=" + toSite.URL()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the controller's last lines:\n%s", c.Log().Tail(60))
		}
	})
	return c
}

// line waits for a line of the log with all of the words.
func (c *controller) line(t *testing.T, words ...string) string {
	t.Helper()
	line, _, err := c.WaitForLine(patiently(t, "a line"), 0, words...)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// readiness asks once.
func (c *controller) readiness(t *testing.T) (code int, body string) {
	t.Helper()
	var said struct{ Address string }
	if err := json.Unmarshal([]byte(c.line(t, `"serving"`, "--health-addr")), &said); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+said.Address+"/readyz?verbose", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// ticket is the smallest one.
const ticket = `
apiVersion: flights.com/v1
kind: Ticket
metadata: {name: one}
spec:
  from: ICN
  to: JFK
  departureDate: "2027-05-01"
  passengers: [{givenName: Test, familyName: Passenger}]
`

// tickets makes a namespace for Tickets. At the end of the test they are taken away,
// whatever the controller was able to do.
func tickets(t *testing.T) string {
	t.Helper()
	out, err := kubectl.Run(t.Context(), `{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"flights-"}}`,
		"create", "-f", "-", "-o", "jsonpath={.metadata.name}")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		left, err := kubectl.Run(ctx, "", "get", "tickets", "-n", out, "-o", "name")
		for name := range strings.FieldsSeq(left) {
			_, e := kubectl.Run(ctx, "", "patch", name, "-n", out, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			_, d := kubectl.Run(ctx, "", "delete", name, "-n", out)
			err = errors.Join(err, e, d)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return out
}

// life leads a Ticket through all that happens to one: it is booked while a person
// writes to it, the airline moves its flight there and back, it is changed, and it is
// deleted. It ends early where ctx does.
func (c *controller) life(ctx context.Context, ns string) error {
	run := func(args ...string) error {
		_, err := kubectl.Run(ctx, "", append([]string{"-n", ns}, args...)...)
		return err
	}
	wait := func(path, value string) error {
		return run("wait", "ticket/one", "--timeout=60s", "--for=jsonpath={"+path+"}="+value)
	}
	hold := c.journal.Hold(proxy.After, 1, func(e proxy.Exchange) bool { return e.Method == http.MethodPost && e.URI == "/v1/bookings" })
	defer hold.Drop()
	if _, err := kubectl.Run(ctx, ticket, "-n", ns, "apply", "-f", "-"); err != nil {
		return err
	}
	select {
	case <-hold.Reached():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := run("label", "ticket/one", "seen=yes"); err != nil { // so that the status meets a conflict
		return err
	}
	hold.Release()
	if err := run("wait", "ticket/one", "--timeout=60s", "--for=condition=Ready"); err != nil {
		return err
	}
	b := c.booked()
	leaves := b.Flight.DepartureTime
	for i, by := range []time.Duration{time.Hour, -time.Hour, time.Hour} { // the third is told as the first was
		if err := c.site.Reschedule(b.ID, by); err != nil {
			return err
		}
		leaves = leaves.Add(by)
		err := errors.Join(run("annotate", "--overwrite", "ticket/one", fmt.Sprintf("flights.com/reconcile-at=%d", i)),
			wait(".status.flight.departure", leaves.UTC().Format(time.RFC3339)))
		if err != nil {
			return err
		}
	}
	if err := run("patch", "ticket/one", "--type=merge", "-p", `{"spec":{"contact":{"email":"passenger@example.com"}}}`); err != nil {
		return err
	}
	if err := errors.Join(wait(".status.observedGeneration", "2"), run("wait", "ticket/one", "--timeout=60s", "--for=condition=Ready")); err != nil {
		return err
	}
	return run("delete", "ticket/one", "--timeout=60s")
}

// booked is the booking of the Ticket that lives.
func (c *controller) booked() booking.Booking {
	all := c.site.Bookings()
	return all[slices.IndexFunc(all, func(b booking.Booking) bool { return b.Status.Live() })]
}

// noLease takes the Lease away, so that the next controller makes it.
func noLease(t *testing.T) {
	t.Helper()
	err := core.CoordinationV1().Leases(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheServiceAccountLeadsATicketThroughItsWholeLife(t *testing.T) {
	noLease(t)
	c := start(t)
	c.line(t, "controllers run")
	if err := c.life(patiently(t, "the life of a Ticket"), tickets(t)); err != nil {
		t.Fatal(err)
	}
	if code, body := c.readiness(t); code != http.StatusOK {
		t.Errorf("readiness is %d:\n%s", code, body)
	}
	all := c.site.Bookings()
	if len(all) != 1 || all[0].Status.Live() {
		t.Errorf("booked are %+v", all)
	}
	if err := c.Stop(30 * time.Second); err != nil {
		t.Error(err)
	}
	used, granted := asked(t), grants(t)
	if refused := slices.DeleteFunc(slices.Clone(used), func(a ask) bool { return a.code != http.StatusForbidden }); len(refused) > 0 {
		t.Errorf("refused was %v", refused)
	}
	for _, g := range granted {
		if !slices.ContainsFunc(used, func(a ask) bool { return a.is(g) }) {
			t.Errorf("nothing needs %s: take it off", g)
		}
	}
}
