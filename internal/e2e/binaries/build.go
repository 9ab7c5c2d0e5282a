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

// Set is where the built programs are. They stay there for other processes: a
// caller writes nothing into the folder.
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
	cache, err := os.UserCacheDir()
	if err != nil {
		return Set{}, fmt.Errorf("no place for the built programs: %w (set HOME or XDG_CACHE_HOME)", err)
	}
	version, err := goOutput(ctx, "", "env", "GOVERSION")
	if err != nil {
		return Set{}, fmt.Errorf("a Go toolchain is needed: %w", err)
	}
	return buildIn(ctx, filepath.Join(cache, "tether", "control-plane"), strings.TrimSpace(string(version)), progress, compile)
}

// compiler makes the programs in the folder out, using work for what it needs
// meanwhile.
type compiler func(ctx context.Context, work, out string, progress io.Writer) error

// buildIn keeps builds in the folder home, each under a name of its own.
func buildIn(ctx context.Context, home, goVersion string, progress io.Writer, compile compiler) (Set, error) {
	key := sha256.Sum256([]byte(recipe))
	set := Set{Dir: filepath.Join(home, fmt.Sprintf("%s-%s-%x", KubernetesVersion, goVersion, key[:6]))}
	if set.complete() {
		return set, nil
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return Set{}, err
	}
	unlock, err := lock(ctx, filepath.Join(home, "lock"), progress)
	if err != nil {
		return Set{}, err
	}
	defer unlock()
	if set.complete() { // another process built while this one waited
		return set, nil
	}

	// Whoever holds the lock is alone: what lies here is of a build that was
	// killed.
	left, err := filepath.Glob(filepath.Join(home, "unfinished-*"))
	if err != nil {
		return Set{}, err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return Set{}, err
		}
	}
	work, err := os.MkdirTemp(home, "unfinished-*")
	if err != nil {
		return Set{}, err
	}
	defer os.RemoveAll(work)
	out := filepath.Join(work, "bin")
	if err := os.Mkdir(out, 0o755); err != nil {
		return Set{}, err
	}
	if err := compile(ctx, work, out, progress); err != nil {
		return Set{}, fmt.Errorf("building the control plane: %w", err)
	}
	// The rename is what makes a build count: never a part of one.
	if err := os.Rename(out, set.Dir); err != nil {
		return Set{}, err
	}
	return set, nil
}

func (s Set) complete() bool {
	for _, p := range programs() {
		if _, err := os.Stat(filepath.Join(s.Dir, p.name)); err != nil {
			return false
		}
	}
	return true
}

func compile(ctx context.Context, work, out string, progress io.Writer) error {
	fmt.Fprintf(progress, "building Kubernetes %s from source, once: this takes some minutes\n", KubernetesVersion)
	begin := time.Now()
	if err := writeModule(ctx, work); err != nil {
		return err
	}
	for _, p := range programs() {
		if err := goBuild(ctx, work, filepath.Join(out, p.name), p, progress); err != nil {
			return err
		}
	}
	told, err := exec.CommandContext(ctx, filepath.Join(out, "kube-apiserver"), "--version").Output()
	if err != nil {
		return fmt.Errorf("kube-apiserver --version: %w", err)
	}
	if want := "Kubernetes " + KubernetesVersion; strings.TrimSpace(string(told)) != want {
		return fmt.Errorf("kube-apiserver says that it is %q, and not %q", told, want)
	}
	fmt.Fprintf(progress, "built in %s\n", time.Since(begin).Round(time.Second))
	return nil
}

// goBuild builds one program, and tells every few seconds how far it is.
func goBuild(ctx context.Context, work, to string, p program, progress io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-ldflags", linkerFlags(), "-o", to, p.pkg)
	cmd.Dir, cmd.Env = work, environment()
	told := &tally{name: p.name, to: progress, next: time.Now()}
	cmd.Stdout, cmd.Stderr = told, told
	if err := cmd.Run(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("go build %s: %w\n%s", p.pkg, err, told.tail()))
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
