package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// UpdateOptions are what distinguishes a PUT, a patch and an apply.
type UpdateOptions struct {
	// UID is the one that the object must have; empty for any.
	UID string
	// Create says that what is not there is created.
	Create bool
	// Owned says that change has kept the managed fields already.
	Owned bool
	// MayCreate is asked before something is created [nil: it may be].
	MayCreate func() error
}

// Update changes an object: change is given what is there, as its own, and
// answers what is to be. It may be called again where another write came between.
// For what is not there change is given an object without a UID.
func (r *Registry) Update(q *Request, change func(old catalog.Object) (catalog.Object, error), o UpdateOptions) (Result, error) {
	for {
		result, err := r.update(q, change, o)
		if !errors.Is(err, storage.ErrChanged) {
			return result, storageError(q, err)
		}
	}
}

func (r *Registry) update(q *Request, change func(old catalog.Object) (catalog.Object, error), o UpdateOptions) (Result, error) {
	stored := r.Store.Get(q.Resource.Table, q.key())
	if stored == nil {
		return r.upsert(q, change, o)
	}
	if o.UID != "" && o.UID != stored.UID {
		return Result{}, conflict(q, invalidObject(q, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", o.UID, stored.UID)))
	}
	old, err := r.Decode(q.Resource, stored)
	if err != nil {
		return Result{}, apierrors.NewInternalError(err)
	}
	obj, err := r.changed(q, change, old, o)
	if err != nil {
		return Result{}, err
	}
	if obj, err = r.admit(q, "UPDATE", obj, old); err != nil {
		return Result{}, err
	}
	dedupeOwners(q, meta(obj), " after mutating admission happens")
	if err := r.checkVersion(q, meta(obj), meta(old)); err != nil {
		return Result{}, err
	}
	obj, changed, err := r.prepareUpdate(q, obj, old)
	if err != nil {
		return Result{}, err
	}
	if r.emptied(q, obj, old) {
		// Who watches is told the last state that was stored; the answer is what was
		// asked for.
		if _, err := r.remove(q, stored, old); err != nil {
			return Result{}, err
		}
		return Result{Object: r.At(q.Resource, obj, stored.Version), Deleted: true, Before: stored}, nil
	}
	if !changed {
		return Result{Object: stored, Before: stored, After: stored}, nil
	}
	return r.replace(q, stored, obj)
}

// changed applies the change, and keeps the managed fields.
func (r *Registry) changed(q *Request, change func(old catalog.Object) (catalog.Object, error), old catalog.Object, o UpdateOptions) (catalog.Object, error) {
	obj, err := change(meta(old).DeepCopy().Object)
	if err != nil {
		return nil, err
	}
	u := meta(obj)
	if u.GetName() != q.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), q.Name))
	}
	if err := matchNamespace(q, u); err != nil {
		return nil, err
	}
	if !o.Owned {
		err = r.own(q, old, obj)
	}
	return obj, err
}

// own keeps the managed fields of an update from old to obj.
func (r *Registry) own(q *Request, old, obj catalog.Object) error {
	manager, err := q.Resource.Manager(q.Subresource)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	owned, err := manager.Update(meta(old), meta(obj), q.Manager)
	if err != nil {
		// obj is not of the type that its schema says, and is refused when it is
		// validated, or stays with who owned it. UpdateNoErrors does so too, and says
		// in the log of the whole process that it should not happen.
		meta(obj).SetManagedFields(meta(old).GetManagedFields())
		return nil //nolint:nilerr // as said
	}
	if u, ok := owned.(*unstructured.Unstructured); ok && reflect.ValueOf(u.Object).Pointer() != reflect.ValueOf(obj).Pointer() {
		clear(obj)
		for k, v := range u.Object {
			obj[k] = v
		}
	}
	if q.Subresource == "scale" {
		forgetTimes(meta(obj), q.Subresource)
	}
	return nil
}

// forgetTimes takes the times off what is owned by way of a subresource: the real
// server loses them between a scale and its object.
func forgetTimes(u *unstructured.Unstructured, subresource string) {
	entries := u.GetManagedFields()
	for i := range entries {
		if entries[i].Subresource == subresource {
			entries[i].Time = nil
		}
	}
	// They come in the order of their times, below what is applied.
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		if c := strings.Compare(string(a.Operation), string(b.Operation)); c != 0 || (a.Time == nil) == (b.Time == nil) {
			return c
		}
		if a.Time == nil {
			return -1
		}
		return 1
	})
	u.SetManagedFields(entries)
}

// upsert creates what an update did not find, where that is allowed.
func (r *Registry) upsert(q *Request, change func(old catalog.Object) (catalog.Object, error), o UpdateOptions) (Result, error) {
	notFound := apierrors.NewNotFound(q.Resource.GroupResource(), q.Name)
	if !o.Create || q.Subresource != "" {
		return Result{}, notFound
	}
	if q.Resource.Terminating {
		return Result{}, terminatingDefinition(q.Resource, q.Name)
	}
	obj, err := change(catalog.Empty(q.Resource.GVK()).Object)
	if err != nil {
		return Result{}, err
	}
	u := meta(obj)
	if uid := u.GetUID(); uid != "" {
		return Result{}, conflict(q, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if u.GetName() == "" {
		u.SetName(q.Name)
	}
	if u.GetName() != q.Name {
		return Result{}, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), q.Name))
	}
	if o.MayCreate != nil {
		if err := o.MayCreate(); err != nil {
			return Result{}, err
		}
	}
	if err := matchNamespace(q, u); err != nil {
		return Result{}, err
	}
	if u.GetResourceVersion() != "" && u.GetResourceVersion() != "0" {
		return Result{}, notFound
	}
	u.SetResourceVersion("")
	if !o.Owned {
		if err := r.own(q, catalog.Empty(q.Resource.GVK()).Object, obj); err != nil {
			return Result{}, err
		}
	}
	made, err := r.create(q, obj)
	if apierrors.IsAlreadyExists(err) {
		return Result{}, storage.ErrChanged // it has just come: update it
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Object: made, Created: true, After: made}, nil
}

// checkVersion is optimistic concurrency.
func (r *Registry) checkVersion(q *Request, u, old *unstructured.Unstructured) error {
	switch given := u.GetResourceVersion(); {
	case given == old.GetResourceVersion():
	case given != "" && given != "0":
		if !decimal(given) {
			return apierrors.NewInvalid(schema.GroupKind{Group: q.Resource.Group, Kind: q.Resource.Plural}, q.Name,
				field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), given, "must be an integer")})
		}
		return conflict(q, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case q.Resource.Traits.NeedsVersion:
		return apierrors.NewInvalid(schema.GroupKind{Group: q.Resource.Group, Kind: q.Resource.Plural}, q.Name,
			field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), int64(0), "must be specified for an update")})
	default:
		u.SetResourceVersion(old.GetResourceVersion())
	}
	return nil
}

func decimal(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// prepareUpdate keeps from old what the request may not change, and validates. It says
// whether anything is left that differs.
func (r *Registry) prepareUpdate(q *Request, obj, old catalog.Object) (now catalog.Object, changed bool, err error) {
	res := q.Resource
	before := meta(old)
	switch q.Subresource {
	case "status":
		obj = onlyStatus(res, obj, old)
	case "finalize":
		setGeneration(obj, before.GetGeneration())
	default:
		if res.Status {
			if status, ok := old["status"]; ok {
				obj["status"] = status
			} else {
				delete(obj, "status")
			}
		}
		if res.Traits.Prepare != nil {
			res.Traits.Prepare(obj, old)
		}
		counted(res, obj, old)
	}
	u := meta(obj)
	if u.GetUID() == "" {
		u.SetUID(before.GetUID())
	}
	u.SetCreationTimestamp(before.GetCreationTimestamp())
	u.SetSelfLink("")
	m, was := catalog.Child(obj, "metadata"), catalog.Child(old, "metadata")
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds"} {
		if v, ok := was[name]; ok {
			m[name] = v
		} else if name == "deletionTimestamp" || v == nil {
			delete(m, name)
		}
	}
	if err := validate(q, obj, old); err != nil {
		return nil, false, err
	}
	if q.Subresource == "" {
		q.warnings(obj, old)
	}
	return obj, !keepTimes(obj, old), nil
}

// onlyStatus is old with the status of obj. A custom resource's metadata does not
// change by it; of the built-in ones it does.
func onlyStatus(res *catalog.Resource, obj, old catalog.Object) catalog.Object {
	status, has := obj["status"]
	managed := meta(obj).GetManagedFields()
	var now catalog.Object
	if res.Custom || res.Table == catalog.Definitions {
		now = meta(old).DeepCopy().Object
		meta(now).SetManagedFields(managed)
		if res.Table == catalog.Definitions {
			now["metadata"] = meta(obj).DeepCopy().Object["metadata"]
			setGeneration(now, meta(old).GetGeneration())
		}
	} else {
		now = obj
		for k := range now {
			if k != "metadata" && k != "status" {
				delete(now, k)
			}
		}
		for k, v := range old {
			if k != "metadata" && k != "status" {
				now[k] = v
			}
		}
		setGeneration(now, meta(old).GetGeneration())
	}
	if has {
		now["status"] = status
	} else {
		delete(now, "status")
	}
	return now
}

// keepTimes takes the old managed fields where nothing but their times differs, so that
// a write without a change writes nothing; it says whether it is one.
func keepTimes(obj, old catalog.Object) bool {
	was, now := meta(old).GetManagedFields(), meta(obj).GetManagedFields()
	if !catalog.ManagedFieldsAlike(was, now) {
		return false
	}
	m, before := catalog.Child(obj, "metadata"), catalog.Child(old, "metadata")
	kept := m["managedFields"]
	if list, ok := before["managedFields"]; ok {
		m["managedFields"] = list
	}
	if same(obj, old) {
		return true
	}
	m["managedFields"] = kept
	if kept == nil {
		delete(m, "managedFields")
	}
	return false
}

// same says whether two objects are stored as the same bytes. It looks no further than
// to the first difference, and encodes no more than what is of two types.
func same(a, b catalog.Object) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if w, ok := b[key]; !ok || !sameValue(v, w) {
			return false
		}
	}
	return true
}

func sameValue(a, b any) bool {
	switch x := a.(type) {
	case catalog.Object:
		if y, ok := b.(catalog.Object); ok && (x == nil) == (y == nil) {
			return same(x, y)
		}
	case []any:
		if y, ok := b.([]any); ok && (x == nil) == (y == nil) {
			return slices.EqualFunc(x, y, sameValue)
		}
	}
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// emptied says whether an update lets go of an object that is being deleted.
func (r *Registry) emptied(q *Request, obj, old catalog.Object) bool {
	if meta(old).GetDeletionTimestamp() == nil || len(meta(obj).GetFinalizers()) > 0 {
		return false
	}
	if q.Resource.Table == catalog.Namespaces {
		spec, _ := obj["spec"].(catalog.Object)
		finalizers, _ := spec["finalizers"].([]any)
		return len(finalizers) == 0
	}
	grace := meta(old).GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func conflict(q *Request, err error) error {
	return apierrors.NewConflict(q.Resource.GroupResource(), q.Name, err)
}

// invalidObject is the text of the real server's storage.
func invalidObject(q *Request, text string) error {
	key := "/registry/"
	if q.Resource.Custom || q.Resource.Table == catalog.Definitions {
		key += q.Resource.Group + "/"
	}
	key += q.Resource.Plural + "/"
	if q.Namespace != "" {
		key += q.Namespace + "/"
	}
	return fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s%s, ResourceVersion: 0, AdditionalErrorMsg: %s", key, q.Name, text)
}
