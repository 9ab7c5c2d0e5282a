package endpoint

import (
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// Handler serves an API. It is safe for concurrent use; its fields do not change
// once it serves.
type Handler struct {
	// Store, Catalog and Registry are required.
	Store    *storage.Store
	Catalog  *catalog.Catalog
	Registry *registry.Registry
	// Now is the server's clock.
	Now func() time.Time
	// Authenticate finds the user of a request; false refuses it with 401.
	Authenticate func(*http.Request) (registry.User, bool)
	// Authorize says whether a user may; nil lets everyone do everything.
	Authorize Authorizer
	// Intercept stands around every request. next carries it out, at most once. A
	// nil answer cuts the connection.
	Intercept func(x *Exchange, next func() *Answer) *Answer
	// Tap says what becomes of each event of a watch [all are sent].
	Tap func(x *Exchange, e *storage.Event) Fate
	// Stir is a channel that is closed when Tap is to be asked again about a watch
	// on which nothing happens [never].
	Stir func() <-chan struct{}
	// Closing ends every watch once it is closed.
	Closing <-chan struct{}
	// BookmarkEvery is the time between bookmarks of a watch that wants them.
	BookmarkEvery time.Duration
	// WatchFor is how long a watch lasts that does not say; up to twice as long.
	WatchFor time.Duration

	openapi openapiCache
}

// longestBody is how much of a request's body is read.
const longestBody = 3 << 20

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{Request: r, Target: parse(r)}
	defer func() {
		if x.over != nil {
			x.over()
		}
	}()
	x.User, x.known = h.Authenticate(r)
	x.bodyErr = x.read()
	var a *Answer
	if h.Intercept == nil {
		a = h.answer(x)
	} else {
		a = h.Intercept(x, func() *Answer { return h.answer(x) })
	}
	if a == nil {
		panic(http.ErrAbortHandler)
	}
	x.send(w, a)
}

// Writes says whether the verb is one that changes something.
func (t Target) Writes() bool {
	switch t.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return t.IsResource
	}
	return false
}

// read reads the body of a request that writes.
func (x *Exchange) read() (err error) {
	if !x.Writes() {
		return nil
	}
	if x.Body, err = io.ReadAll(io.LimitReader(x.Request.Body, longestBody+1)); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if len(x.Body) > longestBody {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", longestBody))
	}
	return nil
}

// answer carries a request out.
func (h *Handler) answer(x *Exchange) *Answer {
	r := x.Request
	if refused := h.admit(x); refused != nil {
		return refused
	}
	if !x.IsResource {
		return h.document(x)
	}
	var err error
	if x.accepted, err = negotiate(r); err != nil {
		return Failure(err)
	}
	res := h.Catalog.Find(schema.GroupVersionResource{Group: x.Group, Version: x.Version, Resource: x.Resource})
	if missing := h.missing(res, x); missing != nil {
		return missing
	}
	if res.Warning != "" {
		x.warnings = append(x.warnings, res.Warning)
	}
	if x.bodyErr != nil {
		return Failure(x.bodyErr)
	}
	x.DryRun = r.URL.Query().Get("dryRun") == metav1.DryRunAll
	a, err := h.verb(x, res)
	if err != nil {
		return Failure(err)
	}
	return a
}

// missing is the answer where nothing is served at a path; nil where something is.
// What is built in says so in another way than what definitions make.
func (h *Handler) missing(res *catalog.Resource, x *Exchange) *Answer {
	switch {
	case res == nil && h.Catalog.BuiltIn(x.Group, x.Version):
		return Failure(registry.NoSuchPath())
	case res == nil:
		return Text(http.StatusNotFound, "404 page not found\n")
	case h.fits(res, x):
	case !res.Custom:
		return Failure(registry.NoSuchPath())
	case x.Subresource != "" && res.Namespaced == (x.Namespace != ""):
		return Failure(apierrors.NewNotFound(res.GroupResource(), x.Name))
	default:
		return Text(http.StatusNotFound, "404 page not found\n")
	}
	if x.Name == "" && (x.Verb == "update" || x.Verb == "patch") {
		if res.Custom {
			return Failure(apierrors.NewBadRequest("name must be provided"))
		}
		return Failure(methodNotAllowed())
	}
	return nil
}

// methodNotAllowed is what the real server's router says.
func methodNotAllowed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// fits says whether a resource is served at a path of that form.
func (h *Handler) fits(res *catalog.Resource, x *Exchange) bool {
	if res.Namespaced && x.Namespace == "" && x.Verb != "list" && x.Verb != "watch" && x.Verb != "deletecollection" {
		return false
	}
	if !res.Namespaced && x.Namespace != "" && res.Table != catalog.Namespaces {
		return false
	}
	switch x.Subresource {
	case "":
		return true
	case "status":
		return res.Status
	case "finalize":
		return res.Finalize
	case "scale":
		return res.Scale != nil
	}
	return false
}

// verb does what the request asks of a resource.
func (h *Handler) verb(x *Exchange, res *catalog.Resource) (*Answer, error) {
	if res.ReadOnly {
		return h.review(x, res)
	}
	notAllowed := apierrors.NewMethodNotSupported(res.GroupResource(), x.Verb)
	if x.Subresource != "" && x.Verb != "get" && x.Verb != "update" && (x.Verb != "patch" || x.Subresource == "finalize") {
		return nil, notAllowed
	}
	switch x.Verb {
	case "get":
		return h.get(x, res)
	case "list":
		return h.list(x, res)
	case "watch":
		return h.watch(x, res)
	case "create":
		if x.Name != "" {
			return nil, notAllowed
		}
		return h.create(x, res)
	case "update":
		return h.update(x, res)
	case "patch":
		return h.patch(x, res)
	case "delete":
		return h.delete(x, res)
	case "deletecollection":
		if res.Table == catalog.Namespaces {
			return nil, notAllowed
		}
		return h.deleteCollection(x, res)
	}
	return nil, notAllowed
}
