package registry

import (
	"encoding/json"
	"fmt"
	"math"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// unset stands for a number of replicas that is not there; a client that means to
// write one writes another.
const unset = math.MinInt32

// Scale is the scale of an object as it is stored; partial says that one without a
// number of replicas has one, too.
func (r *Registry) Scale(res *catalog.Resource, o *storage.Object, partial bool) (*autoscalingv1.Scale, error) {
	obj, err := r.Decode(res, o)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	scale, complete, err := res.Scale.View(obj)
	if err == nil && !complete && !partial {
		err = apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", res.Scale.Spec))
	}
	return scale, err
}

// ReadScale decodes the body of a scale.
func (q *Request) ReadScale(media string, body []byte) (catalog.Object, error) {
	as := *q
	as.Resource = catalog.Scales()
	return as.Read(media, body)
}

// UpdateScale puts a scale in place of an object's.
func (r *Registry) UpdateScale(q *Request, scale catalog.Object) (Result, error) {
	return r.Update(q, scaled(q, func(catalog.Object) (catalog.Object, error) { return meta(scale).DeepCopy().Object, nil }),
		UpdateOptions{UID: string(meta(scale).GetUID())})
}

// PatchScale patches an object's scale; kind is among PatchTypes of the object's.
func (r *Registry) PatchScale(q *Request, kind types.PatchType, patch []byte, force bool) (Result, error) {
	as := *q
	as.Resource = catalog.Scales()
	p := &patcher{q: &as, patch: patch, force: force}
	switch kind {
	case types.ApplyYAMLPatchType:
		own, err := ownApply(q, patch)
		if err != nil {
			return Result{}, err
		}
		p.q, p.patch = q, own
		return r.Update(q, p.apply, UpdateOptions{Owned: true})
	case types.MergePatchType:
		return r.Update(q, scaled(q, p.merge), UpdateOptions{})
	default:
		return r.Update(q, scaled(q, p.json), UpdateOptions{})
	}
}

// scaled is a change of an object by a change of its scale.
func scaled(q *Request, change func(catalog.Object) (catalog.Object, error)) func(catalog.Object) (catalog.Object, error) {
	return func(old catalog.Object) (catalog.Object, error) {
		view, complete, err := q.Resource.Scale.View(old)
		if err != nil {
			return nil, err
		}
		if !complete {
			view.Spec.Replicas = unset
		}
		before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(view)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		now, err := change(before)
		if err != nil {
			return nil, err
		}
		if meta(now).GetName() != q.Name {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", meta(now).GetName(), q.Name))
		}
		if err := matchNamespace(q, meta(now)); err != nil {
			return nil, err
		}
		var scale autoscalingv1.Scale
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(now, &scale); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if scale.Spec.Replicas == unset {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", q.Resource.Scale.Spec))
		}
		if err := q.Resource.Scale.Set(old, scale.Spec.Replicas); err != nil {
			return nil, err
		}
		if scale.ResourceVersion != "" {
			meta(old).SetResourceVersion(scale.ResourceVersion)
		}
		return old, nil
	}
}

// ownApply is what an apply of a scale says about the object itself.
func ownApply(q *Request, patch []byte) ([]byte, error) {
	var scale autoscalingv1.Scale
	if err := yaml.Unmarshal(patch, &scale); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	obj := catalog.Empty(q.Resource.GVK()).Object
	meta(obj).SetName(q.Name)
	if scale.ResourceVersion != "" {
		meta(obj).SetResourceVersion(scale.ResourceVersion)
	}
	if err := q.Resource.Scale.Set(obj, scale.Spec.Replicas); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return json.Marshal(obj)
}
