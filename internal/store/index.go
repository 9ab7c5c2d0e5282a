package store

// Index finds objects by a value that a function derives from them.
type Index[T Object] struct {
	store  *Store[T]
	values func(T) []string
	// The rest is guarded by the store's mu.
	byValue map[string]map[Key]T
	byKey   map[Key][]string
}

// NewIndex adds an index. It comes before the first event. values must be pure and
// is called without a lock held.
func (s *Store[T]) NewIndex(values func(T) []string) *Index[T] {
	x := &Index[T]{store: s, values: values, byValue: map[string]map[Key]T{}, byKey: map[Key][]string{}}
	s.indexes = append(s.indexes, x)
	return x
}

// Lookup returns the objects that have the value, in no order. The slice is the
// caller's; the objects are shared and read-only.
func (x *Index[T]) Lookup(value string) []T {
	x.store.mu.RLock()
	defer x.store.mu.RUnlock()
	out := make([]T, 0, len(x.byValue[value]))
	for _, obj := range x.byValue[value] {
		out = append(out, obj)
	}
	return out
}

// values derives every index's values of an object, before any lock is taken.
func (s *Store[T]) values(obj T) [][]string {
	if len(s.indexes) == 0 {
		return nil
	}
	out := make([][]string, len(s.indexes))
	for i, x := range s.indexes {
		out[i] = x.values(obj)
	}
	return out
}

func (x *Index[T]) putLocked(key Key, obj T, values []string) {
	x.dropLocked(key)
	for _, v := range values {
		at := x.byValue[v]
		if at == nil {
			at = map[Key]T{}
			x.byValue[v] = at
		}
		at[key] = obj
	}
	if len(values) > 0 {
		x.byKey[key] = values
	}
}

func (x *Index[T]) dropLocked(key Key) {
	for _, v := range x.byKey[key] {
		delete(x.byValue[v], key)
		if len(x.byValue[v]) == 0 {
			delete(x.byValue, v)
		}
	}
	delete(x.byKey, key)
}
