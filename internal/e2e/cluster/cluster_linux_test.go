package main

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

	"github.com/tetherkube/tether/internal/e2e/process"
)

// TestMain lets the test's own executable be the command, and a program that
// starts it and does nothing more.
func TestMain(m *testing.M) {
	switch os.Getenv("CLUSTER_TEST") {
	case "command":
		main()
	case "parent":
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), "CLUSTER_TEST=command")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		// A program in which nothing can come is ended by the runtime.
		_ = cmd.Wait() // it is killed before
	default:
		os.Exit(m.Run())
	}
}

// start runs the command (or a parent of it) with everything temporary in tmp,
// which tells afterwards what was left.
func start(t *testing.T, role string, args ...string) (p *process.Process, tmp string) {
	t.Helper()
	tmp = t.TempDir()
	p, err := process.Start(process.Options{
		Path: os.Args[0], Args: args,
		Env: append(os.Environ(), "CLUSTER_TEST="+role, "TMPDIR="+tmp, "PWD="+tmp),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p, tmp
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func nothingLeft(t *testing.T, tmp string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(tmp, "control-plane-*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestACommandRunsInTheCallersFolderAndItsStatusIsPassedOn(t *testing.T) {
	t.Parallel()
	p, tmp := start(t, "command", "--", "sh", "-c", `pwd; kubectl version; kubectl get namespace default -o name; exit 7`)
	exit, err := p.Wait(limit(t))
	if err != nil || exit.Code != 7 {
		t.Errorf("%+v, %v:\n%s", exit, err, p.Log().Tail(20))
	}
	log := p.Log().Tail(100)
	for _, want := range []string{tmp, "Client Version: v1.37.2", "Server Version: v1.37.2", "namespace/default"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in:\n%s", want, log)
		}
	}
	nothingLeft(t, tmp)
}

func TestFilesAreAppliedFirst(t *testing.T) {
	t.Parallel()
	crd, err := filepath.Abs("../../../examples/ticket-controller/deploy/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := start(t, "command", "--apply", crd, "--", "kubectl", "wait", "--for=condition=Established", "crd/tickets.flights.com")
	if exit, err := p.Wait(limit(t)); err != nil || exit.Code != 0 {
		t.Errorf("%+v, %v:\n%s", exit, err, p.Log().Tail(20))
	}
}

func TestACommandThatIsNotThereSaysSo(t *testing.T) {
	t.Parallel()
	p, tmp := start(t, "command", "--", "no-such-program")
	exit, err := p.Wait(limit(t))
	if err != nil || exit.Code != 127 || !strings.Contains(p.Log().Tail(5), "no-such-program") {
		t.Errorf("%+v, %v:\n%s", exit, err, p.Log().Tail(20))
	}
	nothingLeft(t, tmp)
}

func TestAnInterruptStopsEverythingCleanly(t *testing.T) {
	t.Parallel()
	p, tmp := start(t, "command")
	if _, _, err := p.WaitForLine(limit(t), 0, "Ctrl-C stops it"); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(limit(t)); err != nil || exit.Code != 0 {
		t.Errorf("%+v, %v:\n%s", exit, err, p.Log().Tail(20))
	}
	nothingLeft(t, tmp)
}

func TestASignalReachesTheCommandWhichMayTakeItsTime(t *testing.T) {
	t.Parallel()
	p, tmp := start(t, "command", "--", "sh", "-c", `trap 'echo ending; exit 5' TERM; echo ready; while :; do sleep 0.05; done`)
	if _, _, err := p.WaitForLine(limit(t), 0, "ready"); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(limit(t))
	if err != nil || exit.Code != 5 || !strings.Contains(p.Log().Tail(5), "ending") {
		t.Errorf("%+v, %v:\n%s", exit, err, p.Log().Tail(20))
	}
	nothingLeft(t, tmp)
}

func TestItEndsWhenItsParentDoes(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	if err := syscall.Mkfifo(gone, 0o600); err != nil {
		t.Fatal(err)
	}
	// The command holds the pipe open for as long as it lives.
	parent, tmp := start(t, "parent", "--", "sh", "-c", fmt.Sprintf(`exec 3>%s; echo ready; while :; do sleep 0.05; done`, gone))
	pipe, err := os.Open(gone)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, _, err := parent.WaitForLine(limit(t), 0, "ready"); err != nil {
		t.Fatal(err)
	}
	if err := parent.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe.Read(make([]byte, 1)); err == nil { // the end of the file is the command's
		t.Error("the pipe has something to say")
	}
	// The command's own parent still takes the servers down. It has the output
	// open until it is done, which is what this waits for.
	<-parent.Ended()
	nothingLeft(t, tmp)
}
