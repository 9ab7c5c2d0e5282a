package operator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/internal/e2e/traffic"
)

const definition = "crd/tickets.flights.com"

func TestTheDefinitionDeletedBeforeTheOperatorTakesEveryBookingAlong(t *testing.T) {
	noLease(t)
	t.Cleanup(func() { here(t).define(t) })
	c := start(t, "--booking-rate=100")
	f := traffic.Tickets{Client: resources, Namespace: tickets(t)}
	bookThree(t, f)

	// It waits for what is in the air to land, and then returns.
	if _, err := kubectl.Run(patiently(t, "the end of the definition"), "", "delete", definition, "--timeout=100s"); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range traffic.Wrong(nil, c.site) {
		t.Error(wrong)
	}
	c.line(t, `"informer waits"`, "tickets.flights.com")
	if code, body := c.readiness(t); code != 503 || !strings.Contains(body, "[-]informer/tickets.flights.com failed") {
		t.Errorf("%d %s", code, body)
	}
	here(t).define(t)
	established(t)
	for _, wrong := range traffic.Wrong(bookThree(t, f), c.site) {
		t.Error(wrong)
	}
}

// What waits for an operator that does not come back is let go by hand, and its bookings
// are then found by the subcommand orphans.
func TestADeletionThatIsStuckWithoutTheOperatorHasAnExitThatLosesNothingWithoutAWord(t *testing.T) {
	noLease(t)
	t.Cleanup(func() { here(t).define(t) })
	c := start(t, "--booking-rate=100")
	f := traffic.Tickets{Client: resources, Namespace: tickets(t)}
	bookThree(t, f)
	if err := c.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	ctx := patiently(t, "the way out")
	run := func(args ...string) string {
		t.Helper()
		out, err := kubectl.Run(ctx, "", args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("delete", definition, "--wait=false")
	run("wait", definition, "--for=condition=Terminating", "--timeout=60s")
	run("-n", f.Namespace, "wait", "tickets", "--all", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=60s")
	if left := strings.Fields(run("-n", f.Namespace, "get", "tickets", "-o", "name")); len(left) != 3 {
		t.Fatalf("left are %q", left)
	}
	for _, name := range []string{"one", "two", "three"} {
		run("-n", f.Namespace, "patch", "ticket", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
	run("wait", definition, "--for=delete", "--timeout=60s")

	here(t).define(t)
	established(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-the-tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, "orphans", "--kubeconfig="+kubeconfig, "--booking-url="+c.site.URL(), "--booking-token-file="+token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, b := range c.site.Bookings() {
		if !b.Status.Live() || !strings.Contains(string(out), b.ID) {
			t.Errorf("booking %s is %s, and the orphans are\n%s", b.ID, b.Status, out)
		}
	}
}

func bookThree(t *testing.T, f traffic.Tickets) []*v1.Ticket {
	t.Helper()
	for _, name := range []string{"one", "two", "three"} {
		if err := f.Create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	all, err := f.Booked(patiently(t, "three Tickets that are booked"), 3)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// established waits until Tickets are served again.
func established(t *testing.T) {
	t.Helper()
	if _, err := kubectl.Run(patiently(t, "the definition"), "", "wait", definition, "--for=condition=Established", "--timeout=60s"); err != nil {
		t.Fatal(err)
	}
}
