package wal

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
)

// File is what a log needs of its file; *os.File is one.
type File interface {
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// Options configure a [Log]. The zero value works.
type Options struct {
	// Wrap puts something between a log and its file, for tests of a disk that is
	// full or broken [nothing].
	Wrap func(File) File
}

// Log is a file that records are appended to. It is safe for concurrent use.
type Log struct {
	path string

	mu     sync.Mutex // guards what follows
	file   File
	end    int64  // of what is whole; the file may be longer where broken
	number uint64 // of the last frame
	broken bool   // what is behind end is to be cut off first
	closed bool
}

// WriteError is a write that failed. What it was to keep is not kept.
type WriteError struct {
	// Path is the file.
	Path string
	// Err is why.
	Err error
}

// Error names the file and the reason.
func (e *WriteError) Error() string { return fmt.Sprintf("%s: nothing can be kept: %v", e.Path, e.Err) }

// Unwrap is why.
func (e *WriteError) Unwrap() error { return e.Err }

var errClosed = errors.New("the log is closed")

// batch is how many bytes of a snapshot go into one frame, at least.
const batch = 1 << 20

// Create writes a new log, which begins with the records of a snapshot, in the
// place of the file that may be there. It returns once the disk has it; where it
// fails, the file that was there is as it was. The file is its user's alone.
func Create(path string, snapshot iter.Seq[[]byte], o Options) (*Log, error) {
	temporary := path + ".new" // of an earlier process that ended too soon, if it is there
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, &WriteError{path, err}
	}
	l := &Log{path: path, file: f, end: int64(headerSize)}
	if o.Wrap != nil {
		l.file = o.Wrap(f)
	}
	err = l.begin(snapshot)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		l.file.Close()
		_ = os.Remove(temporary) // the error before it is told
		return nil, &WriteError{path, err}
	}
	return l, nil
}

// begin writes the snapshot, and last the header, without which there is no file.
func (l *Log) begin(snapshot iter.Seq[[]byte]) error {
	var records [][]byte
	size := 0
	flush := func() error {
		frame, err := appendFrame(nil, l.number+1, records...)
		if err == nil {
			_, err = l.file.WriteAt(frame, l.end)
		}
		if err == nil {
			l.number++
			l.end += int64(len(frame))
			records, size = records[:0], 0
		}
		return err
	}
	for r := range snapshot {
		records = append(records, r)
		if size += len(r); size >= batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(records) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if _, err := l.file.WriteAt(header(l.end), 0); err != nil {
		return err
	}
	return l.file.Sync()
}

// syncFolder makes a new name in a folder last.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Append adds records, all or none, and returns once the disk has them. Where it
// fails with a *WriteError, none is there, and a later one may succeed.
func (l *Log) Append(records ...[]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &WriteError{l.path, errClosed}
	}
	if err := l.cutLocked(); err != nil {
		return &WriteError{l.path, err}
	}
	frame, err := appendFrame(nil, l.number+1, records...)
	if err != nil {
		return &WriteError{l.path, err}
	}
	if _, err = l.file.WriteAt(frame, l.end); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.broken = true
		return &WriteError{l.path, errors.Join(err, l.cutLocked())}
	}
	l.end += int64(len(frame))
	l.number++
	return nil
}

// cutLocked takes off what a write that failed has left. Until that succeeds
// nothing more is written: a whole frame behind a broken one would not be found.
func (l *Log) cutLocked() error {
	if !l.broken {
		return nil
	}
	if err := l.file.Truncate(l.end); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.broken = false
	return nil
}

// Close ends the log; what was appended is on the disk. It may be called again.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return l.file.Close()
}
