package wal

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LockedError is a folder that another process has.
type LockedError struct {
	// Folder is what is locked.
	Folder string
	// PID is the process that has it; 0 where it does not say.
	PID int
}

// Error names the folder and the process.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s: %s uses it; end that, or use another folder", e.Folder, who)
}

// Folder is a folder that this process alone uses.
type Folder struct{ lock *os.File }

// Lock makes a folder, which is its user's alone where it is new, and takes it
// until Unlock or the end of the process, however that comes. It fails with a
// *LockedError where it is taken.
func Lock(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	taken, err := tryLock(f)
	if err != nil || taken {
		defer f.Close()
		if err != nil {
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		raw, _ := io.ReadAll(io.LimitReader(f, 32))            // it helps where it says something
		pid, _ := strconv.Atoi(strings.TrimSpace(string(raw))) // likewise
		return nil, &LockedError{Folder: path, PID: pid}
	}
	// Who it is helps a person; without it the lock holds all the same.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	return &Folder{f}, nil
}

// Unlock gives the folder back.
func (f *Folder) Unlock() error { return f.lock.Close() }
