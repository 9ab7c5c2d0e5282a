package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tetherkube/tether/internal/e2e/process"
)

// programs is the folder of what the tests build; TestMain makes it and removes it.
var programs string

// program is the ticket-controller's path. The first caller builds it: with the
// race detector where the tests have it themselves.
var program = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	path := filepath.Join(programs, "ticket-controller")
	args := []string{"build", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./examples/ticket-controller")...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the ticket-controller: %w:\n%s", err, out)
	}
	return path, nil
})

// controller is one run of the built program.
type controller struct {
	*process.Process
}

// startProgram starts the controller and looks through its log when the test has
// ended: whatever a test is about, no controller may panic or race.
func startProgram(t *testing.T, flags ...string) *controller {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Options{Path: path, Args: flags, Env: environment()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		for _, line := range p.Log().Since(0) {
			if strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
				t.Errorf("the controller's log has %q", line)
			}
		}
		if t.Failed() {
			t.Logf("the controller's last lines:\n%s", p.Log().Tail(120))
		}
	})
	return &controller{p}
}

// environment is this process's, without what would configure the controller.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TICKET_CONTROLLER_") && !strings.HasPrefix(e, "KUBECONFIG=") {
			env = append(env, e)
		}
	}
	return env
}

// line waits for a line of the log from the index from on that has all of the
// words, and returns it and the index after it.
func (c *controller) line(t *testing.T, from int, words ...string) (line string, next int) {
	t.Helper()
	ctx, cancel := patience(t, "a line of the log")
	defer cancel()
	line, next, err := c.WaitForLine(ctx, from, words...)
	if err != nil {
		t.Fatal(err)
	}
	return line, next
}

// errorsLogged are the lines that the controller logged as errors.
func (c *controller) errorsLogged() []string {
	var lines []string
	for _, line := range c.Log().Since(0) {
		if strings.HasPrefix(line, "E") {
			lines = append(lines, line)
		}
	}
	return lines
}

// runs tells whether it has not ended.
func (c *controller) runs() bool {
	select {
	case <-c.Ended():
		return false
	default:
		return true
	}
}

// kill ends the controller as a crash does.
func (c *controller) kill(t *testing.T) {
	t.Helper()
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
}

// signal sends a signal.
func (c *controller) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the controller's own end, and returns its status.
func (c *controller) exit(t *testing.T) int {
	t.Helper()
	ctx, cancel := patience(t, "the controller's end")
	defer cancel()
	exit, err := c.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return exit.Code
}

// patienceTime bounds every wait: what is waited for comes within seconds, also on
// a machine that has much else to do, or never. Only where many calls fail in a row
// it may take longer: a budget sends nothing for up to a minute then, and an object
// that has failed waits on top of it.
const patienceTime = 3 * time.Minute

// patience bounds one wait, and names what was waited for.
func patience(t *testing.T, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), patienceTime, fmt.Errorf("%s did not come within %v", what, patienceTime))
}
