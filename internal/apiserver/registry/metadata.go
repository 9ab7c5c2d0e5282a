package registry

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
)

func meta(obj catalog.Object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: obj}
}

// matchNamespace puts the request's namespace into an object without one.
func matchNamespace(q *Request, u *unstructured.Unstructured) error {
	want := q.Namespace
	switch got := u.GetNamespace(); {
	case got == want:
	case got == "", want == "":
		u.SetNamespace(want)
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// matchKind refuses what is of another kind or version than the resource.
func matchKind(res *catalog.Resource, u *unstructured.Unstructured) error {
	if got, want := u.GetAPIVersion(), res.GroupVersion().String(); got != want {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got, want))
	}
	if got := u.GetKind(); got != res.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: the kind in the data (%s) does not match the expected kind (%s)",
			got, res.Version, res.Kind, got, res.Kind))
	}
	return nil
}

func (r *Registry) fillNew(u *unstructured.Unstructured) {
	wipe(u)
	u.SetUID(types.UID(r.uid()))
	u.SetCreationTimestamp(r.now())
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(r.generate(u.GetGenerateName()))
	}
}

// wipe takes off what only the server sets.
func wipe(u *unstructured.Unstructured) {
	m := catalog.Child(u.Object, "metadata")
	for _, name := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		delete(m, name)
	}
}

// dedupeOwners drops owners that are named twice, and says so.
func dedupeOwners(q *Request, u *unstructured.Unstructured, after string) {
	refs := u.GetOwnerReferences()
	var kept []metav1.OwnerReference
	var twice []string
	for _, ref := range refs {
		if slices.ContainsFunc(kept, func(k metav1.OwnerReference) bool { return k.UID == ref.UID && reflect.DeepEqual(k, ref) }) {
			twice = append(twice, string(ref.UID))
			continue
		}
		kept = append(kept, ref)
	}
	if len(twice) > 0 {
		q.warn(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s",
			after, strings.Join(twice, ", "))
		u.SetOwnerReferences(kept)
	}
}

// validate is all that must hold of obj before it is stored; old is nil for a new
// object. Of a write of a status, that is its status and metadata. The names of built-in types are checked as the type wants it, and only
// for a new object.
func validate(q *Request, obj, old catalog.Object) error {
	res := q.Resource
	root := field.NewPath("metadata")
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateObjectMetaAccessor(meta(obj), res.Namespaced, res.Traits.Name, root)
	} else {
		errs = validation.ValidateObjectMetaAccessor(meta(obj), res.Namespaced, catalog.PathSegment, root)
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(meta(obj), meta(old), root)...)
		// The real server looks twice, for all types and for the one, and says it twice.
		if res.Custom {
			errs = append(errs, validation.ValidateObjectMetaAccessor(meta(obj), res.Namespaced, res.Traits.Name, root)...)
		}
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(meta(obj), meta(old), root)...)
	}
	errs = append(errs, res.Model.Validate(obj, old, q.Subresource)...)
	if res.Traits.Validate != nil {
		errs = append(errs, res.Traits.Validate(obj, old, q.Subresource)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(res.GVK().GroupKind(), meta(obj).GetName(), errs)
	}
	return nil
}

// warnings are for what is allowed and will be regretted.
func (q *Request) warnings(obj, old catalog.Object) {
	if q.Resource.Traits.Warnings != nil {
		for _, text := range q.Resource.Traits.Warnings(obj, old) {
			q.warn("%s", text)
		}
	}
	if !q.Resource.Custom {
		return
	}
	var before []string
	if old != nil {
		before = meta(old).GetFinalizers()
	}
	added := slices.Clone(meta(obj).GetFinalizers())
	slices.Sort(added)
	for _, f := range added {
		if !slices.Contains(before, f) && !strings.Contains(f, "/") && f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			how := ""
			if strings.Contains(f, ".") {
				how = " including a path (/)"
			}
			q.warn("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers", f, how)
		}
	}
}

// counted sets the generation of a changed object.
func counted(res *catalog.Resource, obj, old catalog.Object) {
	generation := meta(old).GetGeneration()
	if !res.Traits.Generation {
		setGeneration(obj, generation)
		return
	}
	if !sameBut(obj, old, !res.Custom || res.Status) {
		generation++
	}
	setGeneration(obj, generation)
}

func setGeneration(obj catalog.Object, generation int64) {
	if generation == 0 {
		delete(catalog.Child(obj, "metadata"), "generation")
		return
	}
	meta(obj).SetGeneration(generation)
}

// sameBut says whether two objects are the same outside of metadata, and of
// status where that is left out.
func sameBut(a, b catalog.Object, status bool) bool {
	skip := func(k string) bool { return k == "metadata" || status && k == "status" }
	for k, v := range a {
		if !skip(k) && !reflect.DeepEqual(v, b[k]) {
			return false
		}
	}
	for k := range b {
		if _, ok := a[k]; !skip(k) && !ok {
			return false
		}
	}
	return true
}
