package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions are schemas by name.
type definitions map[string]*spec.Schema

const gvkExtension = "x-kubernetes-group-version-kind"

// builtIn adds the schema of a Go type, and that of its list.
func (d definitions) builtIn(r Resource, obj runtime.Object) {
	name := d.of(reflect.TypeOf(obj).Elem())
	d[name].AddExtension(gvkExtension, []any{gvkOf(r.GroupVersionKind)})
	d.list(r, name, name+"List")
}

// custom adds the schema of a custom resource, and that of its list.
func (d definitions) custom(r Resource) {
	open := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	if r.Schema != nil {
		open = r.Schema.OpenAPI()
	} else {
		open.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	d.embedded(open)
	d.object(open)
	open.AddExtension(gvkExtension, []any{gvkOf(r.GroupVersionKind)})
	name := customName(r.GroupVersionKind)
	d[name] = open
	d.list(r, name, name+"List")
}

const moreInfo = " More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#"

// object adds to a schema what every object has.
func (d definitions) object(s *spec.Schema) {
	types := metav1.TypeMeta{}.SwaggerDoc()
	d.meta(s, types["apiVersion"], types["kind"], d.of(reflect.TypeFor[metav1.ObjectMeta]()), "Standard object's metadata."+moreInfo+"metadata")
}

func (d definitions) meta(s *spec.Schema, apiVersion, kind, metadata, metadataDoc string) {
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties["apiVersion"] = *spec.StringProperty().WithDescription(apiVersion)
	s.Properties["kind"] = *spec.StringProperty().WithDescription(kind)
	s.Properties["metadata"] = described(metadata, metadataDoc)
}

// embedded adds to the schemas of embedded resources what every object has.
func (d definitions) embedded(s *spec.Schema) {
	for name, p := range s.Properties {
		d.embedded(&p)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		d.embedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		d.embedded(s.AdditionalProperties.Schema)
	}
	if on, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); on {
		d.meta(s,
			"apiVersion defines the versioned schema of this representation of an object."+moreInfo+"resources",
			"kind is a string value representing the type of this object. In CamelCase."+moreInfo+"types-kinds",
			d.of(reflect.TypeFor[metav1.ObjectMeta]()), "Standard object's metadata."+moreInfo+"metadata")
		for _, name := range []string{"kind", "apiVersion"} {
			if !slices.Contains(s.Required, name) {
				s.Required = append(s.Required, name)
			}
		}
	}
}

func (d definitions) list(r Resource, item, name string) {
	kind := r.Kind + "List"
	s := &spec.Schema{SchemaProps: spec.SchemaProps{
		Description: kind + " is a list of " + r.Kind, Type: spec.StringOrArray{"object"}, Required: []string{"items"},
	}}
	types := metav1.TypeMeta{}.SwaggerDoc()
	d.meta(s, types["apiVersion"], types["kind"], d.of(reflect.TypeFor[metav1.ListMeta]()), "Standard list metadata."+moreInfo+"types-kinds")
	items := refTo(item)
	s.Properties["items"] = *spec.ArrayProperty(&items).WithDescription("List of " + r.Plural + "." + strings.TrimSuffix(moreInfo, "#"))
	s.AddExtension(gvkExtension, []any{gvkOf(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: kind})})
	d[name] = s
}
