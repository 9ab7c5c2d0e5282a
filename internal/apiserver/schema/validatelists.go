package schema

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// duplicates finds what stands more than once in a list that is a set, or whose
// items have keys: the second of each.
func (s *Structural) duplicates(path *field.Path, v any) (errs field.ErrorList) {
	if items, ok := v.([]any); ok {
		switch s.listType {
		case "set":
			errs = twice(path, items)
		case "map":
			errs = s.keyedTwice(path, items)
		}
	}
	s.inside(path, v, func(s *Structural, path *field.Path, v any) { errs = append(errs, s.duplicates(path, v)...) })
	return errs
}

// inside visits what is directly in a value, as far as there are schemas for it.
func (s *Structural) inside(path *field.Path, v any, visit func(s *Structural, path *field.Path, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			p, property := s.properties[key]
			switch {
			case property:
				visit(p, path.Child(key), v[key])
			case s.additional != nil:
				visit(s.additional, path.Key(key), v[key])
			}
		}
	case []any:
		for i := range v {
			if s.items != nil {
				visit(s.items, path.Index(i), v[i])
			}
		}
	}
}

func twice(path *field.Path, items []any) (errs field.ErrorList) {
	seen := map[string]int{}
	for i, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return field.ErrorList{field.Invalid(path.Index(i), item, "internal error")}
		}
		if seen[string(raw)]++; seen[string(raw)] == 2 {
			errs = append(errs, field.Duplicate(path.Index(i), item))
		}
	}
	return errs
}

func (s *Structural) keyedTwice(path *field.Path, items []any) field.ErrorList {
	keys := make([]any, len(items))
	for i, item := range items {
		if _, ok := item.(map[string]any); !ok && item != nil {
			return field.ErrorList{field.Invalid(path.Index(i), item, "must be an object for an array of list-type map")}
		}
		keys[i] = key(item, s.listKeys)
	}
	return twice(path, keys)
}

// embeddedErrors finds what makes an embedded resource none.
func (s *Structural) embeddedErrors(path *field.Path, v any) (errs field.ErrorList) {
	if obj, ok := v.(map[string]any); ok && s.embedded {
		errs = typeErrors(path, obj)
	}
	s.inside(path, v, func(s *Structural, path *field.Path, v any) { errs = append(errs, s.embeddedErrors(path, v)...) })
	return errs
}

// typeErrors finds what is wrong with an object's apiVersion and kind.
func typeErrors(path *field.Path, obj map[string]any) (errs field.ErrorList) {
	for _, name := range []string{"apiVersion", "kind"} {
		v, found := obj[name]
		at := path.Child(name)
		text, ok := v.(string)
		switch {
		case !found:
			errs = append(errs, field.Required(at, ""))
			continue
		case !ok:
			errs = append(errs, field.Invalid(at, v, "must be a string"))
			continue
		case text == "":
			errs = append(errs, field.Invalid(at, text, "must not be empty"))
			continue
		}
		if name == "apiVersion" {
			if _, err := schema.ParseGroupVersion(text); err != nil {
				errs = append(errs, field.Invalid(at, text, err.Error()))
			}
		} else if wrong := validation.IsDNS1035Label(strings.ToLower(text)); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at, text, "may have mixed case, but should otherwise match: "+strings.Join(wrong, ",")))
		}
	}
	return errs
}
