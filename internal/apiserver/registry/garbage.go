package registry

import (
	"bytes"
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

// collect looks at what an object that is gone had owned.
func (r *Registry) collect(uid string) {
	for _, ref := range r.Store.Dependents(uid) {
		if o := r.Store.Get(ref.Table, ref.Key); o != nil {
			r.orphaned(ref, o.UID)
		}
	}
}

// orphaned deletes an object none of whose owners exists, and lets one go of the
// owners that are gone where others stand.
func (r *Registry) orphaned(ref storage.Ref, uid string) {
	res := r.Catalog.Table(ref.Table)
	o := r.Store.Get(ref.Table, ref.Key)
	if res == nil || o == nil || o.UID != uid || len(o.Owners) == 0 {
		return
	}
	stands := func(owner string) bool {
		at, found := r.Store.ByUID(owner)
		return found != nil && (at.Namespace == "" || at.Namespace == ref.Namespace)
	}
	gone := slices.DeleteFunc(slices.Clone(o.Owners), stands)
	switch {
	case len(gone) == 0:
	case len(gone) == len(o.Owners):
		r.discard(res, ref.Key, uid, "")
	default:
		r.release(res, ref.Key, gone)
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

// release takes owners off an object.
func (r *Registry) release(res *catalog.Resource, key storage.Key, owners []string) {
	r.settle(res, key, func(obj catalog.Object) bool {
		refs := meta(obj).GetOwnerReferences()
		kept := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return slices.Contains(owners, string(ref.UID)) })
		meta(obj).SetOwnerReferences(kept)
		if len(kept) == 0 {
			delete(catalog.Child(obj, "metadata"), "ownerReferences")
		}
		return len(kept) != len(refs)
	})
}

// finalizing does what the garbage collector's finalizers ask for.
func (r *Registry) finalizing(res *catalog.Resource, o *storage.Object) {
	if !bytes.Contains(o.Data, []byte("deletionTimestamp")) {
		return // spares the decoding of nearly all objects
	}
	obj, err := r.Decode(res, o)
	if err != nil || meta(obj).GetDeletionTimestamp() == nil {
		return
	}
	finalizers := meta(obj).GetFinalizers()
	if slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
		for _, ref := range r.Store.Dependents(o.UID) {
			if dependent := r.Catalog.Table(ref.Table); dependent != nil {
				r.release(dependent, ref.Key, []string{o.UID})
			}
		}
		r.letGo(res, o.Key, metav1.FinalizerOrphanDependents)
		return
	}
	if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		for _, ref := range r.Store.Dependents(o.UID) {
			dependent, found := r.Catalog.Table(ref.Table), r.Store.Get(ref.Table, ref.Key)
			if dependent == nil || found == nil {
				continue
			}
			if r.ownedByOthers(found, o.UID) {
				continue
			}
			policy := metav1.DeletePropagationBackground
			if len(r.Store.Dependents(found.UID)) > 0 {
				policy = metav1.DeletePropagationForeground
			}
			r.discard(dependent, ref.Key, found.UID, policy)
		}
		r.finishForeground(o.UID)
	}
}

// ownedByOthers says whether another owner keeps a dependent: one that stands and
// is not being deleted in the foreground itself.
func (r *Registry) ownedByOthers(dependent *storage.Object, uid string) bool {
	for _, owner := range dependent.Owners {
		ref, o := r.Store.ByUID(owner)
		if owner == uid || o == nil {
			continue
		}
		res := r.Catalog.Table(ref.Table)
		if res == nil {
			continue
		}
		if obj, err := r.Decode(res, o); err == nil && meta(obj).GetDeletionTimestamp() == nil {
			return true
		}
	}
	return false
}

// finishForeground lets go of an owner that waits for dependents, once none is
// left that blocks it.
func (r *Registry) finishForeground(uid string) {
	ref, o := r.Store.ByUID(uid)
	if o == nil {
		return
	}
	for _, dependent := range r.Store.Dependents(uid) {
		res, found := r.Catalog.Table(dependent.Table), r.Store.Get(dependent.Table, dependent.Key)
		if res == nil || found == nil {
			continue
		}
		obj, err := r.Decode(res, found)
		if err == nil && slices.ContainsFunc(meta(obj).GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
			return string(owner.UID) == uid && owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion
		}) && !r.ownedByOthers(found, uid) {
			return
		}
	}
	if res := r.Catalog.Table(ref.Table); res != nil {
		r.letGo(res, ref.Key, metav1.FinalizerDeleteDependents)
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
