package conformance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unknown is a widget with fields that nobody knows, one of them twice.
const unknown = `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","odd":1},"spec":{"size":1,"size":2,"odd":1,"rows":[{"key":"k","odd":1}],"free":{"any":1}},"odd":1}`

var validation = []behaviour{
	{"Unknown and duplicate fields are warned of, and dropped", func(t *testing.T, e *env) {
		for _, query := range []string{"", "?fieldValidation=Warn"} {
			a := e.do(t, request{method: http.MethodPost, path: widgetsPath + query, body: unknown})
			if diff := cmp.Diff([]string{
				`duplicate field "spec.size"`, `unknown field "metadata.odd"`, `unknown field "odd"`, `unknown field "spec.odd"`, `unknown field "spec.rows[0].odd"`,
			}, slices.Sorted(slices.Values(a.warnings()))); diff != "" {
				t.Errorf("%q: warnings (-want +got):\n%s", query, diff)
			}
			e.same(t, "it", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"$NS","generation":1,"uid":"x","resourceVersion":"1","creationTimestamp":"x"},
				"spec":{"size":2,"color":"red","rows":[{"key":"k"}],"free":{"any":1}}}`, a.object(t))
			e.delete(t, widgetsPath+"/a")
		}
	}},
	{"Unknown and duplicate fields are refused when strict", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath + "?fieldValidation=Strict", body: unknown}, 400,
			failure(400, "BadRequest", `Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", unknown field "metadata.odd", unknown field "odd", unknown field "spec.odd", unknown field "spec.rows[0].odd"`, ""))
	}},
	{"Unknown and duplicate fields are dropped in silence when ignored", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPost, path: widgetsPath + "?fieldValidation=Ignore", body: unknown})
		if w := a.warnings(); a.code != http.StatusCreated || len(w) != 0 {
			t.Errorf("%d %q", a.code, w)
		}
	}},
	{"Unknown fields deep in metadata are told and dropped, of custom and built-in types alike", func(t *testing.T, e *env) {
		owner := `{"apiVersion":"v1","kind":"Namespace","name":"$NS","uid":"` + e.get(t, "/api/v1/namespaces/$NS").uid() + `"`
		metadata := `"metadata":{"name":"a","NAME":"b","odd":1,"ownerReferences":[` + owner + `,"zoo":1}]}`
		want := []string{`unknown field "metadata.NAME"`, `unknown field "metadata.odd"`, `unknown field "metadata.ownerReferences[0].zoo"`}
		for path, body := range map[string]string{
			widgetsPath: `{"apiVersion":"$GROUP/v1","kind":"Widget",` + metadata + `}`,
			configMaps:  `{"apiVersion":"v1","kind":"ConfigMap",` + metadata + `}`,
		} {
			a := e.do(t, request{method: http.MethodPost, path: path, body: body})
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(a.warnings()))); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", path, diff)
			}
			e.same(t, "its owners", `{"o":[`+owner+`}]}`, object{"o": a.object(t).at("metadata", "ownerReferences")})
			a = e.do(t, request{method: http.MethodPost, path: path + "?dryRun=All&fieldValidation=Strict", body: body})
			if got := a.object(t).text("message"); a.code != 400 || !strings.HasSuffix(got, "strict decoding error: "+strings.Join(want, ", ")) {
				t.Errorf("strict: %d %s", a.code, got)
			}
			a = e.do(t, request{
				method: http.MethodPatch, path: path + "/a", contentType: mergePatch,
				body: `{"metadata":{"ownerReferences":[` + owner + `,"zoo":2}],"labels":{"l":"1"}}}`,
			})
			if diff := cmp.Diff(want[2:], a.warnings()); diff != "" {
				t.Errorf("a merge patch of %s: warnings (-want +got):\n%s", path, diff)
			}
			e.same(t, "its owners", `{"o":[`+owner+`}]}`, object{"o": a.object(t).at("metadata", "ownerReferences")})
		}
	}},
	{"Patches are validated by field as well", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		a := e.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{"spec":{"odd":1}}`})
		if diff := cmp.Diff([]string{`unknown field "spec.odd"`}, a.warnings()); diff != "" {
			t.Errorf("a merge patch: warnings (-want +got):\n%s", diff)
		}
		a = e.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldValidation=Strict", contentType: mergePatch, body: `{"spec":{"odd":1}}`})
		o := a.object(t)
		message := o.text("message") // in whose middle is all of the object, as it would be
		if a.code != 422 || o.text("reason") != "Invalid" || !strings.HasPrefix(message, ` "" is invalid: patch: Invalid value: "{`) ||
			!strings.HasSuffix(message, `}": strict decoding error: unknown field "spec.odd"`) {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"What a patch has twice is warned of, and refused when strict", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.post(t, configMaps, configMap("c", `{"k":"v"}`))
		for _, c := range []struct{ path, kind, body, field string }{
			{widgetsPath + "/a", mergePatch, `{"spec":{"size":2,"size":3}}`, "spec.size"},
			{configMaps + "/c", mergePatch, `{"data":{"k":"w","k":"x"}}`, "data.k"},
			{configMaps + "/c", strategic, `{"data":{"k":"y","k":"z"}}`, "data.k"},
		} {
			want := []string{`duplicate field "` + c.field + `"`}
			a := e.do(t, request{method: http.MethodPatch, path: c.path, contentType: c.kind, body: c.body})
			if diff := cmp.Diff(want, a.warnings()); a.code != http.StatusOK || diff != "" {
				t.Errorf("%s: %d, warnings (-want +got):\n%s", c.body, a.code, diff)
			}
			a = e.do(t, request{method: http.MethodPatch, path: c.path + "?fieldValidation=Strict", contentType: c.kind, body: c.body})
			if got := a.object(t).text("message"); a.code != 422 || !strings.HasSuffix(got, "strict decoding error: "+want[0]) {
				t.Errorf("%s, strict: %d %s", c.body, a.code, got)
			}
			a = e.do(t, request{method: http.MethodPatch, path: c.path + "?fieldValidation=Ignore", contentType: c.kind, body: c.body})
			if w := a.warnings(); a.code != http.StatusOK || len(w) != 0 {
				t.Errorf("%s, ignored: %d %q", c.body, a.code, w)
			}
		}
	}},
	{"An apply of an unknown field is a server error", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=m", contentType: applyPatch, body: widget("a", `{"odd":1}`)}, 500,
			failure(500, "", "failed to create typed patch object (/a; $GROUP/v1, Kind=Widget): .spec.odd: field not declared in schema", ""))
	}},
	{"Unknown fields of a built-in type are told too", func(t *testing.T, e *env) {
		const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","odd":1},"data":{"a":"b"},"dataa":{}}`
		e.refused(t, request{method: http.MethodPost, path: configMaps + "?fieldValidation=Strict", body: body}, 400,
			failure(400, "BadRequest", `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.odd", unknown field "dataa"`, ""))
		a := e.do(t, request{method: http.MethodPost, path: configMaps, body: body})
		if diff := cmp.Diff([]string{`unknown field "dataa"`, `unknown field "metadata.odd"`}, slices.Sorted(slices.Values(a.warnings()))); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}},
	{"A field validation that is none is refused", func(t *testing.T, e *env) {
		const message = `Unsupported value: \"Odd\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"`
		e.refused(t, request{method: http.MethodPost, path: widgetsPath + "?fieldValidation=Odd", body: widget("a", `{}`)}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,"message":"CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: `+message+`",
			"details":{"group":"meta.k8s.io","kind":"CreateOptions","causes":[{"reason":"FieldValueNotSupported","message":"`+message+`","field":"fieldValidation"}]}}`)
	}},
	{"What the schema does not allow is refused, each mistake by its field", func(t *testing.T, e *env) {
		for spec, want := range map[string]string{
			`{"size":0}`:                         `spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1`,
			`{"size":"1"}`:                       `spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`,
			`{"color":"pink"}`:                   `spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"`,
			`{"note":"12345678901"}`:             `spec.note: Too long: may not be more than 10 bytes`,
			`{"tags":["a","a"]}`:                 `spec.tags[1]: Duplicate value: "a"`,
			`{"rows":[{"key":"a"},{"key":"a"}]}`: `spec.rows[1]: Duplicate value: {"key":"a"}`,
			`{"rows":[{"value":"a"}]}`:           `spec.rows[0].key: Required value`,
			`{"port":true}`:                      `spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"`,
			`{"labels":{"a":1}}`:                 `spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"`,
			`[]`:                                 `spec: Invalid value: "array": spec in body must be of type object: "array"`,
		} {
			a := e.do(t, request{method: http.MethodPost, path: widgetsPath, body: widget("a", spec)})
			if got, want := a.object(t).text("message"), e.expand(`Widget.$GROUP "a" is invalid: `+want); a.code != 422 || got != want {
				t.Errorf("%s: %d %s, want %s", spec, a.code, got, want)
			}
		}
	}},
	{"Null is taken away where it is not allowed, or a default takes its place", func(t *testing.T, e *env) {
		got := e.post(t, widgetsPath, widget("a", `{"size":null,"color":null,"note":null,"free":{"x":null}}`))
		e.same(t, "spec", `{"color":"red","note":null,"free":{"x":null}}`, object(got.at("spec").(map[string]any)))
		if got := e.merge(t, widgetsPath+"/a", `{"spec":{"color":"green"}}`); got.text("spec", "color") != "green" {
			t.Errorf("%s", got.json())
		}
		if got := e.merge(t, widgetsPath+"/a", `{"spec":{"color":null}}`); got.text("spec", "color") != "red" {
			t.Errorf("%s", got.json())
		}
	}},
	{"Labels and annotations are validated", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","labels":{"a b":"c","d":"e f"},"annotations":{"a b":"c"}}}`})
		var fields []any
		causes, _ := a.object(t).at("details", "causes").([]any)
		for _, c := range causes {
			fields = append(fields, object(c.(map[string]any)).text("field"))
		}
		slices.SortFunc(fields, func(a, b any) int { return cmpText(a, b) })
		e.same(t, "fields", `{"f":["metadata.annotations","metadata.labels","metadata.labels"]}`, object{"f": fields})
	}},
	{"Metadata of the wrong type is a bad request", func(t *testing.T, e *env) {
		// From Go 1.27 on, what the server is built with names the key as well.
		answer := e.do(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","labels":{"a":1}}}`})
		if answer.code != 400 {
			t.Errorf("%d", answer.code)
		}
		a := answer.object(t)
		a["message"] = strings.Replace(a.text("message"), "ObjectMeta.labels.a of", "ObjectMeta.labels of", 1)
		e.same(t, "the answer",
			failure(400, "BadRequest", `Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`, ""), a)
	}},
}

func cmpText(a, b any) int {
	x, _ := a.(string)
	y, _ := b.(string)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
