package schema

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// eitherType is what an int-or-string may say of its type, in anyOf or in the
// first of allOf.
var eitherType = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// narrowed is the part of the structure that a nested schema narrows.
type narrowed struct {
	schema map[string]any
	path   *field.Path
	known  bool // what it does not have may not be narrowed
}

func (n narrowed) property(name string) narrowed {
	return narrowed{schemas(n.schema["properties"])[name], n.path.Child("properties").Key(name), n.known}
}

func (n narrowed) items() narrowed {
	return narrowed{object(n.schema["items"]), n.path.Child("items"), n.known}
}

// junctors checks what stands in allOf, anyOf, oneOf and not of s, which may
// only narrow what the structure has.
func (c *checker) junctors(s map[string]any, of narrowed, path *field.Path) {
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		if name == "anyOf" && same(s[name], eitherType) && s["x-kubernetes-int-or-string"] == true {
			continue
		}
		for i, n := range list(s[name]) {
			n, ok := n.(map[string]any)
			if !ok || name == "allOf" && i == 0 && same(n["anyOf"], eitherType) && s["x-kubernetes-int-or-string"] == true {
				continue
			}
			c.nested(n, of, path.Child(name).Index(i))
		}
	}
	if n, ok := s["not"].(map[string]any); ok {
		c.nested(n, of, path.Child("not"))
	}
}

// notNested are what only the structure may say, and what it must be instead.
var notNested = []struct{ name, must string }{
	{"type", "must be empty to be structural"},
	{"default", "must be undefined to be structural"},
	{"title", "must be empty to be structural"},
	{"description", "must be empty to be structural"},
	{"nullable", "must be false to be structural"},
	{"additionalProperties", "must be undefined to be structural"},
	{"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
	{"x-kubernetes-embedded-resource", "must be false to be structural"},
	{"x-kubernetes-int-or-string", "must be false to be structural"},
	{"x-kubernetes-list-map-keys", "must be empty to be structural"},
	{"x-kubernetes-list-type", "must be undefined to be structural"},
	{"x-kubernetes-map-type", "must be undefined to be structural"},
	{"x-kubernetes-validations", "must be empty to be structural"},
}

func (c *checker) nested(n map[string]any, of narrowed, path *field.Path) {
	if of.known && of.schema == nil {
		c.shapes(field.Required(of.path, fmt.Sprintf("because it is defined in %s", path)))
		of.known = false
	}
	c.common(n, path, place{})
	for _, f := range notNested {
		if v, ok := n[f.name]; ok && v != nil && v != false && v != "" {
			c.shapes(field.Forbidden(path.Child(f.name), f.must))
		}
	}
	for name, p := range schemas(n["properties"]) {
		below := path.Child("properties").Key(name)
		if name == "metadata" {
			c.shapes(field.Forbidden(below, "must not be specified in a nested context"))
		}
		c.nested(p, of.property(name), below)
	}
	if items, ok := n["items"].(map[string]any); ok {
		c.nested(items, of.items(), path.Child("items"))
	}
	c.junctors(n, of, path)
}

// defaults checks that each default is what its own schema allows.
func (c *checker) defaults(s *Structural, path *field.Path) {
	if s.def != nil {
		at := path.Child("default")
		holder := &Structural{properties: map[string]*Structural{"default": s}}
		value := map[string]any{"default": s.copyDefault()}
		p := pruner{}
		p.value(value, holder, "")
		if len(p.unknown) > 0 {
			c.shapes(field.Invalid(at, s.def, "must not have unknown fields"))
		}
		c.shapes(s.validate(at, s.copyDefault())...)
	}
	for name, p := range s.properties {
		c.defaults(p, path.Child("properties").Key(name))
	}
	if s.additional != nil {
		c.defaults(s.additional, path.Child("additionalProperties"))
	}
	if s.items != nil {
		c.defaults(s.items, path.Child("items"))
	}
}
