package endpoint

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/registry"
)

// Authorizer says whether a user may do something.
type Authorizer interface {
	May(registry.User, Target) bool
}

// admit lets a request in, or answers why not.
func (h *Handler) admit(x *Exchange) *Answer {
	if !x.known {
		return Failure(apierrors.NewUnauthorized("Unauthorized"))
	}
	if refused := h.impersonate(x); refused != nil {
		return refused
	}
	if h.Authorize == nil || h.Authorize.May(x.User, x.Target) {
		return nil
	}
	return Failure(Forbidden(x.User, x.Target))
}

// impersonate lets a request be of another user, where its own may do that.
func (h *Handler) impersonate(x *Exchange) *Answer {
	header := x.Request.Header
	as := header.Get("Impersonate-User")
	if as == "" {
		return nil
	}
	wanted := []Target{{IsResource: true, Verb: "impersonate", Version: "v1", Resource: "users", Name: as}}
	for _, g := range header.Values("Impersonate-Group") {
		wanted = append(wanted, Target{IsResource: true, Verb: "impersonate", Version: "v1", Resource: "groups", Name: g})
	}
	for _, t := range wanted {
		if h.Authorize != nil && !h.Authorize.May(x.User, t) {
			return Failure(Forbidden(x.User, t))
		}
	}
	x.User = registry.User{Name: as, Groups: append(header.Values("Impersonate-Group"), "system:authenticated")}
	return nil
}

var noHTML = strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;")

// Forbidden is the error of a user who may not.
func Forbidden(user registry.User, t Target) *apierrors.StatusError {
	var text string
	if !t.IsResource {
		text = fmt.Sprintf("User %q cannot %s path %q", user.Name, t.Verb, t.Path)
	} else {
		resource := t.Resource
		if t.Subresource != "" {
			resource += "/" + t.Subresource
		}
		text = fmt.Sprintf("User %q cannot %s resource %q in API group %q ", user.Name, t.Verb, resource, t.Group)
		if t.Namespace != "" {
			text += fmt.Sprintf("in the namespace %q", t.Namespace)
		} else {
			text += "at the cluster scope"
		}
	}
	err := apierrors.NewForbidden(schema.GroupResource{Group: t.Group, Resource: t.Resource}, t.Name, fmt.Errorf("%s", noHTML.Replace(text)))
	err.ErrStatus.Code = http.StatusForbidden
	return err
}
