package wal_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/tetherkube/tether/internal/wal"
)

// child is the variable that makes of the test binary a process that writes to the
// folder it names until it is killed, and tells what was acknowledged.
const child = "TETHER_WAL_TEST_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(child); folder != "" {
		if err := scribble(folder); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func scribble(folder string) error {
	if _, err := wal.Lock(folder); err != nil {
		return err
	}
	path := filepath.Join(folder, "log")
	var all [][]byte
	if _, err := wal.Read(path, func(r []byte) error { all = append(all, r); return nil }); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := wal.Create(path, func(yield func([]byte) bool) {
		for _, r := range all {
			if !yield(r) {
				return
			}
		}
	}, wal.Options{})
	for n := len(all); err == nil; n++ {
		if err = l.Append([]byte(strconv.Itoa(n))); err == nil {
			fmt.Println(n)
		}
	}
	return err
}

func start(t *testing.T, folder string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+folder)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestWhatWasAcknowledgedIsThereAfterAKill(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	acknowledged := -1
	for round := range 12 {
		cmd, lines := start(t, folder)
		// When a line comes the next write is under way already. The first time it
		// is killed before it has said anything.
		for told := 0; ; told++ {
			if told == round*3 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if !lines.Scan() {
				break
			}
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("it says %q", lines.Text())
			}
			acknowledged = n
		}
		_ = cmd.Wait() // it was killed
		found, _, err := read(filepath.Join(folder, "log"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if len(found) < acknowledged+1 {
			t.Fatalf("round %d: %d records are there, and %d were acknowledged", round, len(found), acknowledged+1)
		}
		for i, r := range found {
			if r != strconv.Itoa(i) {
				t.Fatalf("round %d: record %d is %q", round, i, r)
			}
		}
	}
	if acknowledged < 100 {
		t.Errorf("only %d writes were tried", acknowledged+1)
	}
}

func TestAFolderIsOneProcesssUntilItEnds(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cmd, lines := start(t, folder)
	lines.Scan() // it has written something: it has the lock
	_, err := wal.Lock(folder)
	if locked := (*wal.LockedError)(nil); !errors.As(err, &locked) || locked.Folder != folder || locked.PID != cmd.Process.Pid {
		t.Errorf("got %v, want that process %d has it", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	f, err := wal.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wal.Lock(folder); !errors.As(err, new(*wal.LockedError)) {
		t.Errorf("a second time in one process: %v", err)
	}
	if err := f.Unlock(); err != nil {
		t.Error(err)
	}
	again, err := wal.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestANewFolderIsItsUsersAlone(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a", "b")
	f, err := wal.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Unlock() }()
	for name, want := range map[string]os.FileMode{"": 0o700, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := wal.Lock(filepath.Join(folder, "lock", "below a file")); err == nil {
		t.Error("a folder below a file was made")
	}
}
