package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Root is the first element of the paths in the errors of [New].
const Root = "openAPIV3Schema"

// Structural is a structural schema, or the part of one that is for one field.
type Structural struct {
	properties map[string]*Structural
	// additional is for the values of a map whose keys are no properties; nil where
	// they are not known. anything says that they may be all that there is.
	additional *Structural
	anything   bool
	items      *Structural

	def      any // the default; nil is none
	nullable bool

	preserve, embedded bool
	listType           string // empty: atomic
	listKeys           []string

	open *spec.Schema // all of the above, and what values must be
	raw  []byte       // of the root alone: the schema as it was given
}

// NotStructural is the error of a schema that a CRD may not have.
type NotStructural struct {
	// Errors have paths that begin with [Root], in the order of the real server.
	Errors field.ErrorList
}

// Error tells all that is wrong.
func (e *NotStructural) Error() string { return e.Errors.ToAggregate().Error() }

// Under returns the errors with a path before theirs. Where all versions of a
// CRD have the same schema, the real server says "spec.validation"; otherwise
// "spec.versions[0].schema" and so on.
func (e *NotStructural) Under(path string) field.ErrorList {
	errs := make(field.ErrorList, len(e.Errors))
	for i, err := range e.Errors {
		moved := *err
		moved.Field = path + "." + err.Field
		errs[i] = &moved
	}
	return errs
}

// New reads the schema of one version of a CRD, and does not keep it. The error
// is a *[NotStructural] where the real server would refuse the CRD, and another
// one where the schema cannot be decoded at all.
func New(openAPIV3Schema map[string]any) (*Structural, error) {
	raw, err := json.Marshal(openAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("the schema is no JSON: %w", err)
	}
	open := &spec.Schema{}
	if err := json.Unmarshal(raw, open); err != nil {
		return nil, fmt.Errorf("decoding the schema: %w", err)
	}
	root := field.NewPath(Root)
	c := checker{}
	c.schema(openAPIV3Schema, root, place{level: atRoot})
	if len(c.errs)+len(c.shape) == 0 {
		process(open)
		s := structural(open)
		s.raw = raw
		c.defaults(s, root)
		if len(c.shape) == 0 {
			return s, nil
		}
	}
	slices.SortFunc(c.shape, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return nil, &NotStructural{Errors: append(c.errs, c.shape...)}
}

// OpenAPI is the schema as a server publishes it, but for apiVersion, kind and
// metadata, of which it says what the CRD does. The caller owns it.
func (s *Structural) OpenAPI() *spec.Schema {
	open := &spec.Schema{}
	if err := json.Unmarshal(s.raw, open); err != nil {
		panic("a schema that was decoded by New does not decode: " + err.Error())
	}
	each(open, func(s *spec.Schema) {
		if on, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); on && len(s.AnyOf) == 0 && len(s.AllOf) == 0 {
			s.AnyOf = []spec.Schema{
				{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"integer"}}},
				{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}},
			}
		}
	})
	return open
}

// structural reads what gives an object its shape. What stands in allOf, anyOf,
// oneOf and not has no part in it.
func structural(open *spec.Schema) *Structural {
	flag := func(name string) bool { on, _ := open.Extensions.GetBool(name); return on }
	s := &Structural{
		nullable: open.Nullable, def: open.Default, open: open,
		preserve: flag("x-kubernetes-preserve-unknown-fields"),
		embedded: flag("x-kubernetes-embedded-resource"),
	}
	s.listType, _ = open.Extensions.GetString("x-kubernetes-list-type")
	s.listKeys, _ = open.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	if len(open.Properties) > 0 {
		s.properties = make(map[string]*Structural, len(open.Properties))
		for name, p := range open.Properties {
			s.properties[name] = structural(&p)
		}
	}
	if a := open.AdditionalProperties; a != nil {
		if a.Schema != nil {
			s.additional = structural(a.Schema)
		} else {
			s.anything = true
		}
	}
	if open.Items != nil && open.Items.Schema != nil {
		s.items = structural(open.Items.Schema)
	}
	return s
}

// process makes the schema, with all that is in it, one that values can be
// validated against: an int-or-string is of either type, and formats that the
// server does not know are none.
func process(s *spec.Schema) {
	each(s, func(s *spec.Schema) {
		if on, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); on {
			s.Type = spec.StringOrArray{"integer", "string"}
		}
		if !knownFormat(s) {
			s.Format = ""
		}
		s.Default = plain(s.Default)
		for i, v := range s.Enum {
			s.Enum[i] = plain(v)
		}
	})
}

// each changes a schema and all that is in it.
func each(s *spec.Schema, change func(*spec.Schema)) {
	change(s)
	for _, of := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range of {
			each(&of[i], change)
		}
	}
	for name, p := range s.Properties {
		each(&p, change)
		s.Properties[name] = p
	}
	if s.Not != nil {
		each(s.Not, change)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		each(s.AdditionalProperties.Schema, change)
	}
	if s.Items != nil && s.Items.Schema != nil {
		each(s.Items.Schema, change)
	}
}

// plain makes whole numbers int64, as they are in objects.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return v
}

// child is the schema for one key of an object: that of the property, or of the
// values of a map. It is nil where the key is not known, or may be anything.
func (s *Structural) child(key string) (c *Structural, known bool) {
	if s == nil {
		return nil, false
	}
	if p, ok := s.properties[key]; ok {
		return p, true
	}
	return s.additional, s.additional != nil || s.anything
}

func (s *Structural) copyDefault() any { return runtime.DeepCopyJSONValue(s.def) }
