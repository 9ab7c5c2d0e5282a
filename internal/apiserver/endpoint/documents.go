package endpoint

import (
	"net/http"
	"runtime"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/openapi"
)

// info is what the server says it is: the one whose behaviour it has.
func info() version.Info {
	return version.Info{
		Major: "1", Minor: "37", EmulationMajor: "1", EmulationMinor: "37", MinCompatibilityMajor: "1", MinCompatibilityMinor: "36",
		GitVersion: "v1.37.2+fake", GitTreeState: "clean", Compiler: runtime.Compiler, GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// document answers what is no resource: discovery, OpenAPI, version, health.
func (h *Handler) document(x *Exchange) *Answer {
	if x.Request.Method != http.MethodGet && x.Request.Method != http.MethodHead {
		return Text(http.StatusNotFound, "404 page not found\n")
	}
	path := strings.TrimSuffix(x.Path, "/")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == "/version":
		return JSON(http.StatusOK, info())
	case path == "/livez", path == "/readyz", path == "/healthz", strings.HasPrefix(path, "/livez/"), strings.HasPrefix(path, "/readyz/"):
		return h.health(x, strings.TrimPrefix(parts[0], "/"))
	case path == "/openapi/v3":
		return h.openapiIndex()
	case strings.HasPrefix(path, "/openapi/v3/"):
		return h.openapiDocument(x, strings.TrimPrefix(path, "/openapi/v3/"))
	case parts[0] == "api" || parts[0] == "apis":
		return h.discovery(x, parts)
	}
	if path == "" {
		return JSON(http.StatusOK, metav1.RootPaths{Paths: []string{"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"}})
	}
	return Text(http.StatusNotFound, "404 page not found\n")
}

func (h *Handler) health(x *Exchange, check string) *Answer {
	if _, verbose := x.Request.URL.Query()["verbose"]; verbose {
		return Text(http.StatusOK, "[+]ping ok\n"+check+" check passed\n")
	}
	return Text(http.StatusOK, "ok")
}

func (h *Handler) discovery(x *Exchange, parts []string) *Answer {
	a, err := negotiate(x.Request)
	if err != nil {
		return Failure(err)
	}
	var found any
	switch {
	case len(parts) == 1 && a.discovery:
		body := JSON(http.StatusOK, h.Catalog.Aggregated(parts[0] == "api"))
		body.Header.Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		body.Header.Set("Vary", "Accept")
		return body
	case len(parts) == 1 && parts[0] == "api":
		found = &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: x.Request.Host}},
		}
	case len(parts) == 1:
		found = h.Catalog.Groups()
	case len(parts) == 2 && parts[0] == "api":
		if list := h.Catalog.Resources("", parts[1]); list != nil {
			found = list
		}
	case len(parts) == 2:
		if g := h.Catalog.Group(parts[1]); g != nil {
			found = g
		}
	case len(parts) == 3 && parts[0] == "apis":
		if list := h.Catalog.Resources(parts[1], parts[2]); list != nil {
			found = list
		}
	}
	if found == nil {
		return Text(http.StatusNotFound, "404 page not found\n")
	}
	return JSON(http.StatusOK, found)
}

// openapiCache keeps the documents until the catalog changes. The zero value is
// ready.
type openapiCache struct {
	mu        sync.Mutex // guards what follows
	changes   uint64
	documents map[string][]byte
}

// documents are made once for each change of the catalog.
func (h *Handler) documents() (map[string][]byte, error) {
	c := &h.openapi
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := h.Catalog.Changes()
	if c.documents != nil && c.changes == changes {
		return c.documents, nil
	}
	byVersion := map[schema.GroupVersion][]openapi.Resource{}
	for _, r := range h.Catalog.All() {
		gv := r.GroupVersion()
		byVersion[gv] = append(byVersion[gv], openapi.Resource{
			GroupVersionKind: r.GVK(), Plural: r.Plural, Namespaced: r.Namespaced, Status: r.Status,
			Schema: r.Structure(), Custom: r.Custom || r.Table == catalog.Definitions,
		})
	}
	made := map[string][]byte{}
	for gv, resources := range byVersion {
		doc, err := openapi.Document(gv, resources)
		if err != nil {
			return nil, err
		}
		made[openapi.Key(gv)] = doc
	}
	c.documents, c.changes = made, changes
	return made, nil
}

func (h *Handler) openapiIndex() *Answer {
	docs, err := h.documents()
	if err != nil {
		return Failure(apierrors.NewInternalError(err))
	}
	index, err := openapi.Index(docs)
	if err != nil {
		return Failure(apierrors.NewInternalError(err))
	}
	return raw(http.StatusOK, index)
}

func (h *Handler) openapiDocument(x *Exchange, key string) *Answer {
	docs, err := h.documents()
	if err != nil {
		return Failure(apierrors.NewInternalError(err))
	}
	doc, ok := docs[key]
	if !ok {
		return Text(http.StatusNotFound, "404 page not found\n")
	}
	hash := openapi.Hash(doc)
	if asked := x.Request.URL.Query().Get("hash"); asked != "" && asked != hash {
		a := Text(http.StatusMovedPermanently, "")
		a.Header.Set("Location", "/openapi/v3/"+key+"?hash="+hash)
		return a
	}
	a := raw(http.StatusOK, doc)
	a.Header.Set("ETag", `"`+hash+`"`)
	return a
}
