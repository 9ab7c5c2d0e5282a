package registry

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// committed does what controllers do after a change, before the request that made
// it is answered: whoever waits for their work need not poll.
func (r *Registry) committed(res *catalog.Resource, e *storage.Event) {
	r.control(res, e)
	if r.owed.CompareAndSwap(true, false) {
		r.resume()
	}
}

// refused notes that something could not be kept: it may have been a controller's
// work, which nobody would do again.
func (r *Registry) refused(err error) error {
	if errors.As(err, new(*storage.KeepError)) {
		r.owed.Store(true)
	}
	return err
}

// control is what controllers do after one change.
func (r *Registry) control(res *catalog.Resource, e *storage.Event) {
	if r.Changed != nil {
		r.Changed(res, e)
	}
	if res.Table == catalog.Definitions {
		r.definitionChanged(res, e)
	}
	if r.NoControllers {
		if e.Change == storage.Deleted && res.Custom {
			r.finishDefinition(res.Definition)
		}
		return
	}
	switch e.Change {
	case storage.Deleted:
		r.collect(e.Object.UID)
		for _, owner := range e.Object.Owners {
			r.finishForeground(owner)
		}
		if res.Custom {
			r.finishDefinition(res.Definition)
		}
		if e.Object.Namespace != "" {
			r.finishNamespace(e.Object.Namespace)
		}
	default:
		if len(e.Object.Owners) > 0 {
			r.orphaned(storage.Ref{Table: res.Table, Key: e.Object.Key}, e.Object.UID)
		}
		if res.Table == catalog.Namespaces && e.Object.Fields["status.phase"] == "Terminating" && (e.Old == nil || e.Old.Fields["status.phase"] != "Terminating") {
			r.emptyNamespace(e.Object.Name)
		} else {
			r.finalizing(res, e.Object)
		}
	}
}

// discard deletes an object of that UID as a controller does.
func (r *Registry) discard(res *catalog.Resource, key storage.Key, uid string, policy metav1.DeletionPropagation) {
	id := types.UID(uid)
	var none int64 // nobody is there who would end it within its grace
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id}, GracePeriodSeconds: &none}
	if policy != "" {
		o.PropagationPolicy = &policy
	}
	q := &Request{Resource: res, Namespace: key.Namespace, Name: key.Name, User: system, Manager: "kube-controller-manager"}
	if _, err := r.Delete(q, o); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return // an admission keeps it, as it would keep it from a real controller
	}
}

// system is the user that controllers are.
var system = User{Name: "system:kube-controller-manager", Groups: []string{"system:masters", "system:authenticated"}}

// settle changes an object as a controller does; change says whether it did.
func (r *Registry) settle(res *catalog.Resource, key storage.Key, change func(catalog.Object) bool) {
	for {
		o := r.Store.Get(res.Table, key)
		if o == nil {
			return
		}
		obj, err := r.Decode(res, o)
		if err != nil {
			return // nothing can be said of it
		}
		old := meta(obj).DeepCopy().Object
		if !change(obj) || same(obj, old) {
			return
		}
		q := &Request{Resource: res, Namespace: key.Namespace, Name: key.Name}
		if r.emptied(q, obj, old) {
			_, err = r.remove(q, o, old)
		} else {
			_, err = r.commit(q, o, obj)
		}
		if err == nil || r.Store.Get(res.Table, key) == o {
			return
		}
	}
}

// letGo takes a finalizer off an object that is being deleted.
func (r *Registry) letGo(res *catalog.Resource, key storage.Key, finalizer string) {
	r.settle(res, key, func(obj catalog.Object) bool {
		u := meta(obj)
		finalizers := u.GetFinalizers()
		if u.GetDeletionTimestamp() == nil || !slices.Contains(finalizers, finalizer) {
			return false
		}
		kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == finalizer })
		u.SetFinalizers(kept)
		if len(kept) == 0 {
			delete(catalog.Child(obj, "metadata"), "finalizers")
		}
		return true
	})
}
