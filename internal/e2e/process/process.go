package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Options say what to run.
type Options struct {
	// Path is the program, and Args what it is given, without its name.
	Path string
	Args []string
	// Env is its environment; nil means that of this process.
	Env []string
	// Dir is its folder; empty means that of this process.
	Dir string
	// Stdout takes its standard output in place of the log, which otherwise
	// has both outputs.
	Stdout io.Writer
	// KeepLines is how many lines the log keeps at least; older ones are
	// dropped. [20,000]
	KeepLines int
	// Enter, where there is one, runs on the thread that starts the program, and
	// that runs nothing else any more: what it does to the thread, such as
	// entering a namespace, holds for the program alone.
	Enter func() error
	// Attributes, where there are any, change how the program is started.
	Attributes func(*syscall.SysProcAttr)
}

// Process is a program that was started. All methods may be called from any
// goroutine, before and after it has ended.
type Process struct {
	name  string
	cmd   *exec.Cmd
	log   *Log
	ended chan struct{}
	err   error // of Wait; set before ended is closed
}

// Start starts a program in a process group of its own, so that a Ctrl-C in the
// terminal reaches it only through whoever started it.
func Start(o Options) (*Process, error) {
	if o.KeepLines == 0 {
		o.KeepLines = 20_000
	}
	p := &Process{name: filepath.Base(o.Path), log: newLog(o.KeepLines), ended: make(chan struct{})}
	p.cmd = exec.Command(o.Path, o.Args...)
	p.cmd.Env, p.cmd.Dir = o.Env, o.Dir
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if o.Stdout != nil {
		p.cmd.Stdout = o.Stdout
	}
	p.cmd.SysProcAttr = attributes()
	if o.Attributes != nil {
		o.Attributes(p.cmd.SysProcAttr)
	}
	// What it leaves running may hold its output open for longer than it lives.
	p.cmd.WaitDelay = 5 * time.Second

	started := make(chan error)
	// The kernel sends the death signal when the *thread* that started the process
	// ends. This one is there until the process is gone.
	go OnThread(func() {
		var err error
		if o.Enter != nil {
			err = o.Enter()
		}
		if err == nil {
			err = p.cmd.Start()
		}
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		p.log.end()
		close(p.ended)
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	return p, nil
}

// Name is that of the program.
func (p *Process) Name() string { return p.name }

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is what it has written.
func (p *Process) Log() *Log { return p.log }

// Ended is closed when the process has ended and all of its output is in Log.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal. A process that has ended already is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", sig, p.name, err)
	}
	return nil
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// Stop sends SIGTERM, waits for as long as grace says, and then kills. It says
// by its error where the grace time was not enough.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-p.ended:
		return nil
	case <-late.C:
		return errors.Join(fmt.Errorf("%s did not end within %s of a SIGTERM, and was killed", p.name, grace), p.Kill())
	}
}

// Exit is how a process ended: its code, or the signal that killed it, where
// Code is -1.
type Exit struct {
	Code   int
	Signal syscall.Signal
}

// Wait waits for the end. Where ctx ends first, the error has the last lines of
// the log.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("waiting for %s to end: %w; its last lines:\n%s", p.name, context.Cause(ctx), p.log.Tail(30))
	}
	var failed *exec.ExitError
	if p.err != nil && !errors.As(p.err, &failed) && !errors.Is(p.err, exec.ErrWaitDelay) {
		return Exit{}, fmt.Errorf("waiting for %s to end: %w", p.name, p.err)
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return Exit{Code: p.cmd.ProcessState.ExitCode()}, nil
	}
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal()}, nil
	}
	return Exit{Code: status.ExitStatus()}, nil
}

// WaitForLine waits for a line that has every one of the words, looking from
// the line with the index from, and returns it and the index after it. It is an
// error where the process or ctx ends before there is one.
func (p *Process) WaitForLine(ctx context.Context, from int, words ...string) (line string, next int, err error) {
	line, next, err = p.log.WaitFor(ctx, from, func(line string) bool {
		for _, w := range words {
			if !strings.Contains(line, w) {
				return false
			}
		}
		return true
	})
	if err != nil {
		err = fmt.Errorf("waiting for a line of %s with %q: %w; its last lines:\n%s", p.name, words, err, p.log.Tail(30))
	}
	return line, next, err
}
