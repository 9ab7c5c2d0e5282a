package storage

// Cursor is one reader's place in a table's history. One goroutine uses it at a
// time.
type Cursor struct {
	s      *Store
	t      *table
	next   uint64 // number of the event to come
	breaks int    // of the table, when it began
}

// Watch is a cursor, to be closed, for all that comes after a version. It fails with ErrExpired
// or ErrDropped; a version that is not there yet is waited for.
func (s *Store) Watch(name string, after uint64) (*Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil {
		return nil, ErrDropped
	}
	if after < t.compacted {
		return nil, ErrExpired
	}
	t.cursors++
	return &Cursor{s: s, t: t, next: t.first + uint64(t.after(after)), breaks: t.breaks}, nil
}

// WatchList is a list, and a cursor for all that comes after it.
func (s *Store) WatchList(name string, sel Selection) (List, *Cursor, error) {
	l, err := s.List(name, sel)
	if err != nil {
		return List{}, nil, err
	}
	c, err := s.Watch(name, l.Version)
	return l, c, err
}

// Close gives the cursor back; it is not used any more.
func (c *Cursor) Close() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.t.cursors--
}

// Beside is how many cursors the table has, with this one.
func (c *Cursor) Beside() int {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.t.cursors
}

// Oldest is the version before which the cursor's table has no history.
func (c *Cursor) Oldest() uint64 {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return c.t.compacted
}

// batch bounds what one call of Next takes, so that a reader that is far behind
// does not hold the lock for long.
const batch = 256

// Next is the events that come next. Where there are none yet, changed is closed
// once there may be, and version is how far the cursor has come. It fails with
// ErrExpired where the reader was too slow, and with ErrDropped, after all events,
// where the table is gone or its cursors were ended.
func (c *Cursor) Next() (events []*Event, version uint64, changed <-chan struct{}, err error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	t := c.t
	if c.next < t.first {
		return nil, 0, nil, ErrExpired
	}
	if from := int(c.next - t.first); from < len(t.log) {
		events = t.log[from:min(from+batch, len(t.log))]
		c.next += uint64(len(events))
		return events, events[len(events)-1].Version(), nil, nil
	}
	if t.dropped || c.breaks != t.breaks {
		return nil, 0, nil, ErrDropped
	}
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return nil, c.s.version, t.changed, nil
}
