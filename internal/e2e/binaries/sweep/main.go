// Command sweep undoes what another program leaves behind, whether that one ends
// as it should or is killed. The other one holds a pipe to its standard input, and
// writes a line for each thing when it makes it:
//
//	process PID     to be killed
//	cgroup FOLDER   to be removed with the groups below it
//	folder FOLDER   to be removed with all that is in it
//
// The end of the pipe is the end of the other one: then all of it goes, in this
// order. It says what it could not remove, and then its status is 1.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long to try: what was killed takes its time to go.
const patience = 30 * time.Second

type list struct {
	processes        []*os.Process
	cgroups, folders []string
}

func main() {
	// Whoever tells the other program to stop may mean the whole group.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	l, err := read(os.Stdin)
	if err = errors.Join(err, l.sweep(time.Now().Add(patience))); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

// read takes lines until there are no more. Processes are opened at once, while
// the other program is there to vouch for their ids.
func read(r io.Reader) (l list, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		kind, what, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "process":
			pid, e := strconv.Atoi(what)
			if e != nil {
				err = errors.Join(err, e)
				continue
			}
			p, e := os.FindProcess(pid)
			if e != nil {
				err = errors.Join(err, e)
				continue
			}
			l.processes = append(l.processes, p)
		case "cgroup":
			l.cgroups = append(l.cgroups, what)
		case "folder":
			l.folders = append(l.folders, what)
		default:
			err = errors.Join(err, fmt.Errorf("%q is not to be understood", lines.Text()))
		}
	}
	return l, errors.Join(err, lines.Err())
}

func (l list) sweep(end time.Time) error {
	var errs []error
	for _, p := range l.processes {
		errs = append(errs, try(end, func() error {
			if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
				return errors.Join(err, fmt.Errorf("process %d is still there", p.Pid))
			}
			return nil
		}))
	}
	for _, dir := range l.cgroups {
		errs = append(errs, try(end, func() error { return removeCgroup(dir) }))
	}
	for _, dir := range l.folders {
		errs = append(errs, try(end, func() error { return os.RemoveAll(dir) }))
	}
	return errors.Join(errs...)
}

// try does something until it succeeds or its time is over.
func try(end time.Time, do func() error) error {
	for {
		err := do()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// removeCgroup removes the groups from the innermost on. What else is in there
// are the kernel's files, which go with them.
func removeCgroup(dir string) error {
	var groups []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for _, group := range slices.Backward(groups) {
		if e := os.Remove(group); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
