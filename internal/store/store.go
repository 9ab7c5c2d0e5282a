package store

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Object is what a store holds.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object within its resource.
type Key = types.NamespacedName

// KeyOf is the object's key.
func KeyOf(o metav1.Object) Key { return Key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// Origin tells who wrote: a controller (any comparable value) and the key whose
// pass it was.
type Origin struct {
	Owner any
	Key   Key
}

// Change is what subscribers hear. Old and New are shared and read-only; one of
// them is nil (the zero T) where the object was not there before, or is gone.
type Change[T Object] struct {
	Old, New       T
	HasOld, HasNew bool
	Initial        bool    // from a list, the first one included
	Deleted        bool    // by the event of a deletion, and no list
	Final          T       // … as which it went away
	By             *Origin // the write that this came from, or may have come from
	Only           any     // where set: for subscribers of this owner alone
}

// Store holds the newest known version of each object. Make one with [New].
// Reading is safe at any time; Subscribe and NewIndex come before the first event.
type Store[T Object] struct {
	subscribers []func(Change[T])

	// mu guards everything below.
	mu      sync.RWMutex
	objects map[string]map[string]entry[T] // namespace, name
	indexes []*Index[T]
	writes  map[Key][]*Write[T] // in flight
	stamp   uint64              // grows with every write's answer
	size    int

	tombstones map[Key]tombstone // of what own writes removed, and the watch still has
}

type entry[T Object] struct {
	obj   T
	stamp uint64 // of the own write that brought it; 0 for an event
}

// New makes an empty store.
func New[T Object]() *Store[T] {
	return &Store[T]{objects: map[string]map[string]entry[T]{}, writes: map[Key][]*Write[T]{}, tombstones: map[Key]tombstone{}}
}

// Subscribe adds a function that hears every change, on the goroutine that brought
// it and after the store shows it. It must be quick.
func (s *Store[T]) Subscribe(f func(Change[T])) { s.subscribers = append(s.subscribers, f) }

// Get returns the object, which is shared and read-only.
func (s *Store[T]) Get(key Key) (T, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.objects[key.Namespace][key.Name]
	return e.obj, ok
}

// List returns the objects of one namespace, or of all for "", in no order. The
// slice is the caller's; the objects are shared and read-only.
func (s *Store[T]) List(namespace string) []T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if namespace != "" {
		return appendObjects(make([]T, 0, len(s.objects[namespace])), s.objects[namespace])
	}
	out := make([]T, 0, s.size)
	for _, objects := range s.objects {
		out = appendObjects(out, objects)
	}
	return out
}

// Has tells whether one of the objects is as wanted, which must be quick to tell.
func (s *Store[T]) Has(wanted func(T) bool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, objects := range s.objects {
		for _, e := range objects {
			if wanted(e.obj) {
				return true
			}
		}
	}
	return false
}

func appendObjects[T Object](out []T, from map[string]entry[T]) []T {
	for _, e := range from {
		out = append(out, e.obj)
	}
	return out
}

// Len counts the objects.
func (s *Store[T]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// Apply takes an added or modified object from a watch. An older one than is
// known is dropped.
func (s *Store[T]) Apply(obj T) { s.apply(obj, false) }

// Refresh takes what a read of a stored object has shown. What is not stored any
// more is not brought back: it is gone, or no longer among what is watched, and no
// event would ever take it out again.
func (s *Store[T]) Refresh(obj T) { s.apply(obj, true) }

func (s *Store[T]) apply(obj T, stored bool) {
	key, values := KeyOf(obj), s.values(obj)
	s.mu.Lock()
	old, had := s.objects[key.Namespace][key.Name]
	if had && !newer(obj, old.obj) || !had && stored || s.buriedLocked(key, obj) {
		s.mu.Unlock()
		return
	}
	s.putLocked(key, entry[T]{obj: obj}, values)
	c := Change[T]{Old: old.obj, HasOld: had, New: obj, HasNew: true}
	c.By = s.inFlightLocked(key, obj.GetResourceVersion())
	s.mu.Unlock()
	s.tell(c)
}

// Remove takes a deletion from a watch.
func (s *Store[T]) Remove(obj T) {
	key := KeyOf(obj)
	s.mu.Lock()
	s.removedLocked(key, obj.GetResourceVersion())
	if s.buriedLocked(key, obj) {
		delete(s.tombstones, key)
	}
	old, had := s.objects[key.Namespace][key.Name]
	if !had || isNewer(old.obj.GetResourceVersion(), obj.GetResourceVersion()) {
		s.mu.Unlock()
		return
	}
	s.dropLocked(key)
	s.mu.Unlock()
	s.tell(Change[T]{Old: old.obj, HasOld: true, Deleted: true, Final: obj})
}

func (s *Store[T]) tell(changes ...Change[T]) {
	for _, c := range changes {
		for _, f := range s.subscribers {
			f(c)
		}
	}
}

func (s *Store[T]) putLocked(key Key, e entry[T], values [][]string) {
	in := s.objects[key.Namespace]
	if in == nil {
		in = map[string]entry[T]{}
		s.objects[key.Namespace] = in
	}
	if _, had := in[key.Name]; !had {
		s.size++
	}
	in[key.Name] = e
	for i, x := range s.indexes {
		x.putLocked(key, e.obj, values[i])
	}
}

func (s *Store[T]) dropLocked(key Key) {
	in := s.objects[key.Namespace]
	delete(in, key.Name)
	if len(in) == 0 {
		delete(s.objects, key.Namespace)
	}
	s.size--
	for _, x := range s.indexes {
		x.dropLocked(key)
	}
}

// newer tells whether got replaces have. Another UID is another object, and where
// versions do not compare, what came last counts.
func newer(got, have metav1.Object) bool {
	n, err := resourceversion.CompareResourceVersion(got.GetResourceVersion(), have.GetResourceVersion())
	if err != nil {
		return got.GetResourceVersion() != have.GetResourceVersion()
	}
	return n > 0
}

// isNewer tells whether a is known to be newer than b.
func isNewer(a, b string) bool {
	n, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && n > 0
}
