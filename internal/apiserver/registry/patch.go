package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
)

// PatchTypes are the media types of the patches that a resource takes.
func PatchTypes(res *catalog.Resource) []string {
	all := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if !res.Custom && res.Table != catalog.Definitions {
		all = append(all, string(types.StrategicMergePatchType))
	}
	return append(all, string(types.ApplyYAMLPatchType))
}

// Patch applies a patch of one of the types, which must be among PatchTypes.
// mayCreate is asked before an apply creates something; it may be nil.
func (r *Registry) Patch(q *Request, kind types.PatchType, patch []byte, force bool, mayCreate func() error) (Result, error) {
	p := &patcher{q: q, patch: patch, force: force}
	switch kind {
	case types.ApplyYAMLPatchType:
		return r.Update(q, p.apply, UpdateOptions{Create: true, Owned: true, MayCreate: mayCreate})
	case types.StrategicMergePatchType:
		return r.Update(q, p.strategic, UpdateOptions{})
	case types.MergePatchType:
		return r.Update(q, p.merge, UpdateOptions{})
	default:
		return r.Update(q, p.json, UpdateOptions{})
	}
}

type patcher struct {
	q      *Request
	patch  []byte
	force  bool
	warned bool // a patch that is applied again warns once
}

// faults judges what is wrong with a patched object as field validation says.
func (p *patcher) faults(found []string, patched []byte) error {
	if len(found) == 0 || p.q.Validation == metav1.FieldValidationIgnore {
		return nil
	}
	if p.q.Validation == metav1.FieldValidationStrict {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(patched), "strict decoding error: "+strings.Join(found, ", ")),
		})
	}
	if !p.warned {
		p.warned = true
		for _, f := range found {
			p.q.warn("%s", f)
		}
	}
	return nil
}

// fit makes of patched JSON an object of the resource.
func (p *patcher) fit(patched []byte, faults []string) (catalog.Object, error) {
	invalid := func(err error) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(patched), err.Error())})
	}
	var obj catalog.Object
	if err := kjson.Unmarshal(patched, &obj); err != nil {
		return nil, invalid(err)
	}
	if kind, version := meta(obj).GetKind(), meta(obj).GetAPIVersion(); kind == "" || version == "" {
		err := runtime.NewMissingKindErr(string(patched))
		if kind != "" {
			err = runtime.NewMissingVersionErr(string(patched))
		}
		return nil, invalid(err)
	}
	if err := matchKind(p.q.Resource, meta(obj)); err != nil {
		return nil, err
	}
	fitted, unknown, err := p.q.Resource.Model.Fit(obj)
	if err != nil {
		return nil, invalid(err)
	}
	for _, path := range unknown {
		faults = append(faults, fmt.Sprintf("unknown field %q", path))
	}
	return fitted, p.faults(faults, patched)
}

// duplicates are the fields that a strict reader finds twice in a patch, where field
// validation wants it read so.
func (p *patcher) duplicates() (found []string) {
	if p.q.Validation == metav1.FieldValidationIgnore {
		return nil
	}
	serializer := kserializer.NewSerializerWithOptions(kserializer.DefaultMetaFactory, unstructuredscheme.NewUnstructuredCreator(),
		unstructuredscheme.NewUnstructuredObjectTyper(), kserializer.SerializerOptions{Strict: true})
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Patch"} // most patches say none
	_, _, err := serializer.Decode(p.patch, &kind, nil)
	if strictly, isStrict := runtime.AsStrictDecodingError(err); isStrict { // that it is JSON is seen elsewhere
		for _, e := range strictly.Errors() {
			found = append(found, e.Error())
		}
	}
	return found
}

func (p *patcher) merge(old catalog.Object) (catalog.Object, error) {
	var change catalog.Object
	if err := kjson.Unmarshal(p.patch, &change); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	current, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patched, err := jsonpatch.MergePatch(current, p.patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return p.fit(patched, p.duplicates())
}

// longestJSONPatch is how many operations the real server takes.
const longestJSONPatch = 10_000

func (p *patcher) json(old catalog.Object) (catalog.Object, error) {
	if p.q.Validation != metav1.FieldValidationIgnore {
		var operations []struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			From  string `json:"from"`
			Value any    `json:"value"`
		}
		if err := kjson.Unmarshal(p.patch, &operations); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	operations, err := jsonpatch.DecodePatch(p.patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > longestJSONPatch {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", longestJSONPatch, len(operations)))
	}
	current, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patched, err := operations.Apply(current)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return p.fit(patched, nil)
}

func (p *patcher) strategic(old catalog.Object) (catalog.Object, error) {
	var change catalog.Object
	if err := kjson.Unmarshal(p.patch, &change); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	patched, err := p.q.Resource.Model.Strategic(old, change)
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case err != nil:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	data, err := json.Marshal(patched)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return p.fit(data, p.duplicates())
}

// apply is server-side apply. A strict reader's faults are of the patch alone.
func (p *patcher) apply(old catalog.Object) (catalog.Object, error) {
	var change catalog.Object
	data, err := yaml.YAMLToJSON(p.patch)
	if err == nil {
		err = kjson.Unmarshal(data, &change)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if change == nil {
		change = catalog.Object{}
	}
	manager, err := p.q.Resource.Manager(p.q.Subresource)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	u := meta(change)
	if u.GetName() == "" {
		u.SetName(p.q.Name)
	}
	applied, err := manager.Apply(meta(old), u, p.q.Manager, p.force)
	if err != nil {
		return nil, err
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(applied)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := p.strictApply(); err != nil {
		return nil, err
	}
	fitted, _, err := p.q.Resource.Model.Fit(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return fitted, nil
}

// strictApply finds keys that the patch has twice.
func (p *patcher) strictApply() error {
	if p.q.Validation == metav1.FieldValidationIgnore {
		return nil
	}
	err := yaml.UnmarshalStrict(p.patch, &catalog.Object{})
	switch {
	case err == nil:
	case p.q.Validation == metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	case !p.warned:
		p.warned = true
		p.q.warn("%s", err)
	}
	return nil
}
