package endpoint

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Target is what a request is about.
type Target struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection;
	// for a path that is no resource the method in lower case.
	Verb string
	// Path is the URL's.
	Path string
	// IsResource says that what follows is set.
	IsResource               bool
	Group, Version, Resource string
	Subresource              string
	Namespace, Name          string
	// Named is the name of an object to be created, where its body has one.
	Named string
}

// parse reads a request's path as the real server does.
func parse(r *http.Request) Target {
	t := Target{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t
	}
	t.IsResource = true
	watching := false
	if parts[0] == "watch" && len(parts) > 1 {
		watching, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		t.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.Name = parts[1]
	}
	if len(parts) > 2 {
		t.Subresource = strings.Join(parts[2:], "/")
	}
	t.Verb = verb(r.Method, r.URL.Query(), t.Name, watching)
	if t.Name == "" && (t.Verb == "list" || t.Verb == "watch" || t.Verb == "deletecollection") {
		if s, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector")); err == nil {
			if name, exact := s.RequiresExactMatch("metadata.name"); exact {
				t.Name = name
			}
		}
	}
	return t
}

func verb(method string, query url.Values, name string, watching bool) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		w := query.Get("watch")
		switch {
		case watching, w == "true", w == "1":
			return "watch"
		case name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(method)
}
