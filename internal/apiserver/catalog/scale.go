package catalog

import (
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Scale is where the objects of a custom resource have their number of replicas.
type Scale struct {
	// Spec, Status and Selector are paths as the definition has them, as
	// .spec.replicas; Selector is empty where there is none.
	Spec, Status, Selector string
}

// Scales is the resource that a scale subresource reads and writes. Nothing serves
// it by itself.
func Scales() *Resource { return builtin(autoscalingv1.GroupName, "Scale", "scales") }

func scaleOf(version Object) *Scale {
	scale, found, _ := unstructured.NestedMap(version, "subresources", "scale") // no map counts as none
	if !found {
		return nil
	}
	return &Scale{text(scale, "specReplicasPath"), text(scale, "statusReplicasPath"), text(scale, "labelSelectorPath")}
}

func steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// View is the scale of an object. It is not complete where the object has no number
// of replicas in its spec.
func (s *Scale) View(obj Object) (scale *autoscalingv1.Scale, complete bool, err error) {
	wanted, complete, err := unstructured.NestedInt64(obj, steps(s.Spec)...)
	if err != nil {
		return nil, false, err
	}
	has, _, err := unstructured.NestedInt64(obj, steps(s.Status)...)
	if err != nil {
		return nil, false, err
	}
	var selector string
	if s.Selector != "" {
		if selector, _, err = unstructured.NestedString(obj, steps(s.Selector)...); err != nil {
			return nil, false, err
		}
	}
	u := &unstructured.Unstructured{Object: obj}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: autoscalingv1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(wanted)},                    //nolint:gosec // validated when it was stored
		Status: autoscalingv1.ScaleStatus{Replicas: int32(has), Selector: selector}, //nolint:gosec // likewise
	}, complete, nil
}

// Set writes the number of replicas that is wanted into obj.
func (s *Scale) Set(obj Object, replicas int32) error {
	return unstructured.SetNestedField(obj, int64(replicas), steps(s.Spec)...)
}

// validate finds what no scale can be made of. A write of the status is not to blame
// for the spec.
func (s *Scale) validate(obj, _ Object, subresource string) (errs field.ErrorList) {
	paths := []string{s.Spec, s.Status}
	if subresource == "status" {
		paths = paths[1:]
	}
	for _, path := range paths {
		n, _, err := unstructured.NestedInt64(obj, steps(path)...)
		switch at := field.NewPath(path); {
		case err != nil:
			errs = append(errs, field.Invalid(at, n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(at, n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(at, n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	if s.Selector != "" {
		if selector, _, err := unstructured.NestedString(obj, steps(s.Selector)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(s.Selector), selector, err.Error()))
		}
	}
	return errs
}

// validateScale finds what is wrong with a version's scale subresource.
func validateScale(version Object, at *field.Path) (errs field.ErrorList) {
	s := scaleOf(version)
	if s == nil {
		return nil
	}
	for _, p := range []struct{ name, path, prefix string }{
		{"specReplicasPath", s.Spec, ".spec"}, {"statusReplicasPath", s.Status, ".status"},
	} {
		switch at := at.Child("scale." + p.name); {
		case p.path == "":
			errs = append(errs, field.Required(at, ""))
		case p.path[0] != '.':
			errs = append(errs, field.Invalid(at, p.path, "must be a simple json path starting with ."))
		case !strings.HasPrefix(p.path, p.prefix+"."):
			errs = append(errs, field.Invalid(at, p.path, "should be a json path under "+p.prefix))
		}
	}
	at = at.Child("scale.labelSelectorPath")
	switch {
	case s.Selector == "":
	case s.Selector[0] != '.':
		errs = append(errs, field.Invalid(at, s.Selector, "must be a simple json path starting with ."))
	case !strings.HasPrefix(s.Selector, ".spec.") && !strings.HasPrefix(s.Selector, ".status."):
		errs = append(errs, field.Invalid(at, s.Selector, "should be a json path under either .spec or .status"))
	}
	return errs
}
