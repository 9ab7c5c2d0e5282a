package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// several makes widgets w0, w1 and so on.
func (e *env) several(t *testing.T, n int) (last object) {
	t.Helper()
	for i := range n {
		last = e.post(t, widgetsPath, fmt.Sprintf(`{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"w%d","labels":{"n":"%d"}},"spec":{"size":%d}}`, i, i, i+1))
	}
	return last
}

var lists = []behaviour{
	{"A list is sorted by name and has a resourceVersion of its own", func(t *testing.T, e *env) {
		for _, name := range []string{"b", "c", "a"} {
			e.post(t, widgetsPath, widget(name, `{}`))
		}
		e.delete(t, widgetsPath+"/c")
		got := e.get(t, widgetsPath)
		if diff := cmp.Diff([]string{"a", "b"}, got.names()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if number(t, got.version()) <= number(t, e.get(t, widgetsPath+"/a").version()) {
			t.Errorf("the list is of %s", got.version())
		}
		got["items"] = nil
		e.same(t, "the list", `{"apiVersion":"$GROUP/v1","kind":"WidgetList","metadata":{"resourceVersion":"1","continue":""},"items":null}`, got)
	}},
	{"A list of nothing has items", func(t *testing.T, e *env) {
		e.same(t, "widgets", `{"apiVersion":"$GROUP/v1","kind":"WidgetList","metadata":{"resourceVersion":"1","continue":""},"items":[]}`, e.get(t, widgetsPath))
		e.same(t, "ConfigMaps", `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[]}`, e.get(t, "/api/v1/namespaces/$NS-none/configmaps"))
	}},
	{"Items of a list of custom resources have their kind, those of built-in types not", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		e.post(t, configMaps, configMap("a", `{}`))
		if item := e.get(t, widgetsPath).items()[0]; item.text("kind") != "Widget" {
			t.Errorf("%s", item.json())
		}
		if item := e.get(t, configMaps).items()[0]; item.at("kind") != nil {
			t.Errorf("%s", item.json())
		}
	}},
	{"A list comes in chunks, all of one resourceVersion", func(t *testing.T, e *env) {
		e.several(t, 5)
		one := e.get(t, widgetsPath+"?limit=2")
		e.merge(t, widgetsPath+"/w3", `{"spec":{"size":9}}`)
		e.post(t, widgetsPath, widget("w31", `{}`))
		two := e.get(t, widgetsPath+"?limit=2&continue="+url.QueryEscape(one.text("metadata", "continue")))
		three := e.get(t, widgetsPath+"?limit=2&continue="+url.QueryEscape(two.text("metadata", "continue")))
		if diff := cmp.Diff([][]string{{"w0", "w1"}, {"w2", "w3"}, {"w4"}}, [][]string{one.names(), two.names(), three.names()}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if one.version() != two.version() || two.version() != three.version() {
			t.Errorf("of %s, %s and %s", one.version(), two.version(), three.version())
		}
		if got := two.items()[1].text("spec", "size"); got != "4" {
			t.Errorf("w3 has size %s", got)
		}
		var left []string
		for _, l := range []object{one, two, three} {
			left = append(left, l.text("metadata", "remainingItemCount"))
		}
		if diff := cmp.Diff([]string{"3", "1", ""}, left); diff != "" || three.text("metadata", "continue") != "" {
			t.Errorf("remaining (-want +got):\n%s\nand %q", diff, three.text("metadata", "continue"))
		}
	}},
	{"A selector hides how many remain", func(t *testing.T, e *env) {
		e.several(t, 3)
		got := e.get(t, widgetsPath+"?limit=1&labelSelector=n")
		if got.at("metadata", "remainingItemCount") != nil || got.text("metadata", "continue") == "" || len(got.items()) != 1 {
			t.Errorf("%s", got.json())
		}
	}},
	{"A continue token that is none is a bad request", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodGet, path: widgetsPath + "?limit=1&continue=b2Rk"})
		if o := a.object(t); a.code != http.StatusBadRequest || o.text("reason") != "BadRequest" || o.text("message") != "invalid continue token: continue key is not valid: invalid character 'o' looking for beginning of value" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"A token may not come with a resourceVersion", func(t *testing.T, e *env) {
		e.several(t, 2)
		one := e.get(t, widgetsPath+"?limit=1")
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "?limit=1&resourceVersion=" + one.version() + "&continue=" + url.QueryEscape(one.text("metadata", "continue"))}, 400,
			failure(400, "BadRequest", "specifying resource version is not allowed when using continue", ""))
	}},
	{"A list may be of exactly one resourceVersion", func(t *testing.T, e *env) {
		last := e.several(t, 2)
		e.several2(t)
		got := e.get(t, widgetsPath+"?resourceVersionMatch=Exact&resourceVersion="+last.version())
		if diff := cmp.Diff([]string{"w0", "w1"}, got.names()); diff != "" || got.version() != last.version() {
			t.Errorf("of %s (-want +got):\n%s", got.version(), diff)
		}
	}},
	{"A list may be of no older than a resourceVersion", func(t *testing.T, e *env) {
		last := e.several(t, 2)
		got := e.get(t, widgetsPath+"?resourceVersionMatch=NotOlderThan&resourceVersion="+last.version())
		if len(got.items()) != 2 || number(t, got.version()) < number(t, last.version()) {
			t.Errorf("of %s: %q", got.version(), got.names())
		}
		if got := e.get(t, widgetsPath+"?resourceVersion=0"); got.version() == "" || got.version() == "0" {
			t.Errorf("of any: %s", got.json())
		}
	}},
	{"A match without a resourceVersion is refused", func(t *testing.T, e *env) {
		const message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "?resourceVersionMatch=Exact"}, 422,
			failure(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: `+message,
				`{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"`+message+`","field":"resourceVersionMatch"}]}`))
		const zero = "Forbidden: resourceVersionMatch \\\"exact\\\" is forbidden for resourceVersion \\\"0\\\""
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "?resourceVersionMatch=Exact&resourceVersion=0"}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,"message":"ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: `+zero+`",
			"details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"`+zero+`","field":"resourceVersionMatch"}]}}`)
	}},
	{"A resourceVersion that is none is refused", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodGet, path: widgetsPath + "?resourceVersion=odd"})
		if a.code != http.StatusBadRequest {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"An object may be read as of no older than a resourceVersion", func(t *testing.T, e *env) {
		o := e.several(t, 1)
		if got := e.get(t, widgetsPath+"/w0?resourceVersion="+o.version()); got.version() != o.version() {
			t.Errorf("%s", got.json())
		}
		a := e.do(t, request{method: http.MethodGet, path: widgetsPath + "/w0?resourceVersion=999999999999"})
		if got := a.object(t); a.code != http.StatusGatewayTimeout || got.text("reason") != "Timeout" {
			t.Errorf("of what is to come: %d %s", a.code, a.body)
		}
	}},
	{"All namespaces are listed at once", func(t *testing.T, e *env) {
		e.several(t, 1)
		other := e.inNamespace(t)
		other.several(t, 1)
		found := map[string]bool{}
		for _, item := range e.get(t, "/apis/$GROUP/v1/widgets").items() {
			found[item.text("metadata", "namespace")] = true
		}
		if !found[e.ns] || !found[other.ns] {
			t.Errorf("%v", found)
		}
	}},
}

// several2 changes the two widgets, and makes a third.
func (e *env) several2(t *testing.T) {
	t.Helper()
	e.merge(t, widgetsPath+"/w0", `{"spec":{"size":9}}`)
	e.delete(t, widgetsPath+"/w1")
	e.post(t, widgetsPath, widget("w2", `{}`))
}

var selectors = []behaviour{
	{"Labels select by equality, set and existence", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","labels":{"x":"1","y":"1"}}}`)
		e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"b","labels":{"x":"2"}}}`)
		e.post(t, widgetsPath, widget("c", `{}`))
		for selector, want := range map[string][]string{
			"x=1": {"a"}, "x==2": {"b"}, "x!=1": {"b", "c"}, "x in (1,2)": {"a", "b"}, "x notin (1)": {"b", "c"}, "x": {"a", "b"}, "!x": {"c"}, "x,y": {"a"}, "": {"a", "b", "c"},
		} {
			if diff := cmp.Diff(want, e.get(t, widgetsPath+"?labelSelector="+url.QueryEscape(selector)).names()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", selector, diff)
			}
		}
	}},
	{"A label selector that is none is a bad request", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodGet, path: widgetsPath + "?labelSelector=a%3D%3D%3Db"})
		if a.code != http.StatusBadRequest || a.object(t).text("reason") != "BadRequest" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"Fields select by name, and by what the definition says", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		e.post(t, widgetsPath, widget("b", `{"color":"green"}`))
		for selector, want := range map[string][]string{
			"metadata.name=a": {"a"}, "metadata.name!=a": {"b"}, "spec.color=red": {"a"}, "spec.color!=red": {"b"}, "spec.color=green,metadata.name=a": nil,
			"metadata.namespace=" + e.ns: {"a", "b"}, "metadata.namespace=other": nil,
		} {
			if diff := cmp.Diff(want, e.get(t, widgetsPath+"?fieldSelector="+url.QueryEscape(selector)).names()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", selector, diff)
			}
		}
	}},
	{"A field that is not selectable is a bad request", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "?fieldSelector=spec.size%3D1"}, 400,
			failure(400, "BadRequest", "field label not supported: spec.size", ""))
		e.refused(t, request{method: http.MethodGet, path: configMaps + "?fieldSelector=data.a%3D1"}, 400,
			failure(400, "BadRequest", `"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"`, ""))
	}},
	{"Built-in types select by fields of their own", func(t *testing.T, e *env) {
		const secrets = "/api/v1/namespaces/$NS/secrets"
		e.post(t, secrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`)
		e.post(t, secrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"},"type":"example.com/t"}`)
		if diff := cmp.Diff([]string{"b"}, e.get(t, secrets+"?fieldSelector=type%3Dexample.com/t").names()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}},
}
