package binaries

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// some is a collection that is made by compile.
func some(compile compiler) collection {
	return collection{name: "control-plane", recipe: recipe, programs: names(programs()), compile: compile}
}

// fake leaves a file under the name of every program.
func fake(_ context.Context, _, out string, _ io.Writer) error {
	for _, p := range programs() {
		if err := os.WriteFile(filepath.Join(out, p.name), []byte(p.pkg), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func TestManyBuildAtOnceAndOneDoesTheWork(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var builds atomic.Int32
	counting := func(ctx context.Context, work, out string, w io.Writer) error {
		builds.Add(1)
		return fake(ctx, work, out, w)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			set, err := some(counting).buildIn(t.Context(), home, "go1", io.Discard)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(Set{Dir: set}.Kubectl()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestABuildThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	broken := errors.New("no compiler today")
	half := func(_ context.Context, _, out string, _ io.Writer) error {
		return errors.Join(broken, os.WriteFile(filepath.Join(out, "etcd"), nil, 0o755))
	}
	if _, err := some(half).buildIn(t.Context(), home, "go1", io.Discard); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if left := entries(t, home); left != "lock" {
		t.Errorf("left behind: %s", left)
	}
	if _, err := some(fake).buildIn(t.Context(), home, "go1", io.Discard); err != nil {
		t.Errorf("the next build: %v", err)
	}
}

func TestWhatAKilledBuildLeftIsRemoved(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "unfinished-1", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := some(fake).buildIn(t.Context(), home, "go1", io.Discard); err != nil {
		t.Fatal(err)
	}
	if left := entries(t, home); strings.Contains(left, "unfinished") {
		t.Errorf("left behind: %s", left)
	}
}

func TestAnotherGoVersionIsAnotherBuild(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	one, err := some(fake).buildIn(t.Context(), home, "go1", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	two, err := some(fake).buildIn(t.Context(), home, "go2", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if one == two {
		t.Errorf("both are at %s", one)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	told := writerFunc(func(p []byte) (int, error) { // it says that it waits: now let it not
		cancel(enough)
		return len(p), nil
	})
	if _, err := lock(ctx, path, told); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
