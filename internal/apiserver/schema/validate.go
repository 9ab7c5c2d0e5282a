package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Validate returns what of obj the schema does not allow, sorted by path. The
// real server tells the same errors, in an order that differs from one time to
// the next. What is wrong with the object's own metadata is not told.
func (s *Structural) Validate(obj map[string]any) field.ErrorList { return s.validate(nil, obj) }

// ValidateUpdate is Validate for an object that was old before. What was wrong
// before and has not changed is no error, so that a schema may become stricter
// without making its objects unwritable.
func (s *Structural) ValidateUpdate(obj, old map[string]any) field.ErrorList {
	errs := invalid(nil, (&ratchet{of: s.open, old: old, known: true, root: true}).Validate(obj))
	errs = append(errs, s.embeddedErrors(nil, obj)...)
	if len(s.duplicates(nil, old)) == 0 {
		errs = append(errs, s.duplicates(nil, obj)...)
	}
	return sorted(errs)
}

// ValidateStatusUpdate is ValidateUpdate for a write of the status subresource: it
// looks at the status alone, so that a controller can say what it finds of an object
// that the schema does not allow any more. What is twice in a list counts wherever it
// is, and what is embedded nowhere, as on the real server.
func (s *Structural) ValidateStatusUpdate(obj, old map[string]any) (errs field.ErrorList) {
	status, ok := obj["status"]
	if c := s.properties["status"]; ok && c != nil {
		before, known := old["status"]
		errs = invalid(field.NewPath("status"), (&ratchet{of: c.open, old: before, known: known}).Validate(status))
	}
	if len(s.duplicates(nil, old)) == 0 {
		errs = append(errs, s.duplicates(nil, obj)...)
	}
	return sorted(errs)
}

func (s *Structural) validate(path *field.Path, v any) field.ErrorList {
	errs := invalid(path, validate.NewSchemaValidator(s.open, nil, "", strfmt.Default).Validate(v))
	errs = append(errs, s.embeddedErrors(path, v)...)
	return sorted(append(errs, s.duplicates(path, v)...))
}

func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// ratchet validates a value against a schema, and lets pass what is wrong with
// it where it is the same as it was.
type ratchet struct {
	of    *spec.Schema
	path  string
	old   any
	known bool // old is there
	root  bool
}

// Validate is of validate.ValueValidator.
func (r *ratchet) Validate(v any) *validate.Result {
	res := validate.NewSchemaValidator(r.of, nil, r.path, strfmt.Default, func(o *validate.SchemaValidatorOptions) {
		o.NewValidatorForField = func(key string, s *spec.Schema, _ any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			old, known := object(r.old)[key]
			if r.root && (key == "kind" || key == "apiVersion") {
				known = false // a change of these does not show, since both are of one version by now
			}
			return &ratchet{of: s, path: path, old: old, known: known}
		}
		o.NewValidatorForIndex = func(i int, s *spec.Schema, _ any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
			old, known := r.before(v, i)
			return &ratchet{of: s, path: path, old: old, known: known}
		}
	}).Validate(v)
	if !res.IsValid() && r.known && apiequality.Semantic.DeepEqual(v, r.old) {
		return &validate.Result{}
	}
	return res
}

// before finds the item that was what the i-th of a list is now: in a list that
// is a map that of the same keys, and none in others.
func (r *ratchet) before(v any, i int) (old any, known bool) {
	if kind, _ := r.of.Extensions.GetString("x-kubernetes-list-type"); kind != "map" {
		return nil, false
	}
	keys, _ := r.of.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	now := list(v)
	for _, old := range list(r.old) {
		if i < len(now) && apiequality.Semantic.DeepEqual(key(now[i], keys), key(old, keys)) {
			return old, true
		}
	}
	return nil, false
}

// key are the values that name an item of a list that is a map.
func key(item any, names []string) map[string]any {
	k := map[string]any{}
	for _, name := range names {
		if v, ok := object(item)[name]; ok {
			k[name] = v
		}
	}
	return k
}

// SetPath is of validate.ValueValidator, which does not call it.
func (r *ratchet) SetPath(string) {}

// Applies is of validate.ValueValidator.
func (r *ratchet) Applies(any, reflect.Kind) bool { return true }

// invalid tells what a validation found in the words of an API server.
func invalid(path *field.Path, result *validate.Result) (errs field.ErrorList) {
	for _, err := range result.Errors {
		v, ok := err.(*openapierrors.Validation) //nolint:errorlint // it is never wrapped, and has no Unwrap to look through
		if !ok {
			errs = append(errs, field.Invalid(path, "", err.Error()))
			continue
		}
		at := path
		if v.Name != "" && v.Name != "." {
			at = path.Child(strings.TrimPrefix(v.Name, "."))
		}
		errs = append(errs, fieldError(at, v))
	}
	return errs
}

func fieldError(at *field.Path, v *openapierrors.Validation) *field.Error {
	number := func(v any) int {
		if n, ok := v.(int64); ok {
			return int(n)
		}
		return -1
	}
	value := v.Value
	if value == nil {
		value = ""
	}
	switch v.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(at, "")
	case openapierrors.EnumFailCode:
		var allowed []string
		for _, a := range v.Values {
			s, ok := a.(string)
			if !ok {
				raw, _ := json.Marshal(a) // it came from JSON
				s = string(raw)
			}
			allowed = append(allowed, s)
		}
		return field.NotSupported(at, v.Value, allowed)
	case openapierrors.TooLongFailCode:
		return field.TooLong(at, "", number(v.Valid))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(at, number(v.Value), number(v.Valid))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(at, value, v.Error())
	}
	return field.Invalid(at, value, v.Error())
}
