package machine

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tetherkube/tether/internal/e2e/process"
)

// programs is where pause and sweep are.
var programs string

// TestMain lets the test's own executable be a program that has a machine and is
// killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MACHINE_TEST_OWNER"); dir != "" {
		ownAMachine(dir)
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "programs-*"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	for _, name := range []string{"pause", "sweep"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(programs, name), "../binaries/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("building %s: %v: %s", name, err, out))
		}
	}
	return m.Run()
}

// ownAMachine has everything that a Sweeper takes care of, says so, and waits.
func ownAMachine(dir string) {
	programs = os.Getenv("MACHINE_TEST_PROGRAMS")
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	sweeper, err := StartSweeper(filepath.Join(programs, "sweep"))
	must(err)
	must(os.Mkdir(dir, 0o700))
	must(sweeper.Folder(dir))
	must(Cgroup(group(dir)+"/inner", sweeper))
	m, err := Start(context.Background(), Options{Name: "owned", Pause: filepath.Join(programs, "pause"), Dir: dir, Sweeper: sweeper})
	must(err)
	_, err = m.Start(process.Options{Path: "/bin/sleep", Args: []string{"1000"}})
	must(err)
	fmt.Println("it runs")
	select {}
}

// group is the control group of the owner of a folder.
func group(dir string) string { return "/tether-test-" + filepath.Base(filepath.Dir(dir)) }

// folder is one for a machine's files, which must not be where a machine has its
// own, and whose name no other test has.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "machine-*") //nolint:usetesting // two tests of one name may run at once, in different processes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func patiently(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newMachine starts one that ends with the test.
func newMachine(t *testing.T, name string) *Machine {
	t.Helper()
	m, err := Start(patiently(t), Options{Name: name, Pause: filepath.Join(programs, "pause"), Dir: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// users are the processes that have something of a folder mounted or on their
// command line, on whatever machine.
func users(dir string) (all []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is a good one
	for _, p := range processes {
		for _, file := range []string{"mountinfo", "cmdline"} {
			raw, err := os.ReadFile(filepath.Join(p, file))
			if err == nil && strings.Contains(string(raw), filepath.Base(filepath.Dir(dir))) { // it may have ended
				all = append(all, filepath.Base(p)+": "+strings.ReplaceAll(string(raw[:min(len(raw), 80)]), "\x00", " "))
				break
			}
		}
	}
	return all
}

// groups are the control groups there are.
func groups(t *testing.T, name string) (all []string) {
	t.Helper()
	unified, separate, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range append(unified, separate...) {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			all = append(all, filepath.Join(root, name))
		}
	}
	return all
}

func TestNothingIsLeftWhenTheOwnerIsKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), "files")
	owner, err := process.Start(process.Options{Path: os.Args[0], Env: append(os.Environ(), "MACHINE_TEST_OWNER="+dir, "MACHINE_TEST_PROGRAMS="+programs)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owner.Kill(); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := owner.WaitForLine(patiently(t), 0, "it runs"); err != nil {
		t.Fatal(err)
	}
	if len(users(dir)) < 2 || len(groups(t, group(dir))) == 0 {
		t.Fatalf("while it runs, there are %v and %v", users(dir), groups(t, group(dir)))
	}
	if err := owner.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, tick := patiently(t), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(dir)
		left, counted := users(dir), groups(t, group(dir))
		if os.IsNotExist(err) && len(left) == 0 && len(counted) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("left behind: %v, %v and %v", err, left, counted)
		}
	}
}

func TestAMachineHasANameProcessesAndMountsOfItsOwn(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "alone")
	for _, of := range []struct{ script, want string }{
		{"hostname", "alone"},
		{"ls /run | wc -l", "0"},
		{"cat /proc/1/comm", "pause"},
		{"cat /proc/net/dev | grep -c :", "1"}, // loopback
	} {
		out, err := m.Run(patiently(t), "", "sh", "-c", of.script)
		if err != nil || strings.TrimSpace(out) != of.want {
			t.Errorf("%s says %q, %v, want %q", of.script, out, err, of.want)
		}
	}
	if host, err := os.Hostname(); err != nil || host == "alone" {
		t.Errorf("the name out here is %q, %v", host, err)
	}
}

func TestAFrozenMachineStandsStillUntilItIsThawed(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "frozen")
	p, err := m.Start(process.Options{Path: "/bin/sh", Args: []string{"-c", "while :; do echo beat; sleep 0.02; done"}})
	if err != nil {
		t.Fatal(err)
	}
	_, heard, err := p.WaitForLine(patiently(t), 0, "beat")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, tick := patiently(t), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(states(t, p.Pid()), func(s string) bool { return s != "T" }) { // stopped
		select {
		case <-tick.C: // it may be in a system call that does not stop in the middle
		case <-ctx.Done():
			t.Fatalf("frozen, it is in the state %v", states(t, p.Pid()))
		}
	}
	if err := m.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 { // of which some may have been on their way
		if _, heard, err = p.WaitForLine(patiently(t), heard, "beat"); err != nil {
			t.Fatal(err)
		}
	}
}

// states are those of a process's threads.
func states(t *testing.T, pid int) (all []string) {
	t.Helper()
	status, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(status) == 0 {
		t.Fatal(err)
	}
	for _, file := range status {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(raw), ") ")
		all = append(all, after[:1])
	}
	return all
}

func TestMachinesReachEachOtherOverASwitch(t *testing.T) {
	t.Parallel()
	ctx := patiently(t)
	hub, first, second := newMachine(t, "hub"), newMachine(t, "first"), newMachine(t, "second")
	s, err := NewSwitch(ctx, hub, netip.MustParsePrefix("10.200.0.1/24"))
	if err != nil {
		t.Fatal(err)
	}
	for m, address := range map[*Machine]string{first: "10.200.0.11", second: "10.200.0.12"} {
		if err := s.Plug(ctx, m, netip.MustParseAddr(address), netip.MustParsePrefix("10.244."+address[len(address)-1:]+".0/24")); err != nil {
			t.Fatal(err)
		}
	}
	l, err := second.Listen(ctx, "tcp", "10.200.0.12:80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			fmt.Fprintln(c, c.RemoteAddr())
			c.Close()
		}
	}()
	c, err := first.Dial(ctx, "tcp", "10.200.0.12:80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.HasPrefix(from, "10.200.0.11:") {
		t.Errorf("it was reached by %q, %v", from, err)
	}
}

func TestAPlaceThatAMachineWouldNotSeeIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Name: "hidden", Pause: "/run/pause", Dir: folder(t)})
	if err == nil || !strings.Contains(err.Error(), "/run/pause is below /run") {
		t.Errorf("the error is %v", err)
	}
}
