package wal

import (
	"fmt"
	"os"
)

// Tail is the end of a file that was left out because it is broken.
type Tail struct {
	// Path is the file.
	Path string
	// Offset is where what is whole ends, and Lost how many bytes come after it.
	Offset, Lost int64
}

// String tells a person what was left out; empty where nothing was.
func (t Tail) String() string {
	if t.Lost == 0 {
		return ""
	}
	return fmt.Sprintf("%s: the last write is broken off at offset %d: %d bytes of it, which nobody was told were kept, are cut off", t.Path, t.Offset, t.Lost)
}

// CorruptError is a file that is broken elsewhere than at its end, or by more than
// an unfinished write.
type CorruptError struct {
	// Path is the file, and Offset where it is broken.
	Path   string
	Offset int64
	// What is wrong there.
	What string
}

// Error names file, offset and remedy.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: it is damaged at offset %d: %s; nothing of it was used or changed: restore the file from a copy, or move it away to begin anew",
		e.Path, e.Offset, e.What)
}

// Read gives each record of a file to replay, in the order in which they were
// written; a record is replay's to keep. It fails with os.ErrNotExist where there
// is no file, with a *CorruptError where it is damaged, and with what replay
// returns as a *CorruptError too. The file is not changed.
func Read(path string, replay func(record []byte) error) (Tail, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Tail{}, err
	}
	corrupt := func(offset int, format string, args ...any) (Tail, error) {
		return Tail{}, &CorruptError{Path: path, Offset: int64(offset), What: fmt.Sprintf(format, args...)}
	}
	snapshotEnd, ok := parseHeader(data)
	if !ok {
		return corrupt(0, "its header is not that of a log")
	}
	at, number := headerSize, uint64(0)
	for at < len(data) {
		got, body, whole := parseFrame(data[at:])
		switch {
		case !whole && int64(at) < snapshotEnd:
			return corrupt(at, "a part of the snapshot is broken")
		case !whole:
			if next := findFrame(data[at+1:]); next >= 0 {
				return corrupt(at, "a record is broken, and one that is whole comes after it, at offset %d", at+1+next)
			}
			return Tail{Path: path, Offset: int64(at), Lost: int64(len(data) - at)}, nil
		case got != number+1:
			return corrupt(at, "record %d comes after record %d", got, number)
		}
		for rest := body; len(rest) > 0; {
			var record []byte
			if record, rest, whole = nextRecord(rest); !whole {
				return corrupt(at, "a record is longer than what it is in")
			}
			if err := replay(record); err != nil {
				return corrupt(at, "a record means nothing: %v", err)
			}
		}
		at, number = at+frameHead+len(body), got
	}
	if int64(at) < snapshotEnd {
		return corrupt(at, "the snapshot is cut off, which wants %d bytes", snapshotEnd)
	}
	return Tail{Path: path, Offset: int64(at)}, nil
}
