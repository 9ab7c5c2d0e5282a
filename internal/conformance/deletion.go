package conformance

import (
	"net/http"
	"testing"
)

const withFinalizer = `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","finalizers":["example.com/f"]},"spec":{"size":1}}`

var deletion = []behaviour{
	{"A deleted object is gone, and the answer says which it was", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{}`))
		got := e.delete(t, widgetsPath+"/a")
		e.same(t, "the answer", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"$GROUP","kind":"widgets","uid":"x"}}`, got)
		if got.text("details", "uid") != o.uid() {
			t.Errorf("uid %s, want %s", got.text("details", "uid"), o.uid())
		}
		notFound := failure(404, "NotFound", `widgets.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"widgets"}`)
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "/a"}, 404, notFound)
		e.refused(t, request{method: http.MethodDelete, path: widgetsPath + "/a"}, 404, notFound)
	}},
	{"An object with finalizers stays until the last has gone", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, withFinalizer)
		w := e.watch(t, widgetsPath+"?resourceVersion="+e.get(t, widgetsPath).version())
		got := e.delete(t, widgetsPath+"/a")
		e.same(t, "the answer", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"$NS","generation":2,"uid":"x","resourceVersion":"1","creationTimestamp":"x",
			"deletionTimestamp":"x","deletionGracePeriodSeconds":0,"finalizers":["example.com/f"]},"spec":{"size":1,"color":"red"}}`, got)
		again := e.delete(t, widgetsPath+"/a")
		if again.version() != got.version() || again.text("metadata", "deletionTimestamp") != got.text("metadata", "deletionTimestamp") {
			t.Errorf("deleted again: %s", again.json())
		}
		last := e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null},"spec":{"size":2}}`)
		if last.at("metadata", "finalizers") != nil || last.text("spec", "size") != "2" {
			t.Errorf("the last answer: %s", last.json())
		}
		w.wants(t, "MODIFIED a")
		ev := w.wants(t, "DELETED a")
		// What the last write changed besides is in its answer, and in no event.
		e.same(t, "the last event", got.json(), ev.Object)
		if number(t, ev.Object.version()) <= number(t, got.version()) {
			t.Errorf("the last event is of %s, after %s", ev.Object.version(), got.version())
		}
	}},
	{"No finalizer may be added to an object that is being deleted", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, withFinalizer)
		e.delete(t, widgetsPath+"/a")
		const cause = `{"reason":"FieldValueForbidden","message":"Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/g\"}","field":"metadata.finalizers"}` // the real server finds it twice
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{"metadata":{"finalizers":["example.com/f","example.com/g"]}}`}, 422,
			failure(422, "Invalid", `Widget.$GROUP "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/g"}`,
				`{"name":"a","group":"$GROUP","kind":"Widget","causes":[`+cause+`,`+cause+`]}`))
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"A finalizer without a domain is warned of", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","finalizers":["f"]}}`})
		if w := a.warnings(); a.code != http.StatusCreated || len(w) != 1 || w[0] != `metadata.finalizers: "f": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers` {
			t.Errorf("%d %q", a.code, w)
		}
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"A deletion may want a uid and a resourceVersion", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{}`))
		e.refused(t, request{method: http.MethodDelete, path: widgetsPath + "/a", body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"another"}}`}, 409,
			failure(409, "Conflict", `Operation cannot be fulfilled on Widget.$GROUP "a": the UID in the precondition (another) does not match the UID in record (`+o.uid()+`). The object might have been deleted and then recreated`,
				`{"name":"a","group":"$GROUP","kind":"Widget"}`))
		e.refused(t, request{method: http.MethodDelete, path: widgetsPath + "/a", body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"1"}}`}, 409,
			failure(409, "Conflict", `Operation cannot be fulfilled on Widget.$GROUP "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (`+o.version()+`). The object might have been modified`,
				`{"name":"a","group":"$GROUP","kind":"Widget"}`))
		e.must(t, http.MethodDelete, widgetsPath+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"`+o.uid()+`","resourceVersion":"`+o.version()+`"}}`)
	}},
	{"A deletion in the foreground puts a finalizer on", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, withFinalizer)
		got := e.must(t, http.MethodDelete, widgetsPath+"/a", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground"}`)
		e.same(t, "finalizers", `{"f":["example.com/f","foregroundDeletion"]}`, object{"f": got.at("metadata", "finalizers")})
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"A deletion that orphans puts a finalizer on", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, withFinalizer)
		got := e.must(t, http.MethodDelete, widgetsPath+"/a?propagationPolicy=Orphan", "")
		e.same(t, "finalizers", `{"f":["example.com/f","orphan"]}`, object{"f": got.at("metadata", "finalizers")})
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"A propagation policy that is none is refused", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		const message = `Unsupported value: \"Odd\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"`
		e.refused(t, request{method: http.MethodDelete, path: widgetsPath + "/a?propagationPolicy=Odd"}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,"message":"DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: `+message+`",
			"details":{"group":"meta.k8s.io","kind":"DeleteOptions","causes":[{"reason":"FieldValueNotSupported","message":"`+message+`","field":"propagationPolicy"}]}}`)
	}},
	{"A collection is deleted by its selector", func(t *testing.T, e *env) {
		for _, name := range []string{"a", "b"} {
			e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"`+name+`","labels":{"l":"`+name+`"}}}`)
		}
		got := e.delete(t, widgetsPath+"?labelSelector=l%3Da")
		if got.text("kind") != "WidgetList" || len(got.items()) != 1 || got.names()[0] != "a" {
			t.Errorf("the answer: %s", got.json())
		}
		if left := e.get(t, widgetsPath).names(); len(left) != 1 || left[0] != "b" {
			t.Errorf("left are %q", left)
		}
	}},
}
