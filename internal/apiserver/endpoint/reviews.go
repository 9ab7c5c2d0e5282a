package endpoint

import (
	"encoding/json"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/registry"
)

// RulesOf is what an authorizer can tell about all that a user may do.
type RulesOf interface {
	Rules(user registry.User, namespace string) authorizationv1.SubjectRulesReviewStatus
}

// review answers a resource that is a question, and stores nothing.
func (h *Handler) review(x *Exchange, res *catalog.Resource) (*Answer, error) {
	if x.Verb != "create" || x.Name != "" {
		return nil, apierrors.NewMethodNotSupported(res.GroupResource(), x.Verb)
	}
	media, err := bodyMedia(x.Request, true)
	if err != nil {
		return nil, err
	}
	obj, err := h.request(x, res).Read(media, x.Body)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch res.Kind {
	case "SelfSubjectAccessReview":
		return h.accessReview(x, res, data)
	case "SubjectAccessReview":
		return h.subjectReview(data)
	case "SelfSubjectRulesReview":
		return h.rulesReview(x, data)
	case "SelfSubjectReview":
		return JSON(http.StatusCreated, authenticationv1.SelfSubjectReview{
			TypeMeta:   metav1.TypeMeta{Kind: res.Kind, APIVersion: res.GroupVersion().String()},
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(h.Now())},
			Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(x.User)},
		}), nil
	}
	return h.tokenReview(x, data)
}

func userInfo(u registry.User) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
}

func (h *Handler) accessReview(x *Exchange, res *catalog.Resource, data []byte) (*Answer, error) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	resource, path := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes
	if (resource == nil) == (path == nil) {
		text, value := "exactly one of nonResourceAttributes or resourceAttributes must be specified", field.NewPath("spec.resourceAttributes")
		if resource != nil {
			text = "cannot be specified in combination with resourceAttributes"
			value = field.NewPath("spec.nonResourceAttributes")
		}
		return nil, apierrors.NewInvalid(res.GVK().GroupKind(), "", field.ErrorList{field.Invalid(value, path, text)})
	}
	review.Status = h.may(x.User, resource, path)
	return JSON(http.StatusCreated, review), nil
}

func (h *Handler) subjectReview(data []byte) (*Answer, error) {
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	user := registry.User{Name: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups}
	review.Status = h.may(user, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	return JSON(http.StatusCreated, review), nil
}

func (h *Handler) may(user registry.User, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	var t Target
	switch {
	case resource != nil:
		t = Target{
			IsResource: true, Verb: resource.Verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
			Subresource: resource.Subresource, Namespace: resource.Namespace, Name: resource.Name,
		}
	case path != nil:
		t = Target{Verb: path.Verb, Path: path.Path}
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: h.Authorize == nil || h.Authorize.May(user, t)}
}

func (h *Handler) rulesReview(x *Exchange, data []byte) (*Answer, error) {
	var review authorizationv1.SelfSubjectRulesReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if review.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	all := []string{"*"}
	review.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
	if rules, ok := h.Authorize.(RulesOf); ok {
		review.Status = rules.Rules(x.User, review.Spec.Namespace)
	}
	return JSON(http.StatusCreated, review), nil
}

func (h *Handler) tokenReview(x *Exchange, data []byte) (*Answer, error) {
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r := x.Request.Clone(x.Request.Context())
	r.Header = http.Header{"Authorization": {"Bearer " + review.Spec.Token}}
	if user, ok := h.Authenticate(r); ok {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: userInfo(user)}
	}
	return JSON(http.StatusCreated, review), nil
}
