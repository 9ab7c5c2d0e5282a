package conformance

import (
	"net/http"
	"testing"
)

const racksPath = "/apis/$GROUP/v1/namespaces/$NS/racks"

// rack is a rack as one writes it.
func rack(name, spec string) string {
	return `{"apiVersion":"$GROUP/v1","kind":"Rack","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
}

// scaleBody is the scale of a, as one writes it.
func scaleBody(more, spec string) string {
	return `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"` + more + `},"spec":` + spec + `}`
}

// owner is the fields that a manager owns by a subresource, in JSON.
func (o object) owner(subresource string) string {
	list, _ := o.at("metadata", "managedFields").([]any)
	for _, m := range list {
		if entry, _ := m.(map[string]any); entry["subresource"] == subresource {
			return object(entry).text("operation") + " " + object(entry).text("apiVersion") + " " + object{"f": entry["fieldsV1"]}.json()
		}
	}
	return ""
}

var scale = []behaviour{
	{"A scale is a view of the object", func(t *testing.T, e *env) {
		e.post(t, racksPath, rack("a", `{"deep":{"count":3}}`))
		o := e.merge(t, racksPath+"/a/status", `{"status":{"count":2,"selector":"a=b"}}`)
		got := e.get(t, racksPath+"/a/scale")
		e.same(t, "it", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"$NS","uid":"x","resourceVersion":"1","creationTimestamp":"x"},
			"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}}`, got)
		if got.version() != o.version() || got.text("metadata", "uid") != o.text("metadata", "uid") {
			t.Errorf("of another object: %s", got.json())
		}
	}},
	{"A scale without a number is told as such, and can be given one", func(t *testing.T, e *env) {
		e.post(t, racksPath, rack("a", `{"note":"x"}`))
		e.refused(t, request{method: http.MethodGet, path: racksPath + "/a/scale"}, 500,
			failure(500, "InternalError", `Internal error occurred: the spec replicas field ".spec.deep.count" does not exist`,
				`{"causes":[{"message":"the spec replicas field \".spec.deep.count\" does not exist"}]}`))
		e.refused(t, request{method: http.MethodPatch, path: racksPath + "/a/scale", contentType: mergePatch, body: `{}`}, 400,
			failure(400, "BadRequest", `the spec replicas field ".spec.deep.count" cannot be empty`, ``))
		if got := e.merge(t, racksPath+"/a/scale", `{"spec":{"replicas":4}}`); got.text("spec", "replicas") != "4" {
			t.Errorf("%s", got.json())
		}
	}},
	{"A patch of the scale changes the number alone, and counts as a change of the object", func(t *testing.T, e *env) {
		e.post(t, racksPath, rack("a", `{"note":"x","deep":{"count":3}}`))
		got := e.merge(t, racksPath+"/a/scale", `{"metadata":{"labels":{"l":"1"}},"spec":{"replicas":5},"status":{"replicas":7}}`)
		if got.text("kind") != "Scale" || got.text("spec", "replicas") != "5" || got.text("status", "replicas") != "0" {
			t.Errorf("%s", got.json())
		}
		o := e.get(t, racksPath+"/a")
		e.same(t, "the object", `{"apiVersion":"$GROUP/v1","kind":"Rack","metadata":{"name":"a","namespace":"$NS","generation":2,"uid":"x","resourceVersion":"1","creationTimestamp":"x"},
			"spec":{"note":"x","deep":{"count":5}}}`, o)
		if again := e.merge(t, racksPath+"/a/scale", `{"spec":{"replicas":5}}`); again.version() != o.version() {
			t.Error("the same number makes a new version")
		}
		got = e.granted(t, request{method: http.MethodPatch, path: racksPath + "/a/scale", contentType: jsonPatch, body: `[{"op":"replace","path":"/spec/replicas","value":6}]`})
		if got.text("spec", "replicas") != "6" {
			t.Errorf("a JSON patch: %s", got.json())
		}
	}},
	{"A PUT of the scale may say which version it is of", func(t *testing.T, e *env) {
		o := e.post(t, racksPath, rack("a", `{"deep":{"count":3}}`))
		got := e.must(t, http.MethodPut, racksPath+"/a/scale", scaleBody("", `{"replicas":8}`))
		if got.text("spec", "replicas") != "8" || got.version() == o.version() {
			t.Errorf("%s", got.json())
		}
		e.refused(t, request{method: http.MethodPut, path: racksPath + "/a/scale", body: scaleBody(`,"resourceVersion":"`+o.version()+`"`, `{"replicas":9}`)}, 409,
			failure(409, "Conflict", `Operation cannot be fulfilled on racks.$GROUP "a": the object has been modified; please apply your changes to the latest version and try again`,
				`{"name":"a","group":"$GROUP","kind":"racks"}`))
		e.must(t, http.MethodPut, racksPath+"/a/scale", scaleBody(`,"resourceVersion":"`+got.version()+`"`, `{}`))
		if now := e.get(t, racksPath+"/a"); now.text("spec", "deep", "count") != "0" {
			t.Errorf("%s", now.json())
		}
	}},
	{"A number that the object cannot have is refused at the scale and at the object", func(t *testing.T, e *env) {
		e.post(t, racksPath, rack("a", `{"deep":{"count":3}}`))
		e.refused(t, request{method: http.MethodPatch, path: racksPath + "/a/scale", contentType: mergePatch, body: `{"spec":{"replicas":-1}}`}, 422,
			failure(422, "Invalid", `Rack.$GROUP "a" is invalid: .spec.deep.count: Invalid value: -1: should be a non-negative integer`,
				`{"name":"a","group":"$GROUP","kind":"Rack","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -1: should be a non-negative integer","field":".spec.deep.count"}]}`))
		e.refused(t, request{method: http.MethodPost, path: racksPath, body: rack("b", `{"deep":{"count":-2}}`)}, 422,
			failure(422, "Invalid", `Rack.$GROUP "b" is invalid: .spec.deep.count: Invalid value: -2: should be a non-negative integer`,
				`{"name":"b","group":"$GROUP","kind":"Rack","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -2: should be a non-negative integer","field":".spec.deep.count"}]}`))
		e.refused(t, request{method: http.MethodPatch, path: racksPath + "/a/scale", contentType: mergePatch, body: `{"spec":{"replicas":100}}`}, 422,
			failure(422, "Invalid", `Rack.$GROUP "a" is invalid: spec.deep.count: Invalid value: 100: spec.deep.count in body should be less than or equal to 99`,
				`{"name":"a","group":"$GROUP","kind":"Rack","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 100: spec.deep.count in body should be less than or equal to 99","field":"spec.deep.count"}]}`))
	}},
	{"Who scales owns the number", func(t *testing.T, e *env) {
		e.post(t, racksPath, rack("a", `{"note":"x","deep":{"count":3}}`))
		e.merge(t, racksPath+"/a/scale", `{"spec":{"replicas":5}}`)
		o := e.get(t, racksPath+"/a")
		if got, want := o.owner("scale"), e.expand(`Update $GROUP/v1 {"f":{"f:spec":{"f:deep":{"f:count":{}}}}}`); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		apply := request{method: http.MethodPatch, path: racksPath + "/a/scale?fieldManager=other", contentType: applyPatch, body: scaleBody("", `{"replicas":7}`)}
		if a := e.do(t, apply); a.code != 409 {
			t.Errorf("an apply over it: %d %s", a.code, a.body)
		}
	}},
	{"There is no scale of what has none, nor of what is not there", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "/a/scale"}, 404,
			failure(404, "NotFound", `widgets.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"widgets"}`))
		e.refused(t, request{method: http.MethodPatch, path: racksPath + "/a/scale", contentType: mergePatch, body: `{"spec":{"replicas":1}}`}, 404,
			failure(404, "NotFound", `racks.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"racks"}`))
		e.refused(t, request{method: http.MethodDelete, path: racksPath + "/a/scale"}, 405,
			failure(405, "MethodNotAllowed", `delete is not supported on resources of kind "racks.$GROUP"`, `{"group":"$GROUP","kind":"racks"}`))
	}},
	{"A definition whose scale leads nowhere is refused", func(t *testing.T, e *env) {
		name := e.unique()
		body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x` + name + `.$GROUP"},
			"spec":{"group":"$GROUP","scope":"Namespaced","names":{"plural":"x` + name + `","kind":"X` + name + `"},
			"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".status.n","statusReplicasPath":".spec.n","labelSelectorPath":".other"}},
			"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
		a := e.do(t, request{method: http.MethodPost, path: definitionsPath, body: body})
		if a.code != 422 {
			t.Fatalf("%d %s", a.code, a.body)
		}
		causes, _ := a.object(t).at("details", "causes").([]any)
		got := map[string]string{}
		for _, c := range causes {
			o := object(c.(map[string]any))
			got[o.text("field")] = o.text("message")
		}
		// Where all versions have one set of subresources, the real server keeps it once.
		for path, want := range map[string]string{
			"specReplicasPath":   `Invalid value: ".status.n": should be a json path under .spec`,
			"statusReplicasPath": `Invalid value: ".spec.n": should be a json path under .status`,
			"labelSelectorPath":  `Invalid value: ".other": should be a json path under either .spec or .status`,
		} {
			if message := got["spec.subresources.scale."+path]; message != want {
				t.Errorf("%s: %q, want %q, in %v", path, message, want, got)
			}
		}
	}},
}
