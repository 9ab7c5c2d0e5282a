package fake

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/tetherkube/tether/internal/wal"
)

// State is a folder that keeps what servers have, so that the next process goes on
// where this one ended, however that came. It is of one API server and one
// booking server, and of one process. It is safe for concurrent use.
//
//	state, err := fake.OpenState(dir, nil)
//	…
//	defer state.Close()
//	s, err := state.APIServer(fake.APIOptions{Manifests: []string{crd}})
//	…
//	defer s.Close()
//
// A write is answered once the disk has it, and nobody sees it before. Where it
// cannot be kept, because the disk is full, it is answered with 500 and has no
// effect; once there is space again the server goes on. What an unfinished write
// has left at the end of a file is left out, with a warning, and so is told where the
// one of two files is not there; a file that is damaged elsewhere, or under the name of
// the other one, is an error.
type State struct {
	dir    string
	folder *wal.Folder
	warn   func(string)
	had    map[string]bool // the files that were there when it was opened
	disk   wal.Options

	mu   sync.Mutex // guards what follows
	logs map[string]*wal.Log
}

// The files of a State. The first record of each is its title.
const (
	objectsFile  = "objects.log"
	bookingsFile = "bookings.log"
)

// title says which file it is, so that none is taken for the other.
func title(file string) []byte { return fmt.Appendf(nil, `{"title":%q}`, file) }

var errTitle = errors.New("it is not this file's: put the files of a folder back under their own names")

// titled replays all records but the title, which it looks at.
func titled(file string, replay func([]byte) error) func([]byte) error {
	first := true
	return func(record []byte) error {
		switch {
		case !first:
			return replay(record)
		case !bytes.Equal(record, title(file)):
			return errTitle
		}
		first = false
		return nil
	}
}

// OpenState opens a folder, and makes it where it is not there, with no rights for
// anyone but this user. It fails where another process has it. warn is told what a
// person should know of a file that is taken over in spite of it; it may be nil.
func OpenState(dir string, warn func(string)) (*State, error) {
	folder, err := wal.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("fake: the state: %w", err)
	}
	if warn == nil {
		warn = func(string) {}
	}
	had := map[string]bool{}
	for _, name := range []string{objectsFile, bookingsFile} {
		_, err = os.Stat(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("fake: the state: %w", err), folder.Unlock())
		}
		had[name] = err == nil
	}
	return &State{dir: dir, folder: folder, warn: warn, had: had, logs: map[string]*wal.Log{}}, nil
}

// Empty says that the folder had no API server's objects when it was opened.
func (s *State) Empty() bool { return !s.had[objectsFile] }

// APIServer makes a server that has what the folder keeps. Manifests and Objects of
// the options are created where it keeps nothing yet, all or none: later they are
// there, or somebody has deleted them. UIDs, versions and times stay as they were;
// who asks to watch or list from a version of before is answered with 410.
func (s *State) APIServer(o APIOptions) (*APIServer, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("fake: an API server with a state: %w", err)
	}
	var kept keptObjects
	var server *APIServer
	log, err := s.open(objectsFile, kept.replay, func() (iter.Seq[[]byte], error) {
		var err error
		if server, err = newAPIServer(o, kept.registry()); err != nil {
			return nil, err
		}
		return server.snapshot(), nil
	})
	if err != nil {
		return nil, fmt.Errorf("fake: an API server with a state: %w", err)
	}
	server.keepIn(log)
	return server, nil
}

// BookingServer makes a server that has what the folder keeps: bookings and what
// the airline is to do to them, references that are closed, the answers under
// idempotency keys, and where seats are sold out. Faults and lags are not kept.
func (s *State) BookingServer(o BookingOptions) (*BookingServer, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("fake: a booking server with a state: %w", err)
	}
	server := NewBookingServer(o)
	log, err := s.open(bookingsFile, server.replay, func() (iter.Seq[[]byte], error) { return server.snapshot(), nil })
	if err != nil {
		return nil, fmt.Errorf("fake: a booking server with a state: %w", err)
	}
	server.log = log
	return server, nil
}

var errTaken = errors.New("the state has one already: open another folder for another one")

// open reads a file, has made of it what is there from now on, and writes that as
// the file's new content, which holds nothing that is over.
func (s *State) open(name string, replay func([]byte) error, restored func() (iter.Seq[[]byte], error)) (*wal.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs[name] != nil {
		return nil, errTaken
	}
	path := filepath.Join(s.dir, name)
	tail, err := wal.Read(path, titled(name, replay))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for other, had := range s.had {
			if had && other != name {
				s.warn(fmt.Sprintf("%s: it is not there, and %s is: what it would have is taken for never made", path, other))
			}
		}
	case err != nil:
		return nil, err
	case tail.Lost > 0:
		s.warn(tail.String())
	}
	snapshot, err := restored()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	log, err := wal.Create(path, after(title(name), snapshot), s.disk)
	if err == nil {
		s.logs[name] = log
	}
	return log, err
}

func after(first []byte, records iter.Seq[[]byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if yield(first) {
			records(yield)
		}
	}
}

// Close ends the keeping: what a server is told from then on it refuses with 500.
// Close the servers first. It may be called again.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range s.logs {
		errs = append(errs, l.Close())
	}
	if s.folder != nil {
		errs = append(errs, s.folder.Unlock())
		s.folder = nil
	}
	return errors.Join(errs...)
}
