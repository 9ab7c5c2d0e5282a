package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	structure "github.com/tetherkube/tether/internal/apiserver/schema"
)

// ErrNoStrategic is the error of a strategic merge patch of a type without one.
var ErrNoStrategic = errors.New("the type has no strategic merge patch")

// goType is the model of a type that client-go has a Go type for.
type goType struct {
	gvk schema.GroupVersionKind
	// fill gives what a new or read object has by default; nil for nothing.
	fill func(Object)
}

func (t *goType) Decode(media string, body []byte, strict bool) (Object, []string, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	if !ok {
		return nil, nil, fmt.Errorf("no serializer for %q", media)
	}
	serializer := info.Serializer
	if strict && info.StrictSerializer != nil {
		serializer = info.StrictSerializer
	}
	into, err := scheme.Scheme.New(t.gvk)
	if err != nil {
		return nil, nil, err
	}
	typed, gvk, err := serializer.Decode(body, &t.gvk, into)
	var faults []string
	if strictly, isStrict := runtime.AsStrictDecodingError(err); isStrict && typed != nil {
		for _, e := range strictly.Errors() {
			faults = append(faults, e.Error())
		}
	} else if err != nil {
		return nil, nil, err
	}
	obj, err := t.object(typed)
	if err == nil && *gvk != t.gvk {
		obj["apiVersion"], obj["kind"] = gvk.GroupVersion().String(), gvk.Kind
	}
	return obj, faults, err
}

// object is the JSON of a Go value, without the nulls of times that are not set.
func (t *goType) object(typed runtime.Object) (Object, error) {
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	obj["apiVersion"], obj["kind"] = t.gvk.GroupVersion().String(), t.gvk.Kind
	dropNulls(obj)
	if t.fill != nil {
		t.fill(obj)
	}
	return obj, nil
}

func dropNulls(obj Object) {
	for k, v := range obj {
		switch v := v.(type) {
		case nil:
			if k == "creationTimestamp" {
				delete(obj, k)
			}
		case Object:
			dropNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(Object); ok {
					dropNulls(m)
				}
			}
		}
	}
}

func (t *goType) Fit(obj Object) (Object, []string, error) {
	typed, err := scheme.Scheme.New(t.gvk)
	if err != nil {
		return nil, nil, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj, typed, true)
	unknown := structure.UnknownFields(err)
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return nil, nil, err
	}
	fitted, err := t.object(typed)
	return fitted, unknown, err
}

func (*goType) Validate(Object, Object, string) field.ErrorList { return nil }

func (t *goType) Strategic(obj, patch Object) (Object, error) {
	typed, err := scheme.Scheme.New(t.gvk)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergeMapPatch(obj, patch, reflect.Indirect(reflect.ValueOf(typed)).Interface())
}

func (*goType) Ownership() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
}

// ToUnstructured is a Go value or unstructured object as the JSON that a client
// would send.
func ToUnstructured(o runtime.Object) (Object, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	if o.GetObjectKind().GroupVersionKind().Empty() {
		gvks, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		o = o.DeepCopyObject()
		o.GetObjectKind().SetGroupVersionKind(gvks[0])
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var obj Object
	return obj, json.Unmarshal(raw, &obj)
}
