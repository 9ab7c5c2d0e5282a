package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

// Sweeper undoes what is left by this program, in a process of its own, when it
// is told to or this program ends, however that comes about. Its methods may be
// called concurrently.
type Sweeper struct {
	cmd       *exec.Cmd
	complaint bytes.Buffer
	once      sync.Once
	err       error // of Sweep

	// mu guards what follows.
	mu   sync.Mutex
	pipe io.WriteCloser
}

// StartSweeper starts one, with the program whose path it is given. It owes a
// Sweep.
func StartSweeper(program string) (*Sweeper, error) {
	s := &Sweeper{cmd: exec.Command(program)}
	// No signal to this program's group or terminal is meant for it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	s.cmd.Dir = "/"
	s.cmd.Stderr = &s.complaint
	var err error
	if s.pipe, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting what cleans up: %w", err)
	}
	return s, nil
}

// Process has a process killed, the id being good at least until this returns.
func (s *Sweeper) Process(pid int) error { return s.tell("process", strconv.Itoa(pid)) }

// Cgroup has a control group removed, and those below it.
func (s *Sweeper) Cgroup(dir string) error { return s.tell("cgroup", dir) }

// Folder has a folder removed. What uses it should end by Process.
func (s *Sweeper) Folder(dir string) error { return s.tell("folder", dir) }

func (s *Sweeper) tell(kind, what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fmt.Fprintln(s.pipe, kind, what); err != nil {
		return fmt.Errorf("telling what cleans up of the %s %s: %w", kind, what, err)
	}
	return nil
}

// Sweep undoes everything now, and returns when it is gone, with what is not. It
// may be called more than once.
func (s *Sweeper) Sweep() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.pipe.Close()
		s.mu.Unlock()
		if err := s.cmd.Wait(); err != nil {
			s.err = errors.Join(err, errors.New(s.complaint.String()))
		}
	})
	return s.err
}
