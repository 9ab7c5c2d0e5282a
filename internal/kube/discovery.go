package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Served is what the API server says of a resource.
type Served struct {
	Found      bool
	Kind       string
	Namespaced bool
	Status     bool // there is a status subresource
}

// Discover asks whether the API server serves the resource. That it does not is
// no error.
func (c *Client[T]) Discover(ctx context.Context) (Served, error) {
	r := c.Resource
	path := "/apis/" + r.GroupVersion.String()
	if r.GroupVersion.Group == "" {
		path = "/api/" + r.GroupVersion.Version
	}
	raw, err := c.rest.Get().AbsPath(path).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return Served{}, nil
	}
	if err != nil {
		return Served{}, fmt.Errorf("discovery of %s: %w", r.GroupVersion, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return Served{}, fmt.Errorf("discovery of %s: %w", r.GroupVersion, err)
	}
	var s Served
	for _, a := range list.APIResources {
		switch a.Name {
		case r.Plural:
			s.Found, s.Kind, s.Namespaced = true, a.Kind, a.Namespaced
		case r.Plural + "/status":
			s.Status = true
		}
	}
	return s, nil
}
