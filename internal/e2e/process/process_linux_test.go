package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test's own executable be the program that is run.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCESS_TEST") {
	case "":
		os.Exit(m.Run())
	case "exit 3":
		fmt.Println("first")
		fmt.Fprint(os.Stderr, "last, without an end of line")
		os.Exit(3)
	case "until TERM":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		fmt.Println("ending")
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		untilKilled()
	case "parent":
		p, err := start("deaf")
		if err != nil {
			panic(err)
		}
		if _, _, err := p.WaitForLine(context.Background(), 0, "ready"); err != nil {
			panic(err)
		}
		fmt.Println("child", p.Pid())
		untilKilled()
	}
}

// untilKilled waits for something that comes, since the runtime ends a program in
// which nothing can come.
func untilKilled() { <-time.After(time.Hour) }

func start(what string) (*Process, error) {
	return Start(Options{Path: os.Args[0], Env: append(os.Environ(), "PROCESS_TEST="+what)})
}

func setup(t *testing.T, what string) *Process {
	t.Helper()
	p, err := start(what)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestExitStatusAndBothOutputsAreKept(t *testing.T) {
	t.Parallel()
	p := setup(t, "exit 3")
	exit, err := p.Wait(t.Context())
	if err != nil || exit != (Exit{Code: 3}) {
		t.Errorf("%+v, %v", exit, err)
	}
	if got := p.Log().Tail(10); !strings.Contains(got, "first") || !strings.Contains(got, "last, without") {
		t.Errorf("log %q", got)
	}
}

func TestWaitingForALineEndsWhenTheProcessDoes(t *testing.T) {
	t.Parallel()
	p := setup(t, "exit 3")
	if _, _, err := p.WaitForLine(t.Context(), 0, "never"); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "first") {
		t.Errorf("%v", err)
	}
}

func TestStopLetsAProcessFinish(t *testing.T) {
	t.Parallel()
	p := setup(t, "until TERM")
	_, next, err := p.WaitForLine(t.Context(), 0, "ready")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.WaitForLine(t.Context(), next, "ending"); err != nil {
		t.Error(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit != (Exit{}) {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestStopKillsAProcessThatDoesNotListenAndSaysSo(t *testing.T) {
	t.Parallel()
	p := setup(t, "deaf")
	if _, _, err := p.WaitForLine(t.Context(), 0, "ready"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(time.Millisecond); err == nil {
		t.Error("no word about it")
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestAChildIsKilledWithItsParent(t *testing.T) {
	t.Parallel()
	parent := setup(t, "parent")
	line, _, err := parent.WaitForLine(t.Context(), 0, "child")
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscanf(line, "child %d", &child); err != nil {
		t.Fatal(err)
	}
	// A file descriptor of the child's becomes readable when it ends.
	fd, err := pidfdOpen(child)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := parent.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := waitReadable(fd, 20*time.Second); err != nil {
		t.Errorf("the child outlives its parent: %v", err)
	}
}

func TestALogKeepsTheLastLinesUnderTheirIndex(t *testing.T) {
	t.Parallel()
	l := newLog(3)
	for i := range 20 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	if got := l.Tail(2); got != "line 18\nline 19" {
		t.Errorf("tail %q", got)
	}
	if kept := len(l.Since(0)); kept < 3 || kept >= 6 {
		t.Errorf("%d lines are kept", kept)
	}
	line, next, err := l.WaitFor(t.Context(), 19, func(string) bool { return true })
	if line != "line 19" || next != 20 || err != nil {
		t.Errorf("%q, %d, %v", line, next, err)
	}
}
