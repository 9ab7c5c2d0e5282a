package operator

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tetherkube/tether/internal/e2e/process"
)

// engine is a Docker Engine of the test's own, in a network namespace in which there
// is nothing but what the test lets in.
type engine struct {
	*process.Process
	socket string
}

// needed fails the test where a program is missing, and says how to get it.
func needed(t *testing.T, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed: on Debian, run: apt-get install --no-install-recommends %s", program, pkg)
	}
	return path
}

// startEngine starts one, which ends with the test and leaves nothing.
func startEngine(t *testing.T) *engine {
	t.Helper()
	unshare := needed(t, "unshare", "util-linux")
	dockerd := needed(t, "dockerd", "docker.io")
	if os.Geteuid() != 0 {
		t.Fatal("a Docker Engine wants root: run the test as root")
	}
	dir, err := os.MkdirTemp("", "engine-*") //nolint:usetesting // the socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	e := &engine{socket: "unix://" + filepath.Join(dir, "d.sock")}
	file := func(name string) string { return filepath.Join(dir, name) }
	e.Process, err = process.Start(process.Options{Path: unshare, Args: []string{
		"--net", "--mount", "--", "sh", "-c", `ip link set lo up && exec "$@"`, "sh",
		dockerd, "-H", e.socket, "--data-root", file("data"), "--exec-root", file("exec"), "--pidfile", file("pid"),
		"--iptables=false", "--ip6tables=false", "--bridge=none",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the engine's last lines:\n%s", e.Log().Tail(30))
		}
	})
	if _, _, err := e.WaitForLine(patiently(t, "the engine"), 0, "API listen on"); err != nil {
		t.Fatal(err)
	}
	return e
}

// docker runs the engine's client.
func (e *engine) docker(ctx context.Context, args ...string) (string, error) {
	return e.command(ctx, "docker", args...)
}

// command runs a program that may use the engine.
func (e *engine) command(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.socket, "DOCKER_BUILDKIT=0")
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.WaitDelay = 5 * time.Second // for what it leaves running
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// must is docker, and fails the test where it fails.
func (e *engine) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.docker(patiently(t, "docker "+args[0]), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// admit listens at an address in the engine's network and takes whoever comes there
// to the same address outside of it. The returned function ends that, and so does the
// end of the test.
func (e *engine) admit(t *testing.T, addr string) (end func()) {
	t.Helper()
	l, err := e.listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { join(ctx, in, addr) })
		}
	})
	end = sync.OnceFunc(func() { cancel(); l.Close(); wg.Wait() })
	t.Cleanup(end)
	return end
}

// listen makes the socket on a thread that has gone into the engine's network; what
// is accepted there stays of that network, whatever thread uses it. The thread ends
// with its goroutine.
func (e *engine) listen(addr string) (l net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var ns *os.File
		if ns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", e.Pid())); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		l, err = net.Listen("tcp", addr)
	}()
	<-done
	return l, err
}

// join copies both ways until one side ends or ctx does.
func join(ctx context.Context, in net.Conn, addr string) {
	defer in.Close()
	var d net.Dialer
	out, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { in.Close(); out.Close() })
	defer stop()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // until either ends
			ended <- struct{}{}
		}()
	}
	<-ended
}

// startRegistry starts a registry, and returns where it listens.
func startRegistry(t *testing.T) string {
	t.Helper()
	path := needed(t, "docker-registry", "docker-registry")
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // it takes no port of its own choice
	config := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", dir, addr)
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Options{Path: path, Args: []string{"serve", filepath.Join(dir, "config.yml")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := p.WaitForLine(patiently(t, "the registry"), 0, "listening on"); err != nil {
		t.Fatal(err)
	}
	return addr
}
