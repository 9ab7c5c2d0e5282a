package readme

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/process"
)

// repository is the folder that the README's commands are run in.
var repository = filepath.Join("..", "..", "..")

// command is the README's n-th block of shell.
func command(t *testing.T, n int) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(raw), "```sh\n")
	if len(parts) <= n {
		t.Fatalf("README.md has no %d blocks of shell", n)
	}
	block, _, _ := strings.Cut(parts[n], "```")
	return strings.TrimSpace(block)
}

// user is the environment of someone who has Go and no cluster.
func user(ctx context.Context, t *testing.T) []string {
	t.Helper()
	env := []string{"HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		out, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	return env
}

// The first command goes on until Ctrl-C, which reaches all that a terminal runs.
func TestTheFirstCommandBooksTheSamples(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // it has to be compiled
	defer cancel()
	p, err := process.Start(process.Options{Path: "sh", Args: []string{"-c", command(t, 1)}, Dir: repository, Env: user(ctx, t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }) // the group may have ended
	for _, words := range [][]string{
		{"EMBEDDED FAKE, not a cluster"},
		{"kubectl delete ticket two-to-tokyo"},
		{"Ctrl-C ends it"},
		{"to-new-york", "Ready: confirmed"},
		{"two-to-tokyo", "Ready: confirmed"},
		{"to-paris", "SoldOut"},
	} {
		if _, _, err := p.WaitForLine(ctx, 0, words...); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(-p.Pid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); err != nil || exit.Signal != 0 && exit.Signal != syscall.SIGINT {
		t.Errorf("it ended with %+v, %v", exit, err)
	}
}

// The command with a real API server goes on until Ctrl-C; told to end once the
// tickets are booked, it must show them.
func TestTheCommandWithARealServerBooksTheSamples(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // it may have to build the servers
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command(t, 4))
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "TRY_ONCE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, words := range []string{"to-new-york", "two-to-tokyo", "confirmed   True", "kubectl delete ticket to-new-york", "Ctrl-C ends it"} {
		if !strings.Contains(string(out), words) {
			t.Errorf("the output lacks %q:\n%s", words, out)
		}
	}
}

const ticket = `
apiVersion: flights.com/v1
kind: Ticket
metadata: {name: to-new-york}
spec:
  from: ICN
  to: JFK
  departureDate: "2027-05-01"
  passengers: [{givenName: Test, familyName: Passenger}]
`

// The controller in the README, built as it stands, books, changes and cancels.
func TestTheWholeControllerBooksChangesAndCancels(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig, err := cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(input string, args ...string) {
		t.Helper()
		if _, err := cluster.Kubectl(kubeconfig).Run(ctx, input, args...); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("", "apply", "-f", filepath.Join(repository, "examples", "ticket-controller", "deploy", "crd.yaml"))
	kubectl("", "wait", "--for=condition=Established", "--timeout=30s", "crd/tickets.flights.com")
	site := fake.NewBookingServer(fake.BookingOptions{})
	if err := site.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	start(ctx, t, kubeconfig, site.URL())

	kubectl(ticket, "apply", "-f", "-")
	kubectl("", "wait", "--for=condition=Ready", "--timeout=30s", "ticket/to-new-york")
	kubectl("", "patch", "ticket", "to-new-york", "--type=merge", `--patch={"spec":{"departureDate":"2027-05-02"}}`)
	took := func(op booking.Operation) {
		t.Helper()
		if _, err := site.Await(ctx, func(e fake.BookingEntry) bool { return e.Op == op && e.Effect && e.Done }); err != nil {
			t.Fatal(err)
		}
	}
	took(booking.OpChange)
	kubectl("", "delete", "ticket", "to-new-york", "--timeout=60s")
	took(booking.OpCancel)
	all := site.Bookings()
	if len(all) != 1 || all[0].Status != booking.Cancelled || all[0].DepartureDate != "2027-05-02" {
		t.Errorf("the bookings are %+v, want one, changed and cancelled", all)
	}
}

// start builds the README's controller and runs it.
func start(ctx context.Context, t *testing.T, kubeconfig, url string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quickstart")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./examples/quickstart")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	p, err := process.Start(process.Options{Path: path, Env: append(os.Environ(),
		"KUBECONFIG="+kubeconfig, "BOOKING_URL="+url, "BOOKING_TOKEN=token-of-the-test")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(fmt.Sprint("the controller's last lines:\n", p.Log().Tail(60)))
		}
	})
}
