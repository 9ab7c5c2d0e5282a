package registry

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
)

// Admitted is a write that an [Admission] is asked about.
type Admitted struct {
	// Operation is CREATE, UPDATE or DELETE.
	Operation       string
	Resource        schema.GroupVersionResource
	Kind            schema.GroupVersionKind
	Namespace, Name string
	Subresource     string
	User            User
	DryRun          bool
	Object, Old     *unstructured.Unstructured
}

// Admission may change Object, or refuse with an error. An error that is an API
// status is answered as it is, and any other as 403 Forbidden. It may be called
// more than once for a write, and must not call the server.
type Admission func(*Admitted) error

// admit asks every admission about a write; old or obj may be nil. What it answers
// replaces obj.
func (r *Registry) admit(q *Request, operation string, obj, old catalog.Object) (catalog.Object, error) {
	if len(r.Admit) == 0 {
		return obj, nil
	}
	a := &Admitted{
		Operation: operation, Resource: q.Resource.GVR(), Kind: q.Resource.GVK(),
		Namespace: q.Namespace, Name: q.Name, Subresource: q.Subresource, User: q.User, DryRun: q.DryRun,
	}
	if old != nil {
		a.Old = meta(old).DeepCopy()
	}
	if obj != nil {
		a.Object = meta(obj)
		if a.Name == "" {
			a.Name = a.Object.GetName()
		}
	}
	for _, admit := range r.Admit {
		if err := admit(a); err != nil {
			var status apierrors.APIStatus
			if errors.As(err, &status) {
				return nil, err
			}
			return nil, apierrors.NewForbidden(q.Resource.GroupResource(), a.Name, err)
		}
	}
	if obj == nil {
		return nil, nil
	}
	fitted, _, err := q.Resource.Model.Fit(a.Object.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return fitted, nil
}
