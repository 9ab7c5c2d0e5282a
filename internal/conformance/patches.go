package conformance

import (
	"net/http"
	"testing"
)

var patches = []behaviour{
	{"A merge patch sets, replaces lists, and removes by null", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1,"list":["x","y"],"free":{"a":1,"b":{"c":1}},"port":"http"}`))
		got := e.merge(t, widgetsPath+"/a", `{"spec":{"size":2,"list":["z"],"free":{"a":null,"b":{"d":2}},"port":80}}`)
		e.same(t, "spec", `{"size":2,"color":"red","list":["z"],"free":{"b":{"c":1,"d":2}},"port":80}`, object(got.at("spec").(map[string]any)))
	}},
	{"A JSON patch does what it says, in order", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1,"list":["x","y"]}`))
		got := e.granted(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: jsonPatch, body: `[
			{"op":"test","path":"/spec/size","value":1},{"op":"replace","path":"/spec/size","value":2},{"op":"add","path":"/spec/list/1","value":"n"},
			{"op":"remove","path":"/spec/list/0"},{"op":"copy","from":"/spec/list/0","path":"/spec/note"},{"op":"add","path":"/metadata/labels","value":{"a/b":"c"}},
			{"op":"replace","path":"/metadata/labels/a~1b","value":"d"}]`})
		e.same(t, "spec", `{"size":2,"color":"red","list":["n","y"],"note":"n","labels":{"a/b":"d"}}`, object(got.at("spec").(map[string]any)).set(got.at("metadata", "labels"), "labels"))
	}},
	{"A JSON patch that cannot be done is Invalid", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: jsonPatch, body: `[{"op":"remove","path":"/spec/nothing"}]`}, 422,
			failure(422, "Invalid", "the server rejected our request due to an error in our request", `{}`))
	}},
	{"A patch that is no patch is a bad request", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		a := e.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: jsonPatch, body: `{"spec":1}`})
		if a.code != http.StatusBadRequest || a.object(t).text("reason") != "BadRequest" {
			t.Errorf("a JSON patch: %d %s", a.code, a.body)
		}
		a = e.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{"spec":`})
		if a.code != http.StatusBadRequest {
			t.Errorf("a merge patch: %d %s", a.code, a.body)
		}
	}},
	{"A strategic patch of a custom resource is not supported", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: strategic, body: `{"spec":{"size":2}}`}, 415,
			failure(415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", ""))
	}},
	{"A patch of an unknown kind is not supported", func(t *testing.T, e *env) {
		e.post(t, configMaps, configMap("a", `{}`))
		e.refused(t, request{method: http.MethodPatch, path: configMaps + "/a", contentType: jsonType, body: `{}`}, 415,
			failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", `{}`))
	}},
	{"A strategic patch merges lists by their keys", func(t *testing.T, e *env) {
		const services = "/api/v1/namespaces/$NS/services"
		e.post(t, services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`)
		got := e.granted(t, request{
			method: http.MethodPatch, path: services + "/s", contentType: strategic,
			body: `{"spec":{"ports":[{"name":"aa","port":80},{"$patch":"delete","port":81},{"name":"c","port":82}]}}`,
		})
		var names []any
		for _, p := range got.at("spec", "ports").([]any) {
			names = append(names, object(p.(map[string]any)).text("name")+object(p.(map[string]any)).text("port"))
		}
		e.same(t, "ports", `{"names":["aa80","c82"]}`, object{"names": names})
	}},
	{"A patch cannot change what an object is", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{"metadata":{"name":"b"}}`}, 400,
			failure(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)", ""))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{"metadata":{"namespace":"b"}}`}, 400,
			failure(400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request", ""))
		got := e.merge(t, widgetsPath+"/a", `{"metadata":{"creationTimestamp":null,"generation":9,"selfLink":"x"}}`)
		if got.text("metadata", "generation") != "1" || got.text("metadata", "creationTimestamp") != o.text("metadata", "creationTimestamp") || got.version() != o.version() {
			t.Errorf("%s", got.json())
		}
	}},
	{"A patch of what is not there is not found", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{}`}, 404,
			failure(404, "NotFound", `widgets.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
	{"Forcing is for apply patches alone", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		const message = "Forbidden: may not be specified for non-apply patch"
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?force=true", contentType: mergePatch, body: `{}`}, 422,
			failure(422, "Invalid", `PatchOptions.meta.k8s.io "" is invalid: force: `+message,
				`{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueForbidden","message":"`+message+`","field":"force"}]}`))
	}},
}

// applied makes a server-side apply.
func (e *env) applied(t *testing.T, path, manager, body string) object {
	t.Helper()
	return e.granted(t, request{method: http.MethodPatch, path: path + "?fieldManager=" + manager, body: body, contentType: applyPatch})
}

var apply = []behaviour{
	{"An apply makes the object, and says who owns what", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=one", contentType: applyPatch, body: widget("a", `{"size":1,"rows":[{"key":"k","value":"v"}],"tags":["x"]}`)})
		if a.code != http.StatusCreated {
			t.Errorf("%d", a.code)
		}
		o := a.object(t)
		entries, _ := o.at("metadata", "managedFields").([]any)
		if len(entries) != 1 {
			t.Fatalf("%s", o.json())
		}
		e.same(t, "managed fields", `{"manager":"one","operation":"Apply","apiVersion":"$GROUP/v1","time":"x","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:rows":{"k:{\"key\":\"k\"}":{".":{},"f:key":{},"f:value":{}}},"f:size":{},"f:tags":{"v:\"x\"":{}}}}}`,
			entries[0].(map[string]any))
		if got := e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1,"rows":[{"key":"k","value":"v"}],"tags":["x"]}`)); got.version() != o.version() {
			t.Errorf("the same again: %s after %s", got.version(), o.version())
		}
	}},
	{"An apply removes what its manager owned and no longer says", func(t *testing.T, e *env) {
		e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1,"note":"x","rows":[{"key":"k","value":"v"},{"key":"l"}]}`))
		e.applied(t, widgetsPath+"/a", "two", widget("a", `{"rows":[{"key":"m"}]}`))
		got := e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1,"rows":[{"key":"l"}]}`))
		e.same(t, "spec", `{"size":1,"color":"red","rows":[{"key":"l"},{"key":"m"}]}`, object(got.at("spec").(map[string]any)))
	}},
	{"An apply of what another owns is a conflict, unless it is forced", func(t *testing.T, e *env) {
		e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1,"note":"x"}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=two", contentType: applyPatch, body: widget("a", `{"size":2,"note":"y"}`)}, 409,
			failure(409, "Conflict", "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.note\n- .spec.size",
				`{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"one\"","field":".spec.note"},{"reason":"FieldManagerConflict","message":"conflict with \"one\"","field":".spec.size"}]}`))
		got := e.granted(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=two&force=true", contentType: applyPatch, body: widget("a", `{"size":2}`)})
		if got.text("spec", "size") != "2" || got.text("spec", "note") != "x" {
			t.Errorf("%s", got.json())
		}
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=one", contentType: applyPatch, body: widget("a", `{"size":3}`)}, 409,
			failure(409, "Conflict", `Apply failed with 1 conflict: conflict with "two": .spec.size`, `{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"two\"","field":".spec.size"}]}`))
	}},
	{"An apply of what an update wrote is a conflict", func(t *testing.T, e *env) {
		e.post(t, widgetsPath+"?fieldManager=person", widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=two", contentType: applyPatch, body: widget("a", `{"size":2}`)}, 409,
			failure(409, "Conflict", `Apply failed with 1 conflict: conflict with "person" using $GROUP/v1: .spec.size`,
				`{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"person\" using $GROUP/v1","field":".spec.size"}]}`))
	}},
	{"An apply of the same value shares it", func(t *testing.T, e *env) {
		e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1}`))
		e.applied(t, widgetsPath+"/a", "two", widget("a", `{"size":1}`))
		got := e.applied(t, widgetsPath+"/a", "one", widget("a", `{}`))
		if got.text("spec", "size") != "1" {
			t.Errorf("%s", got.json())
		}
		got = e.applied(t, widgetsPath+"/a", "two", widget("a", `{}`))
		if got.at("spec", "size") != nil {
			t.Errorf("%s", got.json())
		}
	}},
	{"An apply needs a manager", func(t *testing.T, e *env) {
		const message = "Required value: is required for apply patch"
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: applyPatch, body: widget("a", `{}`)}, 422,
			failure(422, "Invalid", `PatchOptions.meta.k8s.io "" is invalid: fieldManager: `+message,
				`{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueRequired","message":"`+message+`","field":"fieldManager"}]}`))
	}},
	{"An apply must not carry managed fields", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=one", contentType: applyPatch, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","managedFields":[{"manager":"x","operation":"Apply","apiVersion":"$GROUP/v1"}]}}`}, 400,
			failure(400, "BadRequest", "metadata.managedFields must be nil", ""))
	}},
	{"An apply to the status owns the status alone", func(t *testing.T, e *env) {
		e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1}`))
		got := e.granted(t, request{
			method: http.MethodPatch, path: widgetsPath + "/a/status?fieldManager=st", contentType: applyPatch,
			body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":5},"status":{"phase":"Up","conditions":[{"type":"Ready","status":"True"}]}}`,
		})
		if got.text("spec", "size") != "1" || got.text("status", "phase") != "Up" {
			t.Errorf("%s", got.json())
		}
		var entry object
		for _, m := range got.at("metadata", "managedFields").([]any) {
			if o := object(m.(map[string]any)); o.text("manager") == "st" {
				entry = o
			}
		}
		e.same(t, "managed fields", `{"manager":"st","operation":"Apply","apiVersion":"$GROUP/v1","time":"x","fieldsType":"FieldsV1","subresource":"status",
			"fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}},"f:phase":{}}}}`, entry)
		gone := e.applied(t, widgetsPath+"/a", "one", widget("a", `{}`))
		if gone.text("status", "phase") != "Up" || gone.at("spec", "size") != nil {
			t.Errorf("%s", gone.json())
		}
	}},
	{"An apply of a ConfigMap merges its data by key", func(t *testing.T, e *env) {
		e.applied(t, configMaps+"/c", "one", configMap("c", `{"a":"1"}`))
		e.applied(t, configMaps+"/c", "two", configMap("c", `{"b":"2"}`))
		got := e.applied(t, configMaps+"/c", "one", configMap("c", `{"c":"3"}`))
		e.same(t, "data", `{"b":"2","c":"3"}`, object(got.at("data").(map[string]any)))
	}},
	{"Finalizers and owners are applied one by one", func(t *testing.T, e *env) {
		e.applied(t, widgetsPath+"/a", "one", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","finalizers":["example.com/one"]}}`)
		got := e.applied(t, widgetsPath+"/a", "two", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","finalizers":["example.com/two"]}}`)
		e.same(t, "finalizers", `{"f":["example.com/one","example.com/two"]}`, object{"f": got.at("metadata", "finalizers")})
		got = e.applied(t, widgetsPath+"/a", "one", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a"}}`)
		e.same(t, "finalizers", `{"f":["example.com/two"]}`, object{"f": got.at("metadata", "finalizers")})
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"An apply in YAML with the wrong name or kind is refused", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=one", contentType: applyPatch, body: "apiVersion: $GROUP/v1\nkind: Widget\nmetadata:\n  name: b\n"}, 400,
			failure(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)", ""))
	}},
}
