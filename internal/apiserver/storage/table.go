package storage

import (
	"slices"
	"sort"
)

// table is the objects of one resource and its log. The store's lock guards it.
type table struct {
	name    string
	objects []*Object // in the order of lists
	dropped bool

	log       []*Event // oldest first
	first     uint64   // number of log[0]: the events that went before it
	compacted uint64   // version of the newest event that went, or of the table's making
	changed   chan struct{}
	cursors   int
	breaks    int // how often cursors were ended
}

// find is where the key is, or would be.
func (t *table) find(key Key) (int, bool) {
	return slices.BinarySearchFunc(t.objects, key, func(o *Object, k Key) int { return compareKeys(o.Key, k) })
}

// appendLocked adds to the log, and now and then forgets the older half of it.
func (t *table) appendLocked(e *Event, limit int) {
	t.log = append(t.log, e)
	if gone := len(t.log) - limit; gone >= limit {
		t.compacted = t.log[gone-1].Version()
		t.first += uint64(gone)
		t.log = slices.Clone(t.log[gone:])
	}
	t.wakeLocked()
}

func (t *table) wakeLocked() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// after is the index in the log of the first event that is newer.
func (t *table) after(version uint64) int {
	return sort.Search(len(t.log), func(i int) bool { return t.log[i].Version() > version })
}

// reachable says whether the table's past at a version is known.
func (t *table) reachable(version, now uint64) error {
	switch {
	case version > now:
		return ErrFuture
	case version < t.compacted:
		return ErrExpired
	}
	return nil
}

// past is what differs at a version from now: by key the object as it was, nil
// where it was not there.
func (t *table) past(version uint64) map[Key]*Object {
	events := t.log[t.after(version):]
	if len(events) == 0 {
		return nil
	}
	differs := make(map[Key]*Object, len(events))
	for _, e := range slices.Backward(events) {
		differs[e.Object.Key] = e.Old
	}
	return differs
}
