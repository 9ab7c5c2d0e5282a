package catalog

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	structure "github.com/tetherkube/tether/internal/apiserver/schema"
)

// structuralType is the model of a custom resource.
type structuralType struct {
	gvk       schema.GroupVersionKind
	structure *structure.Structural
	ownership managedfields.TypeConverter
	fill      func(Object) // nil for nothing
}

func newStructuralType(gvk schema.GroupVersionKind, open Object) (*structuralType, error) {
	s, err := structure.New(open)
	if err != nil {
		return nil, err
	}
	owners, err := ownership(gvk, s.OpenAPI())
	return &structuralType{gvk: gvk, structure: s, ownership: owners}, err
}

// ErrNotObject says that a body has no object in it.
var ErrNotObject = errors.New("the body is not an object")

func (t *structuralType) Decode(media string, body []byte, strict bool) (Object, []string, error) {
	if media != runtime.ContentTypeJSON && media != runtime.ContentTypeYAML {
		return nil, nil, fmt.Errorf("no serializer for %q", media)
	}
	serializer := kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, unstructuredscheme.NewUnstructuredCreator(), unstructuredscheme.NewUnstructuredObjectTyper(),
		kjson.SerializerOptions{Yaml: media == runtime.ContentTypeYAML, Strict: strict})
	into := &unstructured.Unstructured{}
	_, _, err := serializer.Decode(body, &t.gvk, into)
	var faults []string
	if strictly, isStrict := runtime.AsStrictDecodingError(err); isStrict {
		for _, e := range strictly.Errors() {
			faults = append(faults, e.Error())
		}
	} else if err != nil {
		return nil, nil, err
	}
	if into.Object == nil {
		return nil, nil, ErrNotObject
	}
	if into.GetKind() == "" {
		into.SetKind(t.gvk.Kind)
	}
	if into.GetAPIVersion() == "" {
		into.SetAPIVersion(t.gvk.GroupVersion().String())
	}
	obj, unknown, err := t.Fit(into.Object)
	for _, path := range unknown {
		faults = append(faults, fmt.Sprintf("unknown field %q", path))
	}
	return obj, faults, err
}

func (t *structuralType) Fit(obj Object) (Object, []string, error) {
	// What is not known goes first: whoever decodes metadata drops it without a word.
	unknown := t.structure.Prune(obj)
	if err := fitMetadata(obj); err != nil {
		return nil, nil, err
	}
	t.structure.Default(obj)
	if t.fill != nil {
		t.fill(obj)
	}
	return obj, unknown, nil
}

// fitMetadata brings metadata, without what is not known, into the form that
// metav1.ObjectMeta has.
func fitMetadata(obj Object) error {
	given, ok := obj["metadata"]
	if !ok || given == nil {
		obj["metadata"] = Object{}
		return nil
	}
	raw, err := json.Marshal(given)
	if err != nil {
		return err
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return err
	}
	fitted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return err
	}
	dropNulls(fitted)
	if was, isObject := given.(Object); isObject {
		if empty, isList := was["managedFields"].([]any); isList && len(empty) == 0 {
			fitted["managedFields"] = []any{} // asks to forget the owners
		}
	}
	obj["metadata"] = fitted
	return nil
}

func (t *structuralType) Validate(obj, old Object, subresource string) field.ErrorList {
	switch {
	case old == nil:
		return t.structure.Validate(obj)
	case subresource == "status":
		return t.structure.ValidateStatusUpdate(obj, old)
	}
	return t.structure.ValidateUpdate(obj, old)
}

func (*structuralType) Strategic(Object, Object) (Object, error) { return nil, ErrNoStrategic }

func (t *structuralType) Ownership() managedfields.TypeConverter { return t.ownership }

// ownership makes a type converter of a schema, whose metadata it replaces by
// what all objects have.
func ownership(gvk schema.GroupVersionKind, open *spec.Schema) (managedfields.TypeConverter, error) {
	if open.Properties == nil {
		open.Properties = map[string]spec.Schema{}
	}
	text := *spec.StringProperty()
	open.Properties["apiVersion"], open.Properties["kind"], open.Properties["metadata"] = text, text, objectMeta()
	open.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"object": open}, false)
}

// objectMeta is the part of metav1.ObjectMeta's schema that decides what is owned:
// maps key by key, finalizers one by one, owners by their UID.
func objectMeta() spec.Schema {
	text := *spec.StringProperty()
	finalizers := *spec.ArrayProperty(&text)
	finalizers.AddExtension("x-kubernetes-list-type", "set")
	owner := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": text,
		"controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	}}}
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	owners := *spec.ArrayProperty(&owner)
	owners.AddExtension("x-kubernetes-list-type", "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	fieldsV1 := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	entry := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"apiVersion": text, "fieldsType": text, "manager": text, "operation": text, "subresource": text, "time": text, "fieldsV1": fieldsV1,
	}}}
	managed := *spec.ArrayProperty(&entry)
	managed.AddExtension("x-kubernetes-list-type", "atomic")
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": *spec.Int64Property(), "creationTimestamp": text, "deletionTimestamp": text,
		"deletionGracePeriodSeconds": *spec.Int64Property(), "labels": *spec.MapProperty(&text), "annotations": *spec.MapProperty(&text),
		"ownerReferences": owners, "finalizers": finalizers, "managedFields": managed,
	}}}
}
