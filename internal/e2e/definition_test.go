package e2e

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

// ownCluster starts a control plane that this test may break, without the Ticket's
// definition, and makes a world in it.
func ownCluster(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	own, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	account, err := grant(ctx, own)
	if err != nil {
		t.Fatal(err)
	}
	return setupOn(t, own, account)
}

var servedAt = regexp.MustCompile(`address="([^"]+)"`)

// health asks the controller how it is.
func (c *controller) health(t *testing.T, path string) (status int, said string) {
	t.Helper()
	line, _ := c.line(t, 0, `"serving"`, "--health-addr")
	address := servedAt.FindStringSubmatch(line)
	if address == nil {
		t.Fatalf("no address in %q", line)
	}
	ctx, cancel := patience(t, "an answer of "+path)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address[1]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// waits checks that the controller says what it waits for: in its log from the
// index from on, and in readiness. It returns the index after that.
func (c *controller) waits(t *testing.T, from int, reason, words string) int {
	t.Helper()
	line, next := c.line(t, from, `"informer waits"`, `reason="`+reason+`"`)
	if !strings.Contains(strings.ReplaceAll(line, `\"`, `"`), words) {
		t.Errorf("the log says %q, without the words %q", line, words)
	}
	code, said := c.health(t, "/readyz?verbose")
	if code != http.StatusServiceUnavailable || !strings.Contains(said, "[-]informer/tickets.flights.com failed: "+reason) || !strings.Contains(said, words) {
		t.Errorf("readiness is %d:\n%s", code, said)
	}
	if code, said := c.health(t, "/livez?verbose"); code != http.StatusOK {
		t.Errorf("liveness is %d:\n%s", code, said)
	}
	return next
}

// recovers waits until the controller says that it goes on.
func (c *controller) recovers(t *testing.T, from int, reason string) int {
	t.Helper()
	_, next := c.line(t, from, `"informer recovered"`, `reason="`+reason+`"`)
	return next
}

// isReady checks that every check holds.
func (c *controller) isReady(t *testing.T) {
	t.Helper()
	if code, said := c.health(t, "/readyz?verbose"); code != http.StatusOK || strings.Contains(said, "[-]") {
		t.Errorf("readiness is %d:\n%s", code, said)
	}
}

func TestADefinitionThatIsMissingOrRemovedIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := stageOn(t, ownCluster(t), fake.BookingOptions{})
	c := s.launch(t, "--health-addr=127.0.0.1:0")
	log := c.waits(t, 0, "NotServed", "the API server does not serve tickets.flights.com in version v1; apply its CustomResourceDefinition")

	definition := func() {
		t.Helper()
		ctx, cancel := patience(t, "the definition")
		defer cancel()
		if err := define(ctx, s.cluster); err != nil {
			t.Fatal(err)
		}
	}
	definition()
	log = c.recovers(t, log, "NotServed")
	s.create(t, "first", `{}`)
	s.exactlyOne(t, s.awaitReady(t, "first"))
	c.isReady(t)

	// Tickets are deleted with their definition: what they booked is cancelled.
	s.run(t, "delete", "crd", "tickets.flights.com")
	if n := s.effects(booking.OpCancel); n != 1 || len(s.live()) != 0 {
		t.Errorf("cancelled %d times, %d live", n, len(s.live()))
	}
	log = c.waits(t, log, "NotServed", "the server could not find the requested resource")

	definition()
	c.recovers(t, log, "NotServed")
	s.create(t, "second", `{}`)
	s.exactlyOne(t, s.awaitReady(t, "second"))
	c.isReady(t)
}

func TestADefinitionThatGoesWithAThousandTicketsHasThemAllCancelled(t *testing.T) {
	// Not beside other tests, which would wait for the crowd.
	const crowd = 1000
	w := ownCluster(t)
	ctx, cancel := patience(t, "the definition")
	defer cancel()
	if err := define(ctx, w.cluster); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, w, fake.BookingOptions{})
	c := s.direct(t, "--workers=8", "--settle=30m")
	s.createAll(t, crowd)
	s.awaitAll(t, crowd, ready)
	s.run(t, "delete", "crd", "tickets.flights.com", "--timeout=3m")
	if n, live := s.effects(booking.OpCancel), len(s.live()); n != crowd || live != 0 {
		t.Errorf("cancelled %d times, %d live", n, live)
	}
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}

// A namespace that ends takes no new object, an Event neither; its Tickets are
// deleted one by one, as the namespace's controller does it.
func TestANamespaceThatEndsHasItsTicketsCancelled(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	s.launch(t)
	for _, name := range []string{"first", "second"} {
		s.create(t, name, `{}`)
		s.awaitReady(t, name)
	}
	s.run(t, "delete", "namespace", s.namespace, "--wait=false")
	if _, err := s.kubectl.Run(t.Context(), ticket(t, "late", `{}`), "--namespace="+s.namespace, "create", "-f", "-"); err == nil {
		t.Error("the namespace still takes Tickets")
	}
	s.run(t, "delete", "tickets", "--all", "--timeout=60s")
	if n := s.effects(booking.OpCancel); n != 2 || len(s.live()) != 0 {
		t.Errorf("cancelled %d times, %d live", n, len(s.live()))
	}
}

// limited is an account without rights, and what gives it a controller's.
const limited = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: limited}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ticket-controller}
subjects: [{kind: ServiceAccount, name: limited, namespace: NAMESPACE}]
`

func TestAListThatIsForbiddenIsWaitedForWithTheReason(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, binding, _ := strings.Cut(strings.ReplaceAll(limited, "NAMESPACE", w.namespace), "---")
	apply := func(manifest string) {
		t.Helper()
		if _, err := w.kubectl.Run(t.Context(), manifest, "--namespace="+w.namespace, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	apply(account)
	var err error
	if w.account, err = w.cluster.ServiceAccount(t.Context(), w.namespace, "limited"); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, w, fake.BookingOptions{})
	c := s.launch(t, "--health-addr=127.0.0.1:0")
	reason := `tickets.flights.com is forbidden: User "system:serviceaccount:` + w.namespace + `:limited" cannot`
	log := c.waits(t, 0, "Forbidden", reason)
	_, missed := c.line(t, 0, "rights are missing")
	apply(binding)
	log = c.recovers(t, log, "Forbidden")
	s.create(t, "first", `{}`)
	s.exactlyOne(t, s.awaitReady(t, "first"))
	c.line(t, missed, "no right is missing any more") // which it asks now and then
	c.isReady(t)

	// A right that is taken away shows when the watch is made anew.
	s.run(t, "delete", "clusterrolebinding", w.namespace)
	s.toAPI.CutWatches()
	log = c.waits(t, log, "Forbidden", reason)
	s.mustPatch(t, "first", changes["contact"])
	apply(binding)
	c.recovers(t, log, "Forbidden")
	s.exactlyOne(t, s.awaitReady(t, "first"))
	c.isReady(t)
}
