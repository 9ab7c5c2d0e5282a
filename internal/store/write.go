package store

import "slices"

// Write is an own write that is under way. While it is, the store remembers which
// versions of the object came by event: they may be this write's, seen before its
// answer, and they may be somebody else's.
type Write[T Object] struct {
	store  *Store[T]
	key    Key
	origin Origin
	stored bool // see OfStored
	// The rest is guarded by the store's mu.
	base    T        // what was stored when the write began
	hadBase bool     //
	seen    []string // versions that came by event meanwhile
	removed string   // version of a deletion that came meanwhile
}

// BeginWrite is called before a write is sent. Exactly one of Answered and Failed
// follows.
func (s *Store[T]) BeginWrite(key Key, by Origin) *Write[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.objects[key.Namespace][key.Name]
	w := &Write[T]{store: s, key: key, origin: by, base: e.obj, hadBase: ok}
	s.writes[key] = append(s.writes[key], w)
	return w
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
	for _, w := range s.writes[key] {
		w.seen = append(w.seen, version)
		by = &w.origin
	}
	return by
}

// Answered takes the write's answer into the store, unless something newer is
// known. An answer with a deletion time and no finalizer says that the object is
// gone. The object becomes the store's: shared and read-only.
func (w *Write[T]) Answered(obj T) {
	s := w.store
	values := s.values(obj)
	s.mu.Lock()
	w.endLocked()
	s.stamp++
	version := obj.GetResourceVersion()
	old, had := s.objects[w.key.Namespace][w.key.Name]
	c := Change[T]{Old: old.obj, HasOld: had, By: &w.origin}
	gone := obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0
	told := true
	switch {
	case w.removed != "" && !isNewer(version, w.removed):
		told = false
	case gone && had && old.obj.GetUID() == obj.GetUID(): // the version is that of before it went
		s.dropLocked(w.key)
		s.buryLocked(w.key, obj)
	case gone, had && !newer(obj, old.obj), !had && w.stored:
		told = false
	default:
		s.putLocked(w.key, entry[T]{obj: obj, stamp: s.stamp}, values)
		c.New, c.HasNew = obj, true
	}
	again, foreign := w.foreignLocked(version)
	s.mu.Unlock()
	if told {
		s.tell(c)
	}
	if foreign {
		s.tell(again)
	}
}

// Failed says that the write took no effect, or that nobody knows.
func (w *Write[T]) Failed() {
	w.store.mu.Lock()
	w.endLocked()
	again, foreign := w.foreignLocked("")
	w.store.mu.Unlock()
	if foreign {
		w.store.tell(again)
	}
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

// foreignLocked tells whether an event that came meanwhile was somebody else's.
// Its subscribers heard of it as perhaps this write's, so the writer's owner hears
// it again, now without that doubt.
func (w *Write[T]) foreignLocked(version string) (Change[T], bool) {
	if !slices.ContainsFunc(w.seen, func(v string) bool { return v != version }) {
		return Change[T]{}, false
	}
	e, ok := w.store.objects[w.key.Namespace][w.key.Name]
	return Change[T]{Old: w.base, HasOld: w.hadBase, New: e.obj, HasNew: ok, Only: w.origin.Owner}, ok
}
