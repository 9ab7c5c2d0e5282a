package store

import "k8s.io/apimachinery/pkg/types"

// tombstone remembers an object that an own write has removed. An event that was
// sent before the removal and comes after its answer would bring the object back,
// for a pass to see what this process knows to be gone. It goes when the watch
// tells of the removal, or a list shows that it is known there too.
type tombstone struct {
	uid     types.UID // which never comes back: another object of the name has another
	version string    // the last that was known
	stamp   uint64    // of the write
}

func (s *Store[T]) buryLocked(key Key, last T) {
	s.tombstones[key] = tombstone{uid: last.GetUID(), version: last.GetResourceVersion(), stamp: s.stamp}
}

func (s *Store[T]) buriedLocked(key Key, obj T) bool {
	t, ok := s.tombstones[key]
	return ok && t.uid == obj.GetUID()
}

// exhumeLocked drops the tombstones that a list makes needless: one that lacks the
// object at a later version, or that wins over everything. It comes before the
// list's objects are taken, since an etcd restore brings back what was removed.
func (s *Store[T]) exhumeLocked(namespace string, listed map[Key]bool, version string, l Listing) {
	for key, t := range s.tombstones {
		if namespace != "" && namespace != key.Namespace {
			continue
		}
		if l.wins(t.stamp) || !listed[key] && isNewer(version, t.version) {
			delete(s.tombstones, key)
		}
	}
}
