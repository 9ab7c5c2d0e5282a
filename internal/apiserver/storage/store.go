package storage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Errors of a store. They are compared with errors.Is.
var (
	// ErrChanged says that the object is not what the writer had seen.
	ErrChanged = errors.New("storage: the object has changed")
	// ErrExpired says that the history does not reach back that far.
	ErrExpired = errors.New("storage: the version is no longer in the history")
	// ErrFuture says that there is no such version yet.
	ErrFuture = errors.New("storage: the version is not there yet")
	// ErrDropped says that the table was taken away.
	ErrDropped = errors.New("storage: the table was dropped")
)

// Ref names an object of any table.
type Ref struct {
	Table string
	Key
}

// KeepError is a write that was not carried out because it could not be kept.
type KeepError struct{ Err error }

// Error says so and why.
func (e *KeepError) Error() string { return "storage: nothing was changed: " + e.Err.Error() }

// Unwrap is why.
func (e *KeepError) Unwrap() error { return e.Err }

// Store is tables of objects under one counter. It is safe for concurrent use.
type Store struct {
	limit int // events that each table keeps, at least

	// writing is held by who writes, from before an event is made until all see it.
	// It is taken before mu, so that a writer that waits for what keeps the events
	// holds up no reader.
	writing sync.Mutex
	keep    func(table string, e *Event) error // nil: nothing is kept; guarded by writing

	mu         sync.RWMutex // guards what follows, and every table
	version    uint64       // of the last change
	tables     map[string]*table
	uids       map[string]Ref
	dependents map[string]map[Ref]struct{} // by the owner's UID
}

// New makes an empty store, whose tables keep at least the last limit events each.
func New(limit int) *Store {
	return &Store{limit: limit, version: 1, tables: map[string]*table{}, uids: map[string]Ref{}, dependents: map[string]map[Ref]struct{}{}}
}

// Keep has every event from now on given to f, in order, before anybody sees it.
// Where f fails, nothing is changed, and who writes gets a *KeepError.
func (s *Store) Keep(f func(table string, e *Event) error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.keep = f
}

// Version is the version of the last change.
func (s *Store) Version() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Make makes a table, unless it is there. Its history begins now.
func (s *Store) Make(name string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[name] == nil {
		s.tables[name] = &table{name: name, compacted: s.version}
	}
}

// Drop takes a table away with what it has. Cursors end with ErrDropped.
func (s *Store) Drop(name string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil {
		return
	}
	for _, o := range t.objects {
		s.indexLocked(name, o, nil)
	}
	delete(s.tables, name)
	t.dropped = true
	t.wakeLocked()
}

// Break ends all cursors of a table with ErrDropped; new ones may begin.
func (s *Store) Break(name string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[name]; t != nil {
		t.breaks++
		t.wakeLocked()
	}
}

// Get is an object, or nil.
func (s *Store) Get(name string, key Key) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tables[name]
	if t == nil {
		return nil
	}
	if i, found := t.find(key); found {
		return t.objects[i]
	}
	return nil
}

// Tables are the names of all tables, in order.
func (s *Store) Tables() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.tables))
}

// Len is the number of objects of a table.
func (s *Store) Len(name string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[name]; t != nil {
		return len(t.objects)
	}
	return 0
}

// ByUID is the object with a UID, and where it is; nil where there is none.
func (s *Store) ByUID(uid string) (Ref, *Object) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ref, ok := s.uids[uid]
	if !ok {
		return Ref{}, nil
	}
	i, _ := s.tables[ref.Table].find(ref.Key)
	return ref, s.tables[ref.Table].objects[i]
}

// Dependents are the objects that have the UID among their owners, in an order
// that does not change.
func (s *Store) Dependents(uid string) []Ref {
	s.mu.RLock()
	defer s.mu.RUnlock()
	refs := make([]Ref, 0, len(s.dependents[uid]))
	for ref := range s.dependents[uid] {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		if a.Table != b.Table {
			return compareKeys(Key{Name: a.Table}, Key{Name: b.Table})
		}
		return compareKeys(a.Key, b.Key)
	})
	return refs
}

// Encode makes the object that is stored under a version. It must not call the
// store.
type Encode func(version uint64) (*Object, error)

// Write puts in the place of old, which is nil for a new object, what encode makes
// of the new version. It fails with ErrChanged where old is not what is there.
func (s *Store) Write(name string, key Key, old *Object, encode Encode) (*Object, error) {
	change := Modified
	if old == nil {
		change = Added
	}
	return s.commit(name, key, old, change, encode)
}

// Delete takes old away. What encode makes is the last state, for those who watch.
func (s *Store) Delete(name string, old *Object, encode Encode) (*Object, error) {
	return s.commit(name, old.Key, old, Deleted, encode)
}

// commit makes an event, has it kept, and then lets it be seen.
func (s *Store) commit(name string, key Key, old *Object, change Change, encode Encode) (*Object, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	version, err := s.expect(name, key, old)
	if err != nil {
		return nil, err
	}
	o, err := encode(version + 1)
	if err != nil {
		return nil, err
	}
	e := &Event{Change: change, Object: o, Old: old, At: time.Now()}
	if s.keep != nil {
		if err := s.keep(name, e); err != nil {
			return nil, &KeepError{err}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = o.Version
	t := s.tables[name]
	switch i, _ := t.find(key); change {
	case Added:
		t.objects = slices.Insert(t.objects, i, o)
		s.indexLocked(name, nil, o)
	case Modified:
		t.objects[i] = o
		s.indexLocked(name, old, o)
	case Deleted:
		t.objects = slices.Delete(t.objects, i, i+1)
		s.indexLocked(name, old, nil)
	}
	t.appendLocked(e, s.limit)
	return o, nil
}

// expect says whether old is what is there, and tells the version of the store.
func (s *Store) expect(name string, key Key, old *Object) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tables[name]
	if t == nil {
		return 0, fmt.Errorf("%w: %s", ErrDropped, name)
	}
	i, found := t.find(key)
	if found != (old != nil) || found && t.objects[i] != old {
		return 0, ErrChanged
	}
	return s.version, nil
}

// Restore fills a table, made and empty, with objects as they were kept. The slice
// is the store's from then on. Nobody is told of it, and nothing is kept.
func (s *Store) Restore(name string, objects []*Object) {
	slices.SortFunc(objects, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[name].objects = objects
	for _, o := range objects {
		s.indexLocked(name, nil, o)
	}
}

// Continue has versions go on after one. Of what was before it, no table has a
// history. It is called before the first write.
func (s *Store) Continue(version uint64) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = max(s.version, version)
	for _, t := range s.tables {
		t.compacted = s.version
	}
}

// indexLocked keeps the indexes by UID up to date; old or o may be nil.
func (s *Store) indexLocked(name string, old, o *Object) {
	if old != nil {
		ref := Ref{Table: name, Key: old.Key}
		delete(s.uids, old.UID)
		for _, owner := range old.Owners {
			delete(s.dependents[owner], ref)
			if len(s.dependents[owner]) == 0 {
				delete(s.dependents, owner)
			}
		}
	}
	if o != nil {
		ref := Ref{Table: name, Key: o.Key}
		s.uids[o.UID] = ref
		for _, owner := range o.Owners {
			if s.dependents[owner] == nil {
				s.dependents[owner] = map[Ref]struct{}{}
			}
			s.dependents[owner][ref] = struct{}{}
		}
	}
}
