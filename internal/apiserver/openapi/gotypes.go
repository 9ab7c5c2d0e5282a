package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// of adds the schema of a Go struct, and all that it refers to, and returns its
// name.
func (d definitions) of(t reflect.Type) string {
	name := typeName(t)
	if d[name] != nil {
		return name
	}
	s := &spec.Schema{}
	d[name] = s // before its fields, which may refer to it
	zero := reflect.Zero(t).Interface()
	documented, _ := zero.(interface{ SwaggerDoc() map[string]string })
	doc := map[string]string{}
	if documented != nil {
		doc = documented.SwaggerDoc()
	}
	s.Description = doc[""]
	if typed, ok := zero.(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok { // it is not written as the struct that it is
		s.Type, s.Format = typed.OpenAPISchemaType(), typed.OpenAPISchemaFormat()
		if either, ok := zero.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
			s.Type = nil
			for _, kind := range either.OpenAPIV3OneOfTypes() {
				s.OneOf = append(s.OneOf, spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{kind}}})
			}
		}
		return name
	}
	s.Type = spec.StringOrArray{"object"}
	d.fields(s, t, doc)
	if t == reflect.TypeFor[metav1.OwnerReference]() {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	return name
}

// typeName is the name of a type's schema: the import path of its package, with
// the host's name turned round.
func typeName(t reflect.Type) string {
	host, path, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

// fields adds the fields of a struct. Those of an embedded one are its own.
func (d definitions) fields(s *spec.Schema, t reflect.Type, doc map[string]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous:
			inner := map[string]string{}
			if documented, ok := reflect.Zero(f.Type).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
				inner = documented.SwaggerDoc()
			}
			d.fields(s, f.Type, inner)
			continue
		case name == "":
			name = f.Name
		}
		if s.Properties == nil {
			s.Properties = map[string]spec.Schema{}
		}
		p := d.value(f.Type)
		if p.Ref.String() != "" && doc[name] != "" {
			p = described(strings.TrimPrefix(p.Ref.String(), refPrefix), "")
		}
		p.Description = doc[name]
		for _, tag := range []struct{ name, extension string }{
			{"patchStrategy", "x-kubernetes-patch-strategy"},
			{"patchMergeKey", "x-kubernetes-patch-merge-key"},
		} {
			if v := f.Tag.Get(tag.name); v != "" {
				p.AddExtension(tag.extension, v)
			}
		}
		listType(&p, t, name)
		s.Properties[name] = p
		if !strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Pointer {
			s.Required = append(s.Required, name)
		}
	}
}

// listType says how the lists in metadata are merged, which stands in comments
// of the Go source alone.
func listType(p *spec.Schema, t reflect.Type, name string) {
	if t != reflect.TypeFor[metav1.ObjectMeta]() {
		return
	}
	switch name {
	case "finalizers":
		p.AddExtension("x-kubernetes-list-type", "set")
	case "managedFields":
		p.AddExtension("x-kubernetes-list-type", "atomic")
	case "ownerReferences":
		p.AddExtension("x-kubernetes-list-type", "map")
		p.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	}
}

// value is the schema for values of a type.
func (d definitions) value(t reflect.Type) spec.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return d.value(t.Elem())
	case reflect.Struct:
		return refTo(d.of(t))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StrFmtProperty("byte")
		}
		items := d.value(t.Elem())
		return *spec.ArrayProperty(&items)
	case reflect.Map:
		values := d.value(t.Elem())
		return *spec.MapProperty(&values)
	case reflect.Bool:
		return *spec.BooleanProperty()
	case reflect.Int32:
		return *spec.Int32Property()
	case reflect.Int, reflect.Int64:
		return *spec.Int64Property()
	case reflect.Float32, reflect.Float64:
		return *spec.Float64Property()
	case reflect.String:
		return *spec.StringProperty()
	}
	return spec.Schema{} // an interface, of which nothing can be said
}
