package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// Delete deletes an object, or marks it where finalizers keep it.
func (r *Registry) Delete(q *Request, o metav1.DeleteOptions) (Result, error) {
	for {
		result, err := r.delete(q, o)
		if !errors.Is(err, storage.ErrChanged) {
			return result, storageError(q, err)
		}
	}
}

func (r *Registry) delete(q *Request, o metav1.DeleteOptions) (Result, error) {
	stored := r.Store.Get(q.Resource.Table, q.key())
	if stored == nil {
		return Result{}, apierrors.NewNotFound(q.Resource.GroupResource(), q.Name)
	}
	obj, err := r.Decode(q.Resource, stored)
	if err != nil {
		return Result{}, apierrors.NewInternalError(err)
	}
	if err := preconditions(q, stored, meta(obj).GetResourceVersion(), o.Preconditions); err != nil {
		return Result{}, err
	}
	if _, err := r.admit(q, "DELETE", nil, obj); err != nil {
		return Result{}, err
	}
	switch deleting := meta(obj).GetDeletionTimestamp() != nil; {
	case q.Resource.Table == catalog.Namespaces && !deleting:
		return r.deleteNamespace(q, stored, obj)
	case q.Resource.Table == catalog.Namespaces && hasSpecFinalizers(obj):
		return Result{Object: stored, Before: stored, After: stored}, nil
	case q.Resource.Table == catalog.Definitions && !deleting:
		return r.deleteDefinition(q, stored, obj)
	}
	grace, pending := gracePeriod(q, obj, o)
	if pending {
		return Result{Object: stored, Before: stored, After: stored}, nil
	}
	finalizers := cascade(meta(obj).GetFinalizers(), o)
	if len(finalizers) == 0 && grace == 0 {
		return r.deleteNow(q, stored, obj)
	}
	return r.mark(q, stored, obj, finalizers, grace)
}

// gracePeriod is how many seconds an object still has. It is pending where it is
// being deleted already and is given no less than before.
func gracePeriod(q *Request, obj catalog.Object, o metav1.DeleteOptions) (seconds int64, pending bool) {
	if q.Resource.Traits.Grace == nil {
		return 0, false
	}
	seconds = q.Resource.Traits.Grace(obj)
	if o.GracePeriodSeconds != nil && seconds > 0 {
		if seconds = *o.GracePeriodSeconds; seconds < 0 {
			seconds = 1
		}
	}
	if has := meta(obj).GetDeletionGracePeriodSeconds(); meta(obj).GetDeletionTimestamp() != nil && has != nil {
		if *has == 0 {
			return 0, false
		}
		return seconds, o.GracePeriodSeconds == nil || seconds >= *has
	}
	return seconds, false
}

func hasSpecFinalizers(obj catalog.Object) bool {
	spec, _ := obj["spec"].(catalog.Object)
	finalizers, _ := spec["finalizers"].([]any)
	return len(finalizers) > 0
}

// preconditions are checked twice by the real server, which words them in two
// ways; the first is what clients see.
func preconditions(q *Request, o *storage.Object, version string, p *metav1.Preconditions) error {
	switch {
	case p == nil:
	case p.UID != nil && string(*p.UID) != o.UID:
		return unmet(q, "UID", string(*p.UID), o.UID, "deleted and then recreated")
	case p.ResourceVersion != nil && *p.ResourceVersion != version:
		return unmet(q, "ResourceVersion", *p.ResourceVersion, version, "modified")
	}
	return nil
}

// unmet is the answer to a precondition on a field that has another value.
func unmet(q *Request, field, want, got, how string) error {
	first := fmt.Sprintf("Precondition failed: %s in precondition: %s, %s in object meta: %s", field, want, field, got)
	switch q.Resource.Table {
	case catalog.Namespaces:
		return conflict(q, errors.New(first))
	case catalog.Definitions:
		return conflict(q, errors.New("p"+strings.TrimPrefix(first, "P")))
	}
	return apierrors.NewConflict(schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Kind}, q.Name,
		fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", field, want, field, got, how))
}

// cascade is the finalizers of an object that is deleted with the options: those
// that it has, and one for the garbage collector as the policy wants it.
func cascade(finalizers []string, o metav1.DeleteOptions) []string {
	orphan := slices.Contains(finalizers, metav1.FinalizerOrphanDependents)
	foreground := slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	switch {
	case o.OrphanDependents != nil: //nolint:staticcheck // old clients send it
		orphan, foreground = *o.OrphanDependents, false //nolint:staticcheck // as above
	case o.PropagationPolicy != nil:
		orphan = *o.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *o.PropagationPolicy == metav1.DeletePropagationForeground
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		kept = append(kept, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		kept = append(kept, metav1.FinalizerDeleteDependents)
	}
	return kept
}

// mark gives an object a deletion timestamp, when its grace is over; that, and its
// finalizers, keep it.
func (r *Registry) mark(q *Request, stored *storage.Object, obj catalog.Object, finalizers []string, grace int64) (Result, error) {
	u, before := meta(obj), meta(obj).DeepCopy().Object
	u.SetFinalizers(finalizers)
	if u.GetDeletionTimestamp() == nil && u.GetGeneration() > 0 {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	if at := metav1.NewTime(r.now().Add(time.Duration(grace) * time.Second)); u.GetDeletionTimestamp() == nil || at.Before(u.GetDeletionTimestamp()) {
		u.SetDeletionTimestamp(&at)
	}
	u.SetDeletionGracePeriodSeconds(&grace)
	if same(obj, before) {
		return Result{Object: stored, Before: stored, After: stored}, nil
	}
	return r.replace(q, stored, obj)
}

// deleteNow takes an object away that nothing keeps.
func (r *Registry) deleteNow(q *Request, stored *storage.Object, obj catalog.Object) (Result, error) {
	gone, err := r.remove(q, stored, obj)
	if err != nil {
		return Result{}, err
	}
	result := Result{Deleted: true, Before: stored}
	if q.Resource.Traits.ReturnsDeleted {
		result.Object = gone
		return result, nil
	}
	result.Status = &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: q.Name, Group: q.Resource.Group, Kind: q.Resource.Plural, UID: types.UID(gone.UID),
		},
	}
	return result, nil
}

// DeleteCollection deletes what is selected, and answers it as it was.
func (r *Registry) DeleteCollection(q *Request, sel storage.Selection, o metav1.DeleteOptions) (storage.List, error) {
	list, err := r.Store.List(q.Resource.Table, sel)
	if err != nil {
		return storage.List{}, storageError(q, err)
	}
	for _, object := range list.Objects {
		one := *q
		one.Namespace, one.Name = object.Namespace, object.Name
		if _, err := r.Delete(&one, o); err != nil && !apierrors.IsNotFound(err) {
			return storage.List{}, err
		}
	}
	return list, nil
}
