package operator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/internal/e2e/objects"
	"github.com/tetherkube/tether/internal/e2e/process"
	"github.com/tetherkube/tether/internal/e2e/proxy"
	"github.com/tetherkube/tether/internal/e2e/suite"
	"github.com/tetherkube/tether/internal/e2e/traffic"
)

// first is the commit with the first Ticket controller that did its whole job: the
// oldest that one is upgraded from, and gone back to.
const first = "26a623dfd83d6e8eba3975589361c37f05f6c4d3"

// release is a version of the operator, as far as it is run here.
type release struct {
	name, definition, program string
	args                      []string
}

// checkout builds the release of a commit. An archive of the sources, or a shallow clone,
// does not have it.
func checkout(t *testing.T, commit string) release {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("the history of this checkout does not reach back to %s (%v): run git fetch --unshallow, or clone it whole", commit, err)
	}
	ctx := suite.Patiently(t, suite.Setup, "the program of an earlier commit")
	dir := t.TempDir()
	for _, args := range [][]string{
		{"sh", "-c", `git -C "$1" archive --format=tar "$2" | tar -x -C "$3"`, "sh", root, commit, dir},
		{"go", "-C", dir, "build", "-trimpath", "-buildvcs=false", "-o", "ticket-controller", "./examples/ticket-controller"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	return release{
		name: "the first", definition: filepath.Join(dir, "examples", "ticket-controller", "deploy", "crd.yaml"), program: filepath.Join(dir, "ticket-controller"),
		args: []string{"--leader-elect=true"},
	}
}

// here is the release of this commit, run as its Deployment says.
func here(t *testing.T) release {
	t.Helper()
	args := find[appsv1.Deployment](t, unit(t), "Deployment", "ticket-controller").Spec.Template.Spec.Containers[0].Args
	return release{
		name: "this one", definition: filepath.Join(deploy, "crd.yaml"), program: program,
		args: append(args, "--booking-rate=100"), // the first knew no bound
	}
}

// define puts a release's definition in the place of the one that is there, also when
// the test has ended.
func (r release) define(t *testing.T) {
	t.Helper()
	if _, err := kubectl.Run(context.WithoutCancel(t.Context()), "", "apply", "--server-side", "--force-conflicts", "-f", r.definition); err != nil {
		t.Fatal(err)
	}
}

// replicas are two processes of a release.
func (r release) replicas(t *testing.T, toSite *proxy.HTTP) (both [2]*process.Process) {
	t.Helper()
	cfg, err := cluster.ServiceAccount(t.Context(), namespace, "ticket-controller")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.WriteKubeconfig("upgrade", cfg)
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-the-tests"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(r.args), "--kubeconfig="+kubeconfig, "--lease-namespace="+namespace, "--booking-token-file="+token,
		"--health-addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0", "--call-timeout=5s", "--settle=5s", "--workers=4")
	for i := range both {
		both[i], err = process.Start(process.Options{Path: r.program, Args: args, Env: []string{"TICKET_CONTROLLER_BOOKING_URL=" + toSite.URL()}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := both[i].Kill(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("the last lines of %s:\n%s", r.name, both[i].Log().Tail(40))
			}
		})
	}
	return both
}

// holder is who holds the Lease.
func holder(ctx context.Context) string {
	lease, err := core.CoordinationV1().Leases(namespace).Get(ctx, "ticket-controller", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// takeOver stops the replicas of one release beside those of another, one by one, until
// one of the others leads.
func takeOver(t *testing.T, from [2]*process.Process) {
	t.Helper()
	before := holder(t.Context())
	for _, p := range from {
		if err := p.Stop(40 * time.Second); err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(patiently(t, "its end")); err != nil || exit.Code != 0 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
	leases := resources.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(namespace)
	_, err := objects.Await(patiently(t, "another leader"), leases, func(all []*coordinationv1.Lease) bool {
		return slices.ContainsFunc(all, func(l *coordinationv1.Lease) bool {
			now := l.Spec.HolderIdentity
			return l.Name == "ticket-controller" && now != nil && *now != "" && *now != before
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnUpgradeFromTheFirstVersionUnderLoadAndBackBooksNothingTwiceAndLosesNothing(t *testing.T) {
	old, now := checkout(t, first), here(t)
	t.Cleanup(func() { now.define(t) })
	noLease(t)
	c, toSite := newController(t)
	flights := traffic.Tickets{Client: resources, Namespace: tickets(t)}
	served := func(n int) {
		t.Helper()
		ctx := patiently(t, fmt.Sprintf("%d Tickets", n))
		if _, err := flights.Await(ctx, func(all []*v1.Ticket) bool {
			return len(slices.DeleteFunc(slices.Clone(all), func(tk *v1.Ticket) bool { return !traffic.Booked(tk) })) >= n
		}); err != nil {
			t.Fatal(err)
		}
	}

	old.define(t)
	earlier := old.replicas(t, toSite)
	begin := time.Now()
	load := flights.Load(t.Context(), 50)
	served(5)
	now.define(t)
	later := now.replicas(t, toSite)
	takeOver(t, earlier)
	served(12)
	old.define(t)
	again := old.replicas(t, toSite)
	takeOver(t, later)
	served(18)
	left, made, err := load.Stop()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d Tickets were made in %v, of which %d are left", made, time.Since(begin).Round(time.Second), left)
	check := func() {
		t.Helper()
		all, err := flights.Booked(patiently(t, fmt.Sprintf("%d Tickets that are booked", left)), left)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range traffic.Wrong(all, c.site) {
			t.Error(wrong)
		}
	}
	check()
	// Forward once more, at rest: what the older one left, with claims of both, stays.
	now.define(t)
	booked := len(c.site.Bookings())
	last := now.replicas(t, toSite)
	takeOver(t, again)
	check()
	if n := len(c.site.Bookings()); n != booked {
		t.Errorf("%d bookings, and %d after an upgrade at rest", booked, n)
	}
	if _, err := kubectl.Run(patiently(t, "the end of all Tickets"), "", "delete", "tickets", "--all", "-n", flights.Namespace, "--timeout=100s"); err != nil {
		t.Error(err)
	}
	for _, wrong := range traffic.Wrong(nil, c.site) {
		t.Error(wrong)
	}
	for _, p := range last {
		if err := p.Stop(40 * time.Second); err != nil {
			t.Error(err)
		}
	}
}

// newer is the definition as a later version may have it.
const newer = `[
  {"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/meal","value":{"type":"string"}},
  {"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/gate","value":{"type":"string"}}
]`

func TestFieldsOfALaterVersionSurviveAControllerThatDoesNotKnowThem(t *testing.T) {
	noLease(t)
	ctx := patiently(t, "a Ticket's life")
	ns := tickets(t)
	t.Cleanup(func() { here(t).define(t) })
	run := func(args ...string) string {
		t.Helper()
		out, err := kubectl.Run(ctx, "", args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run("patch", "crd", "tickets.flights.com", "--type=json", "-p", newer)
	c := start(t)
	if _, err := kubectl.Run(ctx, ticket+"  meal: vegan\n", "-n", ns, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	run("-n", ns, "wait", "ticket/one", "--for=condition=Ready", "--timeout=60s")
	run("-n", ns, "patch", "ticket/one", "--subresource=status", "--type=merge", "-p", `{"status":{"gate":"42"}}`)
	run("-n", ns, "patch", "ticket/one", "--type=merge", "-p", `{"spec":{"contact":{"email":"passenger@example.com"}}}`)
	run("-n", ns, "wait", "ticket/one", "--for=jsonpath={.status.observedGeneration}=2", "--timeout=60s")
	run("-n", ns, "wait", "ticket/one", "--for=condition=Ready", "--timeout=60s")
	if got := run("-n", ns, "get", "ticket/one", "-o", "jsonpath={.spec.meal} {.status.gate} {.spec.contact.email}"); got != "vegan 42 passenger@example.com" {
		t.Errorf("it has %q", got)
	}
	if b := c.booked(); b.Contact == nil || b.Contact.Email != "passenger@example.com" {
		t.Errorf("booked is %+v", b)
	}
	run("-n", ns, "delete", "ticket/one", "--timeout=60s")
}
