// Package suite has what the test packages of this module have in common: how their
// TestMain runs, the program that most of them drive, and a bound for waiting.
package suite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Setup is how long what is before the first test may take: the first time on a
// machine, servers are built from source.
const Setup = 30 * time.Minute

// Main is what a package's TestMain does, and returns the status to end with: that of
// run, unless it fails, which is told and makes it 1.
func Main(m *testing.M, run func(*testing.M) (code int, err error)) int {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// ManyAtOnce lets more tests run side by side than there are processors, unless the
// command line says how many: most of a test's time is spent in waiting.
func ManyAtOnce(n int) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", fmt.Sprint(n)) // it exists, and takes a number
	}
}

// Root is the repository's, seen from the packages below internal/e2e.
func Root() string { return filepath.Join("..", "..", "..") }

// Deploy is the folder of the operator's manifests, seen from there.
func Deploy() string { return filepath.Join(Root(), "examples", "ticket-controller", "deploy") }

// BuildController builds the ticket-controller for a package below internal/e2e, as a
// static program at a path.
func BuildController(ctx context.Context, path string) error {
	path, err := filepath.Abs(path) // the command runs elsewhere
	if err != nil {
		return err
	}
	// With the flags of the operator's image, so that what is compiled serves both.
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./examples/ticket-controller")
	build.Dir, build.Env = Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the ticket-controller: %w:\n%s", err, out)
	}
	return nil
}

// Patiently is a context for waiting for something that must come, and ends with the
// test at the latest. Its cause says what did not come.
func Patiently(t *testing.T, patience time.Duration, what string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("waited %v for %s", patience, what))
	t.Cleanup(cancel)
	return ctx
}
