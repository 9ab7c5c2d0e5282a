package storage

import "slices"

// Selection is what a list asks for.
type Selection struct {
	// Namespace alone is listed, unless it is empty.
	Namespace string
	// From is where the list begins; the zero Key for its beginning.
	From Key
	// Limit is how many objects are answered at most; 0 for all.
	Limit int
	// Match says what belongs to the list; nil for all. It must not call the store.
	Match func(*Object) bool
	// At is the version to list at; 0 for now.
	At uint64
}

// List is a consistent part of a table.
type List struct {
	Objects []*Object
	// Version is the version that the list stands for.
	Version uint64
	// More says that Limit cut the list, and Next where it goes on.
	More bool
	Next Key
	// Remaining is the number of objects after the cut, matching or not.
	Remaining int
}

// List lists a table. It fails with ErrExpired, ErrFuture or ErrDropped.
func (s *Store) List(name string, sel Selection) (List, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tables[name]
	if t == nil {
		return List{}, ErrDropped
	}
	at := s.version
	var differs map[Key]*Object
	if sel.At != 0 {
		if err := t.reachable(sel.At, s.version); err != nil {
			return List{}, err
		}
		at, differs = sel.At, t.past(sel.At)
	}
	return t.list(sel, at, differs), nil
}

func (t *table) list(sel Selection, at uint64, differs map[Key]*Object) List {
	objects := t.within(sel, differs)
	l := List{Version: at}
	for i, o := range objects {
		if sel.Limit > 0 && len(l.Objects) == sel.Limit {
			l.More, l.Next, l.Remaining = true, o.Key, len(objects)-i
			return l
		}
		if sel.Match == nil || sel.Match(o) {
			l.Objects = append(l.Objects, o)
		}
	}
	return l
}

// within is the objects of the selection's namespace from its beginning on. It
// copies only where the past differs.
func (t *table) within(sel Selection, differs map[Key]*Object) []*Object {
	from := sel.From
	if sel.Namespace != "" && from == (Key{}) {
		from = Key{Namespace: sel.Namespace}
	}
	begin, _ := t.find(from)
	end := len(t.objects)
	if sel.Namespace != "" {
		end, _ = t.find(Key{Namespace: sel.Namespace, Name: "\xff"})
	}
	if begin > end {
		return nil
	}
	objects := t.objects[begin:end]
	if len(differs) == 0 {
		return objects
	}
	was := make([]*Object, 0, len(objects))
	for _, o := range objects {
		if _, other := differs[o.Key]; !other {
			was = append(was, o)
		}
	}
	for key, o := range differs {
		if o != nil && (sel.Namespace == "" || key.Namespace == sel.Namespace) && compareKeys(key, from) >= 0 {
			was = append(was, o)
		}
	}
	slices.SortFunc(was, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	return was
}
