package store

// Listing is a list that was asked for; see [Store.StartList].
type Listing struct {
	// Authoritative: asked for with an empty resourceVersion, so that it shows
	// what was stored at some moment after it was asked for.
	Authoritative bool
	stamp         uint64
}

// StartList is called right before a list is asked for.
func (s *Store[T]) StartList(authoritative bool) Listing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Listing{Authoritative: authoritative, stamp: s.stamp}
}

// Replace takes the answer to a list of one namespace, or of all for "": objects
// that it lacks are gone, unless the list is older than they are.
func (s *Store[T]) Replace(namespace string, items []T, version string, l Listing) {
	values := make([][][]string, len(items))
	for i, obj := range items {
		values[i] = s.values(obj)
	}
	var changes []Change[T]
	s.mu.Lock()
	listed := make(map[Key]bool, len(items))
	for _, obj := range items {
		listed[KeyOf(obj)] = true
	}
	s.exhumeLocked(namespace, listed, version, l)
	for i, obj := range items {
		key := KeyOf(obj)
		old, had := s.objects[key.Namespace][key.Name]
		if had && !l.wins(old.stamp) && !newer(obj, old.obj) || s.buriedLocked(key, obj) {
			continue
		}
		s.putLocked(key, entry[T]{obj: obj}, values[i])
		if had && old.obj.GetResourceVersion() == obj.GetResourceVersion() && old.obj.GetUID() == obj.GetUID() {
			continue
		}
		c := Change[T]{Old: old.obj, HasOld: had, New: obj, HasNew: true, Initial: true}
		c.By = s.inFlightLocked(key, obj.GetResourceVersion())
		changes = append(changes, c)
	}
	for key, old := range s.missingLocked(namespace, listed) {
		if !l.wins(old.stamp) && (l.Authoritative || isNewer(old.obj.GetResourceVersion(), version)) {
			continue
		}
		s.dropLocked(key)
		changes = append(changes, Change[T]{Old: old.obj, HasOld: true, Initial: true})
	}
	s.mu.Unlock()
	s.tell(changes...)
}

// wins tells whether the list counts whatever the versions say: an authoritative
// one, over all that was not written after it was asked for.
func (l Listing) wins(stamp uint64) bool { return l.Authoritative && stamp <= l.stamp }

func (s *Store[T]) missingLocked(namespace string, listed map[Key]bool) map[Key]entry[T] {
	missing := map[Key]entry[T]{}
	for ns, objects := range s.objects {
		if namespace != "" && namespace != ns {
			continue
		}
		for name, e := range objects {
			if key := (Key{Namespace: ns, Name: name}); !listed[key] {
				missing[key] = e
			}
		}
	}
	return missing
}
