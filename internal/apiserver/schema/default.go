package schema

// Default fills in what is missing and has a default, inside of what was filled
// in as well. Where null stands and the schema does not allow it, it counts as
// missing; without a default, the field goes.
func (s *Structural) Default(obj map[string]any) {
	pruneNulls(obj, s)
	fill(obj, s)
}

// pruneNulls removes the nulls that may not be, but for those that a default
// takes the place of.
func pruneNulls(v any, s *Structural) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			c, _ := s.child(key)
			if v[key] == nil && c != nil && !c.nullable && c.def == nil {
				delete(v, key)
				continue
			}
			pruneNulls(v[key], c)
		}
	case []any:
		for i := range v {
			if s != nil {
				pruneNulls(v[i], s.items)
			}
		}
	}
}

func fill(v any, s *Structural) {
	if s == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.properties {
			if _, found := v[name]; p.def != nil && (!found || p.lacks(v[name])) {
				v[name] = p.copyDefault()
			}
		}
		for key := range v {
			c, _ := s.child(key)
			if _, property := s.properties[key]; !property && c.lacks(v[key]) {
				v[key] = c.copyDefault()
			}
			fill(v[key], c)
		}
	case []any:
		for i := range v {
			if s.items.lacks(v[i]) {
				v[i] = s.items.copyDefault()
			}
			fill(v[i], s.items)
		}
	}
}

// lacks says whether null stands where it may not be.
func (s *Structural) lacks(v any) bool { return v == nil && s != nil && !s.nullable }
