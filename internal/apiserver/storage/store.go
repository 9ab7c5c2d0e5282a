package storage

import (
	"errors"
	"fmt"
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

// Store is tables of objects under one counter. It is safe for concurrent use.
type Store struct {
	limit int // events that each table keeps, at least

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

// Version is the version of the last change.
func (s *Store) Version() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// Make makes a table, unless it is there. Its history begins now.
func (s *Store) Make(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[name] == nil {
		s.tables[name] = &table{name: name, compacted: s.version}
	}
}

// Drop takes a table away with what it has. Cursors end with ErrDropped.
func (s *Store) Drop(name string) {
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

func (s *Store) commit(name string, key Key, old *Object, change Change, encode Encode) (*Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil {
		return nil, fmt.Errorf("%w: %s", ErrDropped, name)
	}
	i, found := t.find(key)
	if found != (old != nil) || found && t.objects[i] != old {
		return nil, ErrChanged
	}
	o, err := encode(s.version + 1)
	if err != nil {
		return nil, err
	}
	s.version++
	switch change {
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
	t.appendLocked(&Event{Change: change, Object: o, Old: old, At: time.Now()}, s.limit)
	return o, nil
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
