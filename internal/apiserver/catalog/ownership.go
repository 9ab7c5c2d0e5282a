package catalog

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Manager keeps the managedFields of requests for the resource or one of its
// subresources.
func (r *Resource) Manager(subresource string) (*managedfields.FieldManager, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.managers[subresource]; m != nil {
		return m, nil
	}
	m, err := managedfields.NewDefaultCRDFieldManager(
		r.Model.Ownership(), converter{r}, defaulter{}, creator{}, r.GVK(), r.Stored.GroupVersion(), subresource, r.reset(subresource))
	if err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", r.GVK(), err)
	}
	if r.managers == nil {
		r.managers = map[string]*managedfields.FieldManager{}
	}
	r.managers[subresource] = m
	return m, nil
}

// reset is the fields that a request cannot set, and so cannot own.
func (r *Resource) reset(subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	var paths []fieldpath.Path
	switch {
	case subresource == "status" && r.Custom:
		paths = []fieldpath.Path{fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")}
	case subresource == "status":
		paths = []fieldpath.Path{fieldpath.MakePathOrDie("spec")}
	case r.Status:
		paths = []fieldpath.Path{fieldpath.MakePathOrDie("status")}
	default:
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(r.GroupVersion().String()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(paths...)),
	}
}

// converter changes the version of an object for the field manager.
type converter struct{ r *Resource }

func (c converter) Convert(_, _, _ any) error { return fmt.Errorf("not supported") }

func (c converter) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is not unstructured", in)
	}
	want, ok := gv.(schema.GroupVersion)
	if !ok {
		var kind schema.GroupVersionKind
		if kind, ok = gv.KindForGroupVersionKinds([]schema.GroupVersionKind{u.GroupVersionKind()}); !ok {
			return nil, fmt.Errorf("%s cannot be converted to %v", u.GroupVersionKind(), gv)
		}
		want = kind.GroupVersion()
	}
	if u.GroupVersionKind().GroupVersion() == want {
		return in, nil
	}
	if want.Group != c.r.Group {
		return nil, runtime.NewNotRegisteredErrForKind("catalog", want.WithKind(c.r.Kind))
	}
	out := u.DeepCopy()
	out.SetAPIVersion(want.String())
	return out, nil
}

func (c converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// defaulter does nothing: models have filled in the defaults.
type defaulter struct{}

func (defaulter) Default(runtime.Object) {}

// creator makes empty objects.
type creator struct{}

func (creator) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return Empty(gvk), nil }

// Empty is an object with nothing but its kind.
func Empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// ManagedFieldsAlike says whether two lists say the same but for their times.
func ManagedFieldsAlike(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion || x.Subresource != y.Subresource ||
			x.FieldsType != y.FieldsType || (x.FieldsV1 == nil) != (y.FieldsV1 == nil) {
			return false
		}
		if x.FieldsV1 != nil && x.FieldsV1.GetRawString() != y.FieldsV1.GetRawString() {
			return false
		}
	}
	return true
}
