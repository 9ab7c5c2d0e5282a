package registry

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

func nameRequired() field.ErrorList {
	return field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")}
}

func (r *Registry) namespaces() *catalog.Resource {
	return r.Catalog.Find(schema.GroupVersionResource{Version: "v1", Resource: catalog.Namespaces})
}

// openNamespace refuses new content in a namespace that is not there, or goes.
func (r *Registry) openNamespace(q *Request, name string) error {
	if !q.Resource.Namespaced {
		return nil
	}
	o := r.Store.Get(catalog.Namespaces, storage.Key{Name: q.Namespace})
	if o == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: catalog.Namespaces}, q.Namespace)
	}
	if o.Fields["status.phase"] != string(corev1.NamespaceTerminating) {
		return nil
	}
	err := apierrors.NewForbidden(q.Resource.GroupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", q.Namespace),
		Field:   "metadata.namespace",
	})
	return err
}

// immortal are the namespaces that nobody deletes.
var immortal = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// deleteNamespace marks a namespace, whose finalizer in spec keeps it until it is
// empty.
func (r *Registry) deleteNamespace(q *Request, o *storage.Object, obj catalog.Object) (Result, error) {
	if slices.Contains(immortal, q.Name) {
		return Result{}, apierrors.NewForbidden(q.Resource.GroupResource(), q.Name, errors.New("this namespace may not be deleted"))
	}
	now := r.now()
	meta(obj).SetDeletionTimestamp(&now)
	catalog.Child(obj, "status")["phase"] = string(corev1.NamespaceTerminating)
	return r.replace(q, o, obj)
}

// emptyNamespace deletes what is in a namespace that goes, and then the namespace.
func (r *Registry) emptyNamespace(name string) {
	for _, res := range r.Catalog.Tables() {
		if !res.Namespaced {
			continue
		}
		list, err := r.Store.List(res.Table, storage.Selection{Namespace: name})
		if err != nil {
			continue // its definition has just gone, and its objects with it
		}
		for _, o := range list.Objects {
			r.discard(res, o.Key, o.UID, metav1.DeletePropagationBackground)
		}
	}
	r.finishNamespace(name)
}

// finishNamespace lets go of a namespace that goes and is empty.
func (r *Registry) finishNamespace(name string) {
	o := r.Store.Get(catalog.Namespaces, storage.Key{Name: name})
	if o == nil || o.Fields["status.phase"] != string(corev1.NamespaceTerminating) {
		return
	}
	for _, res := range r.Catalog.Tables() {
		if !res.Namespaced {
			continue
		}
		if list, err := r.Store.List(res.Table, storage.Selection{Namespace: name, Limit: 1}); err == nil && len(list.Objects) > 0 {
			return
		}
	}
	r.settle(r.namespaces(), o.Key, func(obj catalog.Object) bool {
		spec := catalog.Child(obj, "spec")
		finalizers, _ := spec["finalizers"].([]any)
		kept := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == string(corev1.FinalizerKubernetes) })
		spec["finalizers"] = kept
		if len(kept) == 0 {
			delete(spec, "finalizers")
		}
		return len(kept) != len(finalizers)
	})
}

// Finalize is the finalize subresource of a namespace: spec.finalizers alone is
// taken from obj.
func (r *Registry) Finalize(q *Request, obj catalog.Object) (Result, error) {
	return r.Update(q, func(old catalog.Object) (catalog.Object, error) {
		now := meta(old).DeepCopy().Object
		spec := catalog.Child(now, "spec")
		delete(spec, "finalizers")
		if given, ok := obj["spec"].(catalog.Object); ok && given["finalizers"] != nil {
			spec["finalizers"] = given["finalizers"]
		}
		return now, nil
	}, UpdateOptions{})
}
