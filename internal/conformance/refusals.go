package conformance

import (
	"net/http"
	"testing"
)

var refusals = []behaviour{
	{"What exists already is refused", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: widget("a", `{}`)}, 409,
			failure(409, "AlreadyExists", `widgets.$GROUP "a" already exists`, `{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
	{"A path that is none is not found", func(t *testing.T, e *env) {
		for _, path := range []string{"/apis/$GROUP/v1/namespaces/$NS/nothings", "/nothing"} {
			if a := e.do(t, request{method: http.MethodGet, path: path}); a.code != http.StatusNotFound || string(a.body) != "404 page not found\n" {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		e.refused(t, request{method: http.MethodGet, path: "/api/v1/namespaces/$NS/nothings"}, 404,
			failure(404, "NotFound", "the server could not find the requested resource", `{}`))
	}},
	{"A method that is none is not allowed", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPut, path: widgetsPath, body: `{}`}, 400, failure(400, "BadRequest", "name must be provided", ""))
		e.refused(t, request{method: http.MethodPut, path: configMaps, body: `{}`}, 405,
			failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", `{}`))
	}},
	{"An object of another kind is a bad request", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`}, 400,
			failure(400, "BadRequest", "the API version in the data (v1) does not match the expected API version ($GROUP/v1)", ""))
	}},
	{"A body that is no JSON is a bad request", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"a`}, 400,
			failure(400, "BadRequest", "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input ({\"a)", ""))
	}},
	{"A body that says no kind takes that of the path where it is built in, and is refused where it is custom", func(t *testing.T, e *env) {
		if got := e.post(t, configMaps, `{"metadata":{"name":"a"}}`); got.text("kind") != "ConfigMap" {
			t.Errorf("%s", got.json())
		}
		const body = `{"metadata":{"name":"a"}}`
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: body}, 400,
			failure(400, "BadRequest", "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '"+body+"' ("+body+")", ""))
	}},
	{"A body of an unknown type is not supported", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPost, path: widgetsPath, body: `x`, contentType: "text/odd"})
		if o := a.object(t); a.code != http.StatusUnsupportedMediaType || o.text("reason") != "UnsupportedMediaType" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"An answer of an unknown type is not acceptable", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodGet, path: widgetsPath, accept: "text/odd"})
		if o := a.object(t); a.code != http.StatusNotAcceptable || o.text("reason") != "NotAcceptable" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"An object for another namespace is a bad request", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"other"}}`}, 400,
			failure(400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request", ""))
	}},
	{"An object for another name is a bad request", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		e.refused(t, request{method: http.MethodPut, path: widgetsPath + "/a", body: widget("b", `{}`)}, 400,
			failure(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)", ""))
	}},
	{"A namespace that is not there has no objects made in it", func(t *testing.T, e *env) {
		want := failure(404, "NotFound", `namespaces "$NS-none" not found`, `{"name":"$NS-none","kind":"namespaces"}`)
		e.refused(t, request{method: http.MethodPost, path: "/apis/$GROUP/v1/namespaces/$NS-none/widgets", body: widget("a", `{}`)}, 404, want)
		e.refused(t, request{method: http.MethodPost, path: "/api/v1/namespaces/$NS-none/configmaps", body: configMap("a", `{}`)}, 404, want)
	}},
}
