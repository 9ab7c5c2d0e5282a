package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Set is where the programs of a control plane are. They stay there for other
// processes: a caller writes nothing into the folder.
type Set struct{ Dir string }

// APIServer is the path of kube-apiserver.
func (s Set) APIServer() string { return filepath.Join(s.Dir, "kube-apiserver") }

// Etcd is the path of etcd.
func (s Set) Etcd() string { return filepath.Join(s.Dir, "etcd") }

// Kubectl is the path of kubectl.
func (s Set) Kubectl() string { return filepath.Join(s.Dir, "kubectl") }

// Build returns the programs, which it builds where the user's cache directory
// does not have them yet for this recipe and Go version. What it is doing then
// goes to progress, in lines. It ends early, with ctx's error, when ctx does.
func Build(ctx context.Context, progress io.Writer) (Set, error) {
	dir, err := collection{
		name: "control-plane", recipe: recipe, programs: names(programs()), compile: compile,
	}.build(ctx, progress)
	return Set{Dir: dir}, err
}

// compiler makes the programs in the folder out, using work for what it needs
// meanwhile.
type compiler func(ctx context.Context, work, out string, progress io.Writer) error

// A collection is the programs that are built and kept together.
type collection struct {
	name     string // of its folder in the cache
	recipe   string // whatever changes here makes another build
	programs []string
	compile  compiler
}

func (c collection) build(ctx context.Context, progress io.Writer) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the built programs: %w (set HOME or XDG_CACHE_HOME)", err)
	}
	version, err := goOutput(ctx, "", "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("a Go toolchain is needed: %w", err)
	}
	return c.buildIn(ctx, filepath.Join(cache, "tether", c.name), strings.TrimSpace(string(version)), progress)
}

// buildIn keeps builds in the folder home, each under a name of its own.
func (c collection) buildIn(ctx context.Context, home, goVersion string, progress io.Writer) (string, error) {
	key := sha256.Sum256([]byte(c.recipe))
	dir := filepath.Join(home, fmt.Sprintf("%s-%s-%x", KubernetesVersion, goVersion, key[:6]))
	if c.completeIn(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(home, "lock"), progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if c.completeIn(dir) { // another process built while this one waited
		return dir, nil
	}

	// Whoever holds the lock is alone: what lies here is of a build that was
	// killed.
	left, err := filepath.Glob(filepath.Join(home, "unfinished-*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	work, err := os.MkdirTemp(home, "unfinished-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	out := filepath.Join(work, "bin")
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", err
	}
	begin := time.Now()
	if err := c.compile(ctx, work, out, progress); err != nil {
		return "", fmt.Errorf("building the %s: %w", c.name, err)
	}
	fmt.Fprintf(progress, "built the %s in %s\n", c.name, time.Since(begin).Round(time.Second))
	// The rename is what makes a build count: never a part of one.
	return dir, os.Rename(out, dir)
}

func (c collection) completeIn(dir string) bool {
	for _, name := range c.programs {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func compile(ctx context.Context, work, out string, progress io.Writer) error {
	fmt.Fprintf(progress, "building Kubernetes %s from source, once: this takes some minutes\n", KubernetesVersion)
	if err := writeModule(ctx, work); err != nil {
		return err
	}
	for _, p := range programs() {
		if err := goBuild(ctx, work, filepath.Join(out, p.name), linkerFlags(), progress, p); err != nil {
			return err
		}
	}
	return checkVersion(ctx, filepath.Join(out, "kube-apiserver"))
}

// checkVersion asks a program of Kubernetes which release it is.
func checkVersion(ctx context.Context, program string) error {
	told, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", filepath.Base(program), err)
	}
	if want := "Kubernetes " + KubernetesVersion; strings.TrimSpace(string(told)) != want {
		return fmt.Errorf("%s says that it is %q, and not %q", filepath.Base(program), told, want)
	}
	return nil
}

// goBuild builds one program to a file, or any number of them into a folder that
// exists, and tells every few seconds how far it is.
func goBuild(ctx context.Context, work, to, flags string, progress io.Writer, what ...program) error {
	args := []string{"build", "-v", "-ldflags", flags, "-o", to}
	for _, p := range what {
		args = append(args, p.pkg)
	}
	return runGo(ctx, work, strings.Join(names(what), ", "), progress, nil, args...)
}

func runGo(ctx context.Context, work, name string, progress io.Writer, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	// The compiler collects its garbage less often: a fifth of the time, for memory that
	// each package needs for a moment.
	cmd.Dir, cmd.Env = work, append(append(environment(), "GOGC=400"), env...)
	told := &tally{name: name, to: progress, next: time.Now()}
	cmd.Stdout, cmd.Stderr = told, told
	if err := cmd.Run(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, told.tail()))
	}
	return nil
}

// tally turns the lines of `go build -v` (a package each, and complaints) into
// a line of progress now and then, and keeps the last ones for an error.
type tally struct {
	name  string
	to    io.Writer
	next  time.Time // when the next line of progress is due
	lines int
	rest  []byte // a line that has not ended yet
	last  []string
}

// Write takes output of the go command, cut anywhere.
func (t *tally) Write(p []byte) (int, error) {
	t.rest = append(t.rest, p...)
	for {
		line, rest, ended := bytes.Cut(t.rest, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		t.rest = rest
		t.line(string(line))
	}
}

func (t *tally) line(line string) {
	const kept = 40
	t.lines++
	t.last = append(t.last, line)
	if len(t.last) > kept {
		t.last = t.last[1:]
	}
	if now := time.Now(); !now.Before(t.next) {
		t.next = now.Add(10 * time.Second)
		fmt.Fprintf(t.to, "%s: step %d: %s\n", t.name, t.lines, line)
	}
}

func (t *tally) tail() string { return strings.Join(t.last, "\n") + string(t.rest) }
