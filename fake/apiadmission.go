package fake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/registry"
)

// APIWrite is a write that an [APIAdmission] is asked about.
type APIWrite struct {
	// Operation is CREATE, UPDATE or DELETE.
	Operation   string
	Resource    schema.GroupVersionResource
	Subresource string // status, or empty
	User        string
	DryRun      bool
	// Object is what is to be stored, and may be changed; nil for a deletion.
	Object *unstructured.Unstructured
	// Old is what is stored; nil for a creation.
	Old *unstructured.Unstructured
}

// APIAdmission may change a write's object, or refuse the write with an error. An
// error that is an API status is answered as it is, and any other as 403
// Forbidden. It may be called more than once for a write, by several goroutines,
// and must not call the server.
type APIAdmission func(APIWrite) error

func (s *APIServer) admissions() []registry.Admission {
	var all []registry.Admission
	for _, admit := range s.options.Admission {
		all = append(all, func(a *registry.Admitted) error {
			return admit(APIWrite{
				Operation: a.Operation, Resource: a.Resource, Subresource: a.Subresource, User: a.User.Name, DryRun: a.DryRun,
				Object: a.Object, Old: a.Old,
			})
		})
	}
	return all
}

// authenticate finds the user of a request by its token.
func (s *APIServer) authenticate(r *http.Request) (registry.User, bool) {
	admin := registry.User{Name: "kubernetes-admin", Groups: []string{"system:masters", "system:authenticated"}}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if len(s.options.Users) == 0 || bearer && token == s.admin {
		return admin, true
	}
	if !bearer {
		return registry.User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}, true
	}
	u, ok := s.options.Users[token]
	return registry.User{Name: u.Name, Groups: append(slices.Clone(u.Groups), "system:authenticated")}, ok
}

// plant creates what the options have: definitions first, then namespaces.
func (s *APIServer) plant() error {
	var objects []catalog.Object
	for i, text := range s.options.Manifests {
		found, err := documents(text)
		if err != nil {
			return fmt.Errorf("field Manifests[%d]: %w", i, err)
		}
		objects = append(objects, found...)
	}
	for i, o := range s.options.Objects {
		obj, err := catalog.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("field Objects[%d]: %w", i, err)
		}
		objects = append(objects, obj)
	}
	rank := func(o catalog.Object) int {
		return slices.Index([]string{"Namespace", "CustomResourceDefinition"}, fmt.Sprint(o["kind"]))
	}
	slices.SortStableFunc(objects, func(a, b catalog.Object) int { return rank(b) - rank(a) })
	for _, obj := range objects {
		if err := s.create(obj); err != nil {
			return err
		}
	}
	return nil
}

// documents are the objects of a YAML text.
func documents(text string) (found []catalog.Object, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		var obj catalog.Object
		switch err := decoder.Decode(&obj); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case obj != nil:
			found = append(found, obj)
		}
	}
}

// create makes an object as an administrator would.
func (s *APIServer) create(obj catalog.Object) error {
	u := &unstructured.Unstructured{Object: obj}
	name := fmt.Sprintf("%s %s", u.GetKind(), u.GetName())
	res := s.handler.Catalog.ByKind(u.GroupVersionKind())
	if res == nil {
		return fmt.Errorf("%s: the server has no resource of the kind %s", name, u.GroupVersionKind())
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	q := &registry.Request{Resource: res, Namespace: u.GetNamespace(), Manager: "fake", User: registry.User{Name: "kubernetes-admin"}}
	if res.Namespaced && q.Namespace == "" {
		q.Namespace = "default"
	}
	read, err := q.Read(runtime.ContentTypeJSON, data)
	if err == nil {
		_, err = s.registry.Create(q, read)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
