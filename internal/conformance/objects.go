package conformance

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

var objects = []behaviour{
	{"A created object has an identity, generation 1 and its defaults", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPost, path: widgetsPath, body: widget("a", `{"size":1}`)})
		if a.code != http.StatusCreated || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v", a.code, a.header)
		}
		o := a.object(t)
		e.same(t, "it", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"$NS","generation":1,
			"uid":"x","resourceVersion":"1","creationTimestamp":"x"},"spec":{"size":1,"color":"red"}}`, o)
		if len(o.uid()) != 36 {
			t.Errorf("the uid is %q", o.uid())
		}
		e.same(t, "read again", o.json(), e.get(t, widgetsPath+"/a"))
	}},
	{"What a client says of an object's identity is not heard", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","uid":"mine","generation":7,
			"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"}}`)
		if o.uid() == "mine" || o.text("metadata", "generation") != "1" || o.at("metadata", "deletionTimestamp") != nil ||
			strings.HasPrefix(o.text("metadata", "creationTimestamp"), "2001") {
			t.Errorf("%s", o.json())
		}
	}},
	{"An object must not have a resourceVersion when it is created", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"1"}}`},
			500, failure(500, "", "resourceVersion should not be set on objects to be created", ""))
	}},
	{"A name is generated where there is none", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"generateName":"w-"}}`)
		if !strings.HasPrefix(o.name(), "w-") || len(o.name()) != 7 || o.text("metadata", "generateName") != "w-" {
			t.Errorf("%s", o.json())
		}
		other := e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"generateName":"w-","name":"mine"}}`)
		if other.name() != "mine" {
			t.Errorf("%s", other.json())
		}
	}},
	{"An object without a name is refused", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{}}`}, 422,
			failure(422, "Invalid", `Widget.$GROUP "" is invalid: metadata.name: Required value: name or generateName is required`,
				`{"group":"$GROUP","kind":"Widget","causes":[{"reason":"FieldValueRequired","message":"Required value: name or generateName is required","field":"metadata.name"}]}`))
	}},
	{"A name that is none is refused", func(t *testing.T, e *env) {
		const must = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character ` +
			`(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: widget("A_", `{}`)}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,
			"message":"Widget.$GROUP \"A_\" is invalid: metadata.name: Invalid value: \"A_\": `+must+`",
			"details":{"name":"A_","group":"$GROUP","kind":"Widget","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"A_\": `+must+`","field":"metadata.name"}]}}`)
	}},
	{"resourceVersions grow, over all kinds", func(t *testing.T, e *env) {
		a := e.post(t, widgetsPath, widget("a", `{}`))
		b := e.post(t, configMaps, configMap("b", `{}`))
		c := e.merge(t, widgetsPath+"/a", `{"spec":{"size":2}}`)
		if x, y, z := number(t, a.version()), number(t, b.version()), number(t, c.version()); x >= y || y >= z {
			t.Errorf("%d, %d, %d", x, y, z)
		}
	}},
	{"The generation counts changes of what is wanted", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		for _, step := range []struct{ patch, want string }{
			{`{"spec":{"size":2}}`, "2"},
			{`{"spec":{"size":2}}`, "2"},
			{`{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["example.com/a"]}}`, "2"},
			{`{"status":{"phase":"Up"}}`, "2"},
			{`{"spec":{"color":null}}`, "2"},
			{`{"spec":{"free":{"a":1}}}`, "3"},
			{`{"metadata":{"finalizers":null}}`, "3"},
		} {
			if got := e.merge(t, widgetsPath+"/a", step.patch).text("metadata", "generation"); got != step.want {
				t.Errorf("after %s the generation is %s, want %s", step.patch, got, step.want)
			}
		}
	}},
	{"A write that changes nothing keeps the resourceVersion", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		if got := e.merge(t, widgetsPath+"/a", `{"spec":{"size":1}}`); got.version() != o.version() {
			t.Errorf("a patch: %s after %s", got.version(), o.version())
		}
		if got := e.put(t, widgetsPath+"/a", e.get(t, widgetsPath+"/a")); got.version() != o.version() {
			t.Errorf("a PUT: %s after %s", got.version(), o.version())
		}
	}},
	{"A dry run answers what would be and does nothing", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath+"?dryRun=All", widget("a", `{"size":1}`))
		e.same(t, "it", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"$NS","generation":1,"uid":"x","creationTimestamp":"x"},"spec":{"size":1,"color":"red"}}`, o)
		if len(e.get(t, widgetsPath).items()) != 0 {
			t.Error("it is there")
		}
		made := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		if got := e.merge(t, widgetsPath+"/a?dryRun=All", `{"spec":{"size":2}}`); got.text("spec", "size") != "2" || got.version() != made.version() {
			t.Errorf("a patch: %s", got.json())
		}
		e.delete(t, widgetsPath+"/a?dryRun=All")
		e.same(t, "afterwards", made.json(), e.get(t, widgetsPath+"/a"))
	}},
	{"A dry run that is none of the kinds is refused", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath + "?dryRun=Some", body: widget("a", `{}`)}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,
			"message":"CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
			"details":{"group":"meta.k8s.io","kind":"CreateOptions","causes":[{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"Some\"]: supported values: \"All\"","field":"dryRun"}]}}`)
	}},
	{"A PUT replaces an object, and does not make one", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPut, path: widgetsPath + "/a", body: widget("a", `{}`)}, 404,
			failure(404, "NotFound", `widgets.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"widgets"}`))
		o := e.post(t, widgetsPath, widget("a", `{"size":1,"note":"x"}`))
		got := e.put(t, widgetsPath+"/a", object{}.set(o["apiVersion"], "apiVersion").set("Widget", "kind").set("a", "metadata", "name").
			set(o.version(), "metadata", "resourceVersion").set(2, "spec", "size"))
		e.same(t, "it", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"$NS","generation":2,"uid":"x","resourceVersion":"1","creationTimestamp":"x"},"spec":{"size":2,"color":"red"}}`, got)
		if got.uid() != o.uid() {
			t.Errorf("another uid: %s, %s", o.uid(), got.uid())
		}
	}},
	{"A PUT of a custom resource needs a resourceVersion, one of a ConfigMap does not", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		e.refused(t, request{method: http.MethodPut, path: widgetsPath + "/a", body: widget("a", `{}`)}, 422,
			failure(422, "Invalid", `widgets.$GROUP "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`,
				`{"name":"a","group":"$GROUP","kind":"widgets","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 0: must be specified for an update","field":"metadata.resourceVersion"}]}`))
		e.post(t, configMaps, configMap("a", `{"k":"1"}`))
		e.must(t, http.MethodPut, configMaps+"/a", configMap("a", `{"k":"2"}`))
	}},
	{"Every version serves the same objects", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		a := e.do(t, request{method: http.MethodGet, path: "/apis/$GROUP/v1beta1/namespaces/$NS/widgets/a"})
		e.same(t, "it", o.set(e.expand("$GROUP/v1beta1"), "apiVersion").json(), a.object(t))
		if w := a.warnings(); len(w) != 1 || w[0] != e.expand("$GROUP/v1beta1 Widget is deprecated; use $GROUP/v1 Widget") {
			t.Errorf("warnings %q", w)
		}
	}},
	{"An object in YAML is read, and answered in YAML when asked", func(t *testing.T, e *env) {
		a := e.do(t, request{
			method: http.MethodPost, path: widgetsPath, contentType: "application/yaml", accept: "application/yaml",
			body: "apiVersion: $GROUP/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n",
		})
		if a.code != http.StatusCreated || !strings.Contains(string(a.body), "\nspec:\n  color: red\n  size: 3\n") || a.header.Get("Content-Type") != "application/yaml" {
			t.Errorf("%d %s %s", a.code, a.header.Get("Content-Type"), a.body)
		}
	}},
	{"Metadata alone is answered when asked", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.same(t, "one", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"$NS","generation":1,"uid":"x","resourceVersion":"1","creationTimestamp":"x"}}`,
			e.granted(t, request{method: http.MethodGet, path: widgetsPath + "/a", accept: asPartial}))
		e.same(t, "a list", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[
			{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"$NS","generation":1,"uid":"x","resourceVersion":"1","creationTimestamp":"x"}}]}`,
			e.granted(t, request{method: http.MethodGet, path: widgetsPath, accept: asPartialList}))
	}},
	{"Managed fields say who wrote what", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath+"?fieldManager=me", widget("a", `{"size":1}`))
		entries, _ := o.at("metadata", "managedFields").([]any)
		if len(entries) != 1 {
			t.Fatalf("%s", o.json())
		}
		e.same(t, "they", `{"manager":"me","operation":"Update","apiVersion":"$GROUP/v1","time":"x","fieldsType":"FieldsV1",
			"fieldsV1":{"f:spec":{".":{},"f:color":{},"f:size":{}}}}`, entries[0].(map[string]any))
		other := e.post(t, widgetsPath, widget("b", `{"size":1}`))
		entries, _ = other.at("metadata", "managedFields").([]any)
		if len(entries) != 1 || object(entries[0].(map[string]any)).text("manager") != "conformance" {
			t.Errorf("the manager is not the first part of the user agent: %s", other.json())
		}
	}},
}

func number(t *testing.T, version string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
