package store

import "slices"

// Write is an own write that is under way. While it is, the store remembers which
// versions of the object came by event: they may be this write's, seen before its
// answer, and they may be somebody else's. One whose object the server names has a
// key without a name: any event of its namespace may be its.
type Write[T Object] struct {
	store  *Store[T]
	key    Key
	origin Origin
	stored bool // see OfStored
	read   bool // it is a read: no event is its, and its answer is no later than one
	// The rest is guarded by the store's mu.
	base    T              // what was stored when the write began
	hadBase bool           //
	seen    []told         // what came by event meanwhile
	removed map[Key]string // versions of deletions that came meanwhile
}

// told is a version that came by event.
type told struct {
	key     Key
	version string
}

// BeginWrite is called before a write is sent. Exactly one of Answered, Failed and
// Removed follows.
func (s *Store[T]) BeginWrite(key Key, by Origin) *Write[T] {
	return s.begin(&Write[T]{store: s, key: key, origin: by})
}

// BeginRead is called before an object is read that may not be stored yet, as BeginWrite
// is before a write: what was deleted meanwhile is not brought back by the answer.
func (s *Store[T]) BeginRead(key Key) *Write[T] {
	return s.begin(&Write[T]{store: s, key: key, read: true})
}

func (s *Store[T]) begin(w *Write[T]) *Write[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.objects[w.key.Namespace][w.key.Name]
	w.base, w.hadBase = e.obj, ok
	s.writes[w.key] = append(s.writes[w.key], w)
	return w
}

// flyingLocked are the writes in flight that an event of a key may come from.
func (s *Store[T]) flyingLocked(key Key) []*Write[T] {
	named, nameless := s.writes[key], s.writes[Key{Namespace: key.Namespace}]
	if len(nameless) == 0 {
		return named
	}
	return slices.Concat(named, nameless)
}

// OfStored says that the write is of an object that its writer found in the store:
// what is not stored any more when the answer comes is not brought back, as
// [Store.Refresh] has it.
func (w *Write[T]) OfStored() *Write[T] {
	w.stored = true
	return w
}

// inFlightLocked notes an event with every write in flight on its key, and names
// the one that it may have come from.
func (s *Store[T]) inFlightLocked(key Key, version string) *Origin {
	var by *Origin
	for _, w := range s.flyingLocked(key) {
		if w.read {
			continue
		}
		w.seen = append(w.seen, told{key, version})
		by = &w.origin
	}
	return by
}

// removedLocked notes the event of a deletion with them.
func (s *Store[T]) removedLocked(key Key, version string) {
	for _, w := range s.flyingLocked(key) {
		if w.removed == nil {
			w.removed = map[Key]string{}
		}
		w.removed[key] = version
	}
}

// Answered takes the write's answer into the store, unless something newer is
// known. An answer with a deletion time and no finalizer says that the object is
// gone. The object becomes the store's: shared and read-only.
func (w *Write[T]) Answered(obj T) {
	s := w.store
	key, values, version := KeyOf(obj), s.values(obj), obj.GetResourceVersion()
	s.mu.Lock()
	w.endLocked()
	old, had := s.objects[key.Namespace][key.Name]
	c, e := Change[T]{Old: old.obj, HasOld: had}, entry[T]{obj: obj}
	if !w.read {
		s.stamp++
		c.By, e.stamp = &w.origin, s.stamp
	}
	removed, wasRemoved := w.removed[key]
	gone := obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0
	told := true
	switch {
	case wasRemoved && !isNewer(version, removed):
		told = false
	case gone && had && old.obj.GetUID() == obj.GetUID(): // the version is that of before it went
		s.dropLocked(key)
		s.buryLocked(key, obj)
	case gone, had && !newer(obj, old.obj), !had && w.stored, s.buriedLocked(key, obj):
		told = false
	default:
		s.putLocked(key, e, values)
		c.New, c.HasNew = obj, true
	}
	again := w.foreignLocked(key, version)
	s.mu.Unlock()
	if told {
		s.tell(c)
	}
	s.tell(again...)
}

// Failed says that the write took no effect, or that nobody knows, or that its answer is
// of no object that is stored here.
func (w *Write[T]) Failed() {
	w.store.mu.Lock()
	w.endLocked()
	again := w.foreignLocked(w.key, "")
	w.store.mu.Unlock()
	w.store.tell(again...)
}

// Removed takes the answer to a delete that left nothing behind.
func (w *Write[T]) Removed() {
	s := w.store
	s.mu.Lock()
	w.endLocked()
	s.stamp++
	old, had := s.objects[w.key.Namespace][w.key.Name]
	drop := had && w.hadBase && old.obj.GetUID() == w.base.GetUID()
	if drop {
		s.dropLocked(w.key)
		s.buryLocked(w.key, old.obj)
	}
	s.mu.Unlock()
	if drop {
		s.tell(Change[T]{Old: old.obj, HasOld: true, By: &w.origin})
	}
}

func (w *Write[T]) endLocked() {
	s := w.store
	rest := slices.DeleteFunc(s.writes[w.key], func(o *Write[T]) bool { return o == w })
	if len(rest) == 0 {
		delete(s.writes, w.key)
	} else {
		s.writes[w.key] = rest
	}
}

// foreignLocked are the events that came meanwhile and were somebody else's than the
// write's, whose answer has this key and version. Subscribers heard of them as perhaps
// this write's, so the writer's owner hears them again, now without that doubt.
func (w *Write[T]) foreignLocked(key Key, version string) []Change[T] {
	var again []Change[T]
	heard := map[Key]bool{}
	for _, t := range w.seen {
		e, ok := w.store.objects[t.key.Namespace][t.key.Name]
		if !ok || heard[t.key] || t == (told{key, version}) {
			continue
		}
		heard[t.key] = true
		again = append(again, Change[T]{Old: w.base, HasOld: w.hadBase, New: e.obj, HasNew: true, Only: w.origin.Owner})
	}
	return again
}
