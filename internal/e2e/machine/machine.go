package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tetherkube/tether/internal/e2e/process"
)

// Options say what a machine is like.
type Options struct {
	// Name is its host name.
	Name string
	// Pause is the program that holds its namespaces.
	Pause string
	// Dir is a folder that exists, for the files that are the machine's own.
	Dir string
	// Sweeper, where there is one, sees to it that the machine ends.
	Sweeper *Sweeper
}

// Machine is one that runs. Its methods may be called concurrently.
type Machine struct {
	name       string
	first      *process.Process
	namespaces *namespaces
}

// Start starts a machine, with nothing on it. It owes a Stop.
func Start(ctx context.Context, o Options) (_ *Machine, err error) {
	if err := errors.Join(checkPlace(o.Dir), checkPlace(o.Pause)); err != nil {
		return nil, err
	}
	first, err := process.Start(process.Options{Path: o.Pause, Attributes: ownNamespaces})
	if err != nil {
		return nil, fmt.Errorf("starting the machine %s: %w (a root that may make namespaces is needed)", o.Name, err)
	}
	m := &Machine{name: o.Name, first: first}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting the machine %s: %w", o.Name, err), m.Stop())
		}
	}()
	if o.Sweeper != nil {
		if err := o.Sweeper.Process(first.Pid()); err != nil {
			return nil, err
		}
	}
	if m.namespaces, err = openNamespaces(first.Pid()); err != nil {
		return nil, err
	}
	if err := m.on(m.namespaces.enter, makeMountsPrivate); err != nil {
		return nil, err
	}
	// Which processes a /proc shows is for the process that mounts it to say, and
	// not for a thread that came in.
	if _, err := m.Run(ctx, "", "mount", "-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc"); err != nil {
		return nil, err
	}
	return m, m.on(m.namespaces.enter, func() error { return furnish(o.Name, o.Dir) })
}

// Name is the machine's host name.
func (m *Machine) Name() string { return m.name }

// Stop ends every process on the machine, and waits until they are gone. It may
// be called more than once.
func (m *Machine) Stop() error {
	// The kernel reports the end of the first process only when it has reaped
	// all the others.
	err := m.first.Kill()
	if m.namespaces != nil {
		err = errors.Join(err, m.namespaces.close())
	}
	return err
}

// Start starts a program on the machine. Its path is that of a file outside,
// which the machine has as well.
func (m *Machine) Start(o process.Options) (*process.Process, error) {
	o.Enter = m.namespaces.enter
	// It ends with the machine, and sees no parent there whose end could be told.
	o.Attributes = dieWithMachine
	p, err := process.Start(o)
	if err != nil {
		return nil, fmt.Errorf("on the machine %s: %w", m.name, err)
	}
	return p, nil
}

// Run runs a program on the machine with input as standard input, and returns
// its standard output. Where it fails, the error has what it said.
func (m *Machine) Run(ctx context.Context, input, program string, args ...string) (string, error) {
	return m.run(ctx, m.namespaces.enter, input, program, args...)
}

func (m *Machine) run(ctx context.Context, enter func() error, input, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &complaint
	if err := m.on(enter, cmd.Run); err != nil {
		return out.String(), fmt.Errorf("%s %s on the machine %s: %w: %s",
			filepath.Base(program), strings.Join(args, " "), m.name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}

// on does something on a thread that has entered.
func (*Machine) on(enter, do func() error) (err error) {
	process.OnThread(func() {
		if err = enter(); err == nil {
			err = do()
		}
	})
	return err
}

// Freeze stops every process on the machine where it stands, as if the machine
// hung. All are stopped at once: none sees another one stopped. What they are
// sent waits in the kernel.
func (m *Machine) Freeze(ctx context.Context) error { return m.signalAll(ctx, "STOP") }

// Thaw undoes Freeze.
func (m *Machine) Thaw(ctx context.Context) error { return m.signalAll(ctx, "CONT") }

// signalAll signals every process on the machine but the first, and in the
// namespaces below it, in one system call.
func (m *Machine) signalAll(ctx context.Context, signal string) error {
	_, err := m.Run(ctx, "", "/bin/sh", "-c", "kill -s "+signal+" -- -1")
	return err
}

// kept are the settings of the whole machine that a kubelet writes to. It writes
// to a copy.
func kept() []string {
	return []string{
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom",
		"/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops",
		"/proc/sys/kernel/keys/root_maxkeys", "/proc/sys/kernel/keys/root_maxbytes",
	}
}

// own are the folders whose place programs do not let anybody choose.
func own() []string { return []string{"/run", "/var/lib", "/var/log"} }

// checkPlace refuses a place that the machine would not see.
func checkPlace(path string) error {
	for _, hidden := range own() {
		if strings.HasPrefix(path, hidden+"/") {
			return fmt.Errorf("%s is below %s, which a machine has for itself: set TMPDIR and XDG_CACHE_HOME to other places", path, hidden)
		}
	}
	return nil
}

// furnish makes the machine that the thread is on what a machine has to be.
func furnish(name, dir string) error {
	steps := []func() error{
		func() error { return setHostname(name) },
	}
	for _, path := range own() {
		steps = append(steps, func() error {
			inside := filepath.Join(dir, strings.ReplaceAll(path[1:], "/", "-"))
			return errors.Join(os.MkdirAll(inside, 0o755), bind(inside, path))
		})
	}
	for _, path := range kept() {
		steps = append(steps, func() error {
			value, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				return nil // a kernel without it
			}
			file := filepath.Join(dir, filepath.Base(path))
			return errors.Join(err, os.WriteFile(file, value, 0o644), bind(file, path))
		})
	}
	steps = append(steps, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
