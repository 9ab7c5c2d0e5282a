package fake

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// journaled is what a journal wants of its entries.
type journaled[E any] interface {
	// String is one line for people.
	String() string
	// arrived is the entry with its number and time.
	arrived(seq int, at time.Time, since time.Duration) E
	// finished says that the entry does not change any more.
	finished() bool
	// clone shares nothing with the entry that is ever written to.
	clone() E
}

// journal holds what a server was asked. It is safe for concurrent use.
type journal[E journaled[E]] struct {
	of    string // whose it is
	start time.Time
	limit int     // of entries; the oldest go first
	log   func(E) // called with each entry when it is done, without the lock; nil for none

	mu       sync.Mutex // guards what follows, and every entry
	seq      int        // of the newest entry
	revision uint64     // of the last change
	notes    []*note[E] // in the order of arrival
	recent   list.List  // the same, in the order of their revisions
	// changed is closed at the next change; nil while nobody waits.
	changed chan struct{}
}

// note is one entry in its journal.
type note[E any] struct {
	entry    E
	seq      int
	revision uint64        // of its last change
	recent   *list.Element // its place
}

func newJournal[E journaled[E]](of string, limit int, log func(E)) *journal[E] {
	return &journal[E]{of: of, start: time.Now(), limit: limit, log: log}
}

// add appends an entry, and gives it its number and time.
func (j *journal[E]) add(e E) *note[E] {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	at := time.Now()
	n := &note[E]{entry: e.arrived(j.seq, at, at.Sub(j.start)), seq: j.seq}
	if len(j.notes) >= j.limit {
		j.recent.Remove(j.notes[0].recent)
		j.notes = j.notes[1:]
	}
	j.notes = append(j.notes, n)
	n.recent = j.recent.PushBack(n)
	j.changedLocked(n)
	return n
}

// update changes an entry, also one that is no longer among the newest.
func (j *journal[E]) update(n *note[E], f func(*E)) {
	j.mu.Lock()
	done := n.entry.finished()
	f(&n.entry)
	finished := n.entry.finished() && !done
	e := n.entry.clone()
	j.changedLocked(n)
	j.mu.Unlock()
	if finished && j.log != nil {
		j.log(e)
	}
}

func (j *journal[E]) changedLocked(n *note[E]) {
	j.revision++
	n.revision = j.revision
	j.recent.MoveToBack(n.recent) // does nothing where it was removed
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// get is an entry as it stands.
func (j *journal[E]) get(n *note[E]) E {
	j.mu.Lock()
	defer j.mu.Unlock()
	return n.entry.clone()
}

// snapshot is every entry as it stands, oldest first.
func (j *journal[E]) snapshot() []E {
	j.mu.Lock()
	defer j.mu.Unlock()
	return clonesOf(j.notes)
}

// transcript is one line for each entry.
func (j *journal[E]) transcript() string {
	var b strings.Builder
	for _, e := range j.snapshot() {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// since is the entries that have changed after a revision, oldest first, the
// revision that they stand at, and a channel that is closed at the next change.
func (j *journal[E]) since(revision uint64) (entries []E, at uint64, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	var notes []*note[E]
	for place := j.recent.Back(); place != nil; place = place.Prev() {
		n := place.Value.(*note[E])
		if n.revision <= revision {
			break
		}
		notes = append(notes, n)
	}
	slices.SortFunc(notes, func(a, b *note[E]) int { return cmp.Compare(a.seq, b.seq) })
	return clonesOf(notes), j.revision, j.changed
}

// await waits until there is an entry that match accepts, and answers the oldest
// such. It looks at an entry once, and again when it has changed; match is called
// without the lock.
func (j *journal[E]) await(ctx context.Context, match func(E) bool) (E, error) {
	for seen := uint64(0); ; {
		entries, at, changed := j.since(seen)
		for _, e := range entries {
			if match(e) {
				return e, nil
			}
		}
		seen = at
		select {
		case <-changed:
		case <-ctx.Done():
			var none E
			return none, fmt.Errorf("fake: no such entry in the %s's journal: %w\n%s", j.of, context.Cause(ctx), j.transcript())
		}
	}
}

func clonesOf[E journaled[E]](notes []*note[E]) []E {
	entries := make([]E, 0, len(notes))
	for _, n := range notes {
		entries = append(entries, n.entry.clone())
	}
	return entries
}
