package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	structural "github.com/tetherkube/tether/internal/apiserver/schema"
)

// Resource is what a document says of one resource.
type Resource struct {
	schema.GroupVersionKind
	Plural     string
	Namespaced bool
	Status     bool // it has the subresource
	// Schema is that of a custom resource. Nil is for a type that client-go knows,
	// and for a custom resource of which nothing is known, according to Custom.
	Schema *structural.Structural
	// Custom is for a resource that a CRD defines.
	Custom bool
}

// Document is the document of one group and version, as JSON.
func Document(gv schema.GroupVersion, resources []Resource) ([]byte, error) {
	schemas, err := Schemas(resources)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, r := range resources {
		maps.Copy(all, paths(r))
	}
	title := "Kubernetes"
	if slices.ContainsFunc(resources, func(r Resource) bool { return r.Custom }) {
		title = "Kubernetes CRD Swagger"
	}
	return json.Marshal(map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": title, "version": gv.Version},
		"paths":      all,
		"components": map[string]any{"schemas": schemas},
	})
}

// Key is where a group and version stands in the index: "api/v1", or
// "apis/apps/v1". Its document is served at "/openapi/v3/" and the key.
func Key(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// Hash is what a client knows a version of a document by: the server answers
// with it as ETag, and a request that has another one in its query is redirected.
func Hash(document []byte) string { return fmt.Sprintf("%X", sha512.Sum512(document)) }

// Index is what is served at /openapi/v3: where each document is, by its [Key].
func Index(documents map[string][]byte) ([]byte, error) {
	type location struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	index := map[string]location{}
	for key, document := range documents {
		index[key] = location{"/openapi/v3/" + key + "?hash=" + Hash(document)}
	}
	return json.Marshal(map[string]any{"paths": index})
}

// Schemas are the schemas of resources, and of all that they refer to, by name.
func Schemas(resources []Resource) (map[string]*spec.Schema, error) {
	d := definitions{}
	for _, r := range resources {
		switch {
		case r.Custom:
			d.custom(r)
		default:
			obj, err := clientscheme.Scheme.New(r.GroupVersionKind)
			if err != nil {
				return nil, fmt.Errorf("the type of %s is not known: %w", r.GroupVersionKind, err)
			}
			d.builtIn(r, obj)
		}
	}
	return d, nil
}

// customName is the name of a custom resource's schema.
func customName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

const refPrefix = "#/components/schemas/"

// refTo is a schema that is the one of the name.
func refTo(name string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(refPrefix + name)}}
}

// described is a schema that is the one of the name, with words of its own. A
// reference alone may have none.
func described(name, description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Description: description, AllOf: []spec.Schema{refTo(name)}}}
}
