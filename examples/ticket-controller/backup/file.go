// Package backup is the file that Tickets are carried in: from a cluster into a
// file, and from there into the same cluster or another.
//
// It is a text of JSON objects, one a line: a [Header], the Tickets with claim and
// status as the API server tells them, and a trailer that counts and checks what
// came before it. A file without its trailer is a part of one, and is not read. It
// holds what the Tickets hold, names and addresses of passengers among it, and no
// token or other secret.
package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole
)

// Kind and Version say what a file is. A program reads the versions up to its own.
const (
	Kind    = "TicketBackup"
	Version = 1
)

// longestLine bounds a line: the API server's own bound for an object, and some.
const longestLine = 8 << 20

// Header is the first line.
type Header struct {
	Kind    string    `json:"kind"`
	Version int       `json:"version"`
	Cluster string    `json:"cluster"` // its id in references
	Taken   time.Time `json:"taken"`
}

type trailer struct {
	Tickets *int   `json:"tickets"`
	SHA256  string `json:"sha256"` // of every byte before this line
}

// Backup is a file's content.
type Backup struct {
	Header
	Tickets []*unstructured.Unstructured
}

// Create writes a file that only its owner may read, whole or not at all: what
// stood there before stays until the new one is on disk. It tells how many Tickets
// it has written.
func Create(path string, h Header, tickets iter.Seq2[*unstructured.Unstructured, error]) (n int, err error) {
	if path, err = place(path); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return 0, fmt.Errorf("%s: no file can be made there: %w", filepath.Dir(path), errors.Unwrap(err)) // whose own name nobody gave
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if n, err = write(f, h, tickets); err != nil {
		return 0, err
	}
	if err = f.Sync(); err != nil {
		return 0, err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return n, errors.Join(f.Close(), syncDir(filepath.Dir(path)))
}

// place is where a file of a name is put: at the end of a symbolic link, and never in the
// place of what is no file, as a device.
func place(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return path, nil //nolint:nilerr // nothing is there, or what is in the way is met when the file is made
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: it is there, and no regular file (%s): name one, or one that is not there yet", path, info.Mode().Type())
	}
	return filepath.EvalSymlinks(path)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func write(w io.Writer, h Header, tickets iter.Seq2[*unstructured.Unstructured, error]) (int, error) {
	h.Kind, h.Version = Kind, Version
	buffered := bufio.NewWriter(w)
	sum := sha256.New()
	lines := json.NewEncoder(io.MultiWriter(buffered, sum))
	if err := lines.Encode(h); err != nil {
		return 0, err
	}
	n := 0
	for t, err := range tickets {
		if err != nil {
			return 0, err
		}
		if err := lines.Encode(t.Object); err != nil {
			return 0, err
		}
		n++
	}
	end := trailer{Tickets: &n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if err := json.NewEncoder(buffered).Encode(end); err != nil {
		return 0, err
	}
	return n, buffered.Flush()
}

// Open reads a file whole, and checks it before it returns anything of it. What is
// wrong with it is told with the line.
func Open(path string) (Backup, error) {
	f, err := os.Open(path)
	if err != nil {
		return Backup{}, err
	}
	defer func() { _ = f.Close() }() // it was read, or is of no use
	b, err := read(f)
	if err != nil {
		return Backup{}, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func read(r io.Reader) (Backup, error) {
	var b Backup
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	sum := sha256.New()
	var last []byte // the line before this one: the trailer is known by what follows it
	n := 0
	for lines.Scan() {
		if n > 0 {
			if err := b.take(n, last, sum); err != nil {
				return Backup{}, err
			}
		}
		n++
		last = bytes.Clone(lines.Bytes())
	}
	switch err := lines.Err(); {
	case err != nil:
		return Backup{}, fmt.Errorf("line %d: %w", n+1, err)
	case n == 0:
		return Backup{}, errors.New("it is empty, and no backup")
	case n == 1:
		if err := b.take(1, last, sum); err != nil {
			return Backup{}, err
		}
		return Backup{}, errPart
	}
	return b, b.check(last, sum)
}

var errPart = errors.New("its last line is missing: it is a part of a backup, or one that was never finished; use another")

// take reads one line that is not the last.
func (b *Backup) take(n int, line []byte, sum hash.Hash) error {
	_, _ = sum.Write(append(line, '\n')) // a hash never fails
	if n > 1 {
		t := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(line, &t.Object); err != nil {
			return fmt.Errorf("line %d: %w; the file is damaged: use another", n, err)
		}
		b.Tickets = append(b.Tickets, t)
		return nil
	}
	switch err := json.Unmarshal(line, &b.Header); {
	case err != nil || b.Kind != Kind:
		return fmt.Errorf("line 1: it is no %s; give a file that the subcommand backup has written", Kind)
	case b.Version > Version:
		return fmt.Errorf("line 1: it is of version %d, and this program reads versions up to %d; use a newer ticket-controller", b.Version, Version)
	}
	return nil
}

// check reads the last line.
func (b *Backup) check(line []byte, sum hash.Hash) error {
	var end trailer
	switch err := json.Unmarshal(line, &end); {
	case err != nil || end.Tickets == nil:
		return errPart
	case *end.Tickets != len(b.Tickets) || end.SHA256 != hex.EncodeToString(sum.Sum(nil)):
		return errors.New("its content and its checksum do not agree: it is damaged, or was edited; use another")
	}
	return nil
}
