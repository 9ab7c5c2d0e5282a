package registry

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// Read decodes a body for a resource, and judges it as the request's field
// validation says.
func (q *Request) Read(media string, body []byte) (catalog.Object, error) {
	res := q.Resource
	obj, faults, err := res.Model.Decode(media, body, q.Validation != metav1.FieldValidationIgnore)
	if err != nil {
		return nil, undecodable(q, body, err)
	}
	if len(faults) > 0 {
		switch q.Validation {
		case metav1.FieldValidationStrict:
			kind := meta(obj).GroupVersionKind()
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
				kind.Kind, kind.Version, res.Kind, strings.Join(faults, ", ")))
		case metav1.FieldValidationIgnore:
		default:
			for _, f := range faults {
				q.warn("%s", f)
			}
		}
	}
	return obj, matchKind(res, meta(obj))
}

// undecodable is the answer to a body that cannot be read.
func undecodable(q *Request, body []byte, err error) error {
	res := q.Resource
	if strings.HasPrefix(err.Error(), "couldn't get version/kind") || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) || errors.Is(err, catalog.ErrNotObject) {
		if len(body) > 30 {
			body = append(append([]byte{}, body[:30]...), " ..."...)
		}
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", res.Kind, err, body))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", res.Kind, res.Version, res.Kind, err))
}

// Create makes a new object of obj, which is the registry's from then on.
func (r *Registry) Create(q *Request, obj catalog.Object) (Result, error) {
	u := meta(obj)
	if q.Name == "" {
		q.Name = u.GetName()
	}
	if q.Resource.Terminating {
		return Result{}, terminatingDefinition(q.Resource, q.Name)
	}
	if err := matchNamespace(q, u); err != nil {
		return Result{}, err
	}
	if u.GetResourceVersion() != "" {
		return Result{}, errors.New("resourceVersion should not be set on objects to be created")
	}
	wipe(u)
	if u.GetName() == "" && u.GetGenerateName() == "" {
		return Result{}, apierrors.NewInvalid(q.Resource.GVK().GroupKind(), "", nameRequired())
	}
	dedupeOwners(q, u, "")
	if err := r.own(q, catalog.Empty(q.Resource.GVK()).Object, obj); err != nil {
		return Result{}, err
	}
	// The real server tries other generated names where one is taken.
	const tries = 8
	for try := 1; ; try++ {
		attempt := meta(obj).DeepCopy().Object
		o, err := r.create(q, attempt)
		if u.GetName() == "" && apierrors.IsAlreadyExists(err) && try < tries {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		return Result{Object: o, Created: true, After: o}, nil
	}
}

// create fills, admits, validates and commits a new object.
func (r *Registry) create(q *Request, obj catalog.Object) (*storage.Object, error) {
	res, u := q.Resource, meta(obj)
	r.fillNew(u)
	name := u.GetName()
	obj, err := r.admit(q, "CREATE", obj, nil)
	if err != nil {
		return nil, err
	}
	if err := r.openNamespace(q, name); err != nil {
		return nil, err
	}
	if res.Status {
		delete(obj, "status")
		if !res.Custom {
			if fitted, _, err := res.Model.Fit(obj); err == nil {
				obj = fitted
			}
		}
	}
	delete(catalog.Child(obj, "metadata"), "generation")
	if res.Traits.Generation {
		setGeneration(obj, 1)
	}
	if res.Traits.Prepare != nil {
		res.Traits.Prepare(obj, nil)
	}
	if err := validate(q, obj, nil); err != nil {
		return nil, err
	}
	q.warnings(obj, nil)
	if q.DryRun {
		if existing := r.Store.Get(res.Table, storage.Key{Namespace: q.Namespace, Name: name}); existing != nil {
			return nil, exists(q, name, existing, r)
		}
	}
	o, err := r.commit(q, nil, obj)
	switch {
	case errors.Is(err, storage.ErrChanged):
		return nil, exists(q, name, r.Store.Get(res.Table, storage.Key{Namespace: q.Namespace, Name: name}), r)
	case err != nil:
		return nil, storageError(q, err)
	}
	return o, nil
}

// exists is the answer to the creation of what is there.
func exists(q *Request, name string, o *storage.Object, r *Registry) error {
	err := apierrors.NewAlreadyExists(q.Resource.GroupResource(), name)
	if o != nil {
		if obj, decodeErr := r.Decode(q.Resource, o); decodeErr == nil && meta(obj).GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
	}
	return err
}

// storageError is the answer to what the store could not do.
func storageError(q *Request, err error) error {
	if errors.Is(err, storage.ErrDropped) {
		return apierrors.NewGenericServerResponse(404, "", q.Resource.GroupResource(), q.Name, "404 page not found", 0, true)
	}
	if errors.As(err, new(*storage.KeepError)) {
		return apierrors.NewInternalError(err)
	}
	return err
}
