package registry

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

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
