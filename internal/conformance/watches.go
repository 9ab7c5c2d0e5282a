package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var watches = []behaviour{
	{"A watch tells what happens after a resourceVersion, in order", func(t *testing.T, e *env) {
		w := e.watch(t, widgetsPath+"?resourceVersion="+e.get(t, widgetsPath).version())
		made := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		changed := e.merge(t, widgetsPath+"/a", `{"spec":{"size":2}}`)
		e.post(t, widgetsPath, widget("b", `{}`))
		e.delete(t, widgetsPath+"/a")
		e.same(t, "the first", made.json(), w.wants(t, "ADDED a").Object)
		e.same(t, "the second", changed.json(), w.wants(t, "MODIFIED a").Object)
		last := w.wants(t, "ADDED b", "DELETED a")
		if last.Object.text("spec", "size") != "2" || number(t, last.Object.version()) <= number(t, changed.version()) {
			t.Errorf("the last: %s", last.Object.json())
		}
		again := e.watch(t, widgetsPath+"?resourceVersion="+made.version())
		again.wants(t, "MODIFIED a", "ADDED b", "DELETED a")
	}},
	{"A watch without a resourceVersion begins with what there is", func(t *testing.T, e *env) {
		e.several(t, 2)
		for _, query := range []string{"?", "?resourceVersion=0"} {
			w := e.watch(t, widgetsPath+query)
			got := []string{w.next(t).String(), w.next(t).String()}
			if diff := cmp.Diff([]string{"ADDED w0", "ADDED w1"}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	}},
	{"A watch tells what comes into its selector and what leaves it", func(t *testing.T, e *env) {
		w := e.watch(t, widgetsPath+"?labelSelector=l&resourceVersion="+e.get(t, widgetsPath).version())
		e.post(t, widgetsPath, widget("a", `{}`))
		e.merge(t, widgetsPath+"/a", `{"metadata":{"labels":{"l":"1"}}}`)
		e.merge(t, widgetsPath+"/a", `{"metadata":{"labels":{"l":"2"}}}`)
		left := e.merge(t, widgetsPath+"/a", `{"metadata":{"labels":null}}`)
		w.wants(t, "ADDED a", "MODIFIED a")
		if ev := w.wants(t, "DELETED a"); ev.Object.text("metadata", "labels", "l") != "2" || ev.Object.version() != left.version() {
			t.Errorf("the last: %s, and the patch made %s", ev.Object.json(), left.version())
		}
	}},
	{"A watch of one object hears of that one alone", func(t *testing.T, e *env) {
		w := e.watch(t, widgetsPath+"?fieldSelector=metadata.name%3Db&resourceVersion="+e.get(t, widgetsPath).version())
		e.several(t, 1)
		e.post(t, widgetsPath, widget("b", `{}`))
		w.wants(t, "ADDED b")
	}},
	{"A watch ends when its time is over", func(t *testing.T, e *env) {
		w := e.watch(t, widgetsPath+"?timeoutSeconds=1&resourceVersion="+e.get(t, widgetsPath).version())
		if events := w.ends(t); len(events) != 0 {
			t.Errorf("%v", events)
		}
	}},
	{"A watch with bookmarks ends with one", func(t *testing.T, e *env) {
		o := e.several(t, 1)
		// It comes two seconds before the end, to a watch that is known by then: on a
		// busy machine that takes the real server more than a second.
		w := e.watch(t, widgetsPath+"?timeoutSeconds=8&allowWatchBookmarks=true&resourceVersion="+o.version())
		events := w.ends(t)
		if len(events) == 0 {
			t.Fatal("no bookmark")
		}
		last := events[len(events)-1]
		e.same(t, "the last", `{"type":"BOOKMARK","object":{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"resourceVersion":"1"}}}`, object{"type": last.Type, "object": map[string]any(last.Object)})
		if number(t, last.Object.version()) < number(t, o.version()) {
			t.Errorf("of %s, after %s", last.Object.version(), o.version())
		}
	}},
	{"A watch may begin with what there is, and say when that is all", func(t *testing.T, e *env) {
		e.several(t, 2)
		w := e.watch(t, widgetsPath+"?sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
		w.wants(t, "ADDED w0", "ADDED w1")
		ev := w.next(t)
		e.same(t, "the bookmark", `{"type":"BOOKMARK","object":{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
			object{"type": ev.Type, "object": map[string]any(ev.Object)})
		e.post(t, widgetsPath, widget("x", `{}`))
		if ev := w.until(t, func(ev event) bool { return ev.Type != "BOOKMARK" }); ev.String() != "ADDED x" {
			t.Errorf("and then %s", ev)
		}
	}},
	{"Initial events want a match, and a match initial events", func(t *testing.T, e *env) {
		const message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "?watch=1&sendInitialEvents=true"}, 422,
			failure(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: `+message,
				`{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"`+message+`","field":"resourceVersionMatch"}]}`))
		const other = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "?watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan"}, 422,
			failure(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: `+other,
				`{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"`+other+`","field":"resourceVersionMatch"}]}`))
	}},
	{"A watch from too old a resourceVersion is told to list again", func(t *testing.T, e *env) {
		e.several(t, 1)
		w := e.watch(t, widgetsPath+"?resourceVersion=1")
		ev := w.next(t)
		message := ev.Object.text("message")
		if ev.Type != "ERROR" || ev.Object.text("code") != "410" || ev.Object.text("reason") != "Expired" || !strings.HasPrefix(message, "too old resource version: 1 (") {
			t.Errorf("%s %s", ev.Type, ev.Object.json())
		}
		if rest := w.ends(t); len(rest) != 0 {
			t.Errorf("and then %v", rest)
		}
	}},
	{"A watch as a table has the columns in the first event alone", func(t *testing.T, e *env) {
		e.several(t, 2)
		w := e.watchAs(t, widgetsPath+"?", asTable)
		one, two := w.next(t).Object, w.next(t).Object
		if one.text("kind") != "Table" || one.at("columnDefinitions") == nil || two.at("columnDefinitions") != nil {
			t.Errorf("%s\n%s", one.json(), two.json())
		}
	}},
	{"A watch of metadata has metadata alone", func(t *testing.T, e *env) {
		e.several(t, 1)
		ev := e.watchAs(t, widgetsPath+"?", asPartial).next(t)
		e.same(t, "it", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"w0","namespace":"$NS","generation":1,"uid":"x","resourceVersion":"1","creationTimestamp":"x","labels":{"n":"0"}}}`, ev.Object)
	}},
	{"A watch of all namespaces hears of each", func(t *testing.T, e *env) {
		w := e.watch(t, "/apis/$GROUP/v1/widgets?labelSelector=all%3D"+e.ns+"&resourceVersion="+e.get(t, widgetsPath).version())
		other := e.inNamespace(t)
		for _, in := range []*env{e, other} {
			in.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","labels":{"all":"`+e.ns+`"}}}`)
		}
		var got []string
		for range 2 {
			got = append(got, w.next(t).Object.text("metadata", "namespace"))
		}
		if diff := cmp.Diff([]string{e.ns, other.ns}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}},
	{"A deleted namespace's objects are heard of", func(t *testing.T, e *env) {
		e.several(t, 1)
		w := e.watch(t, widgetsPath+"?resourceVersion="+e.get(t, widgetsPath).version())
		e.delete(t, widgetsPath)
		w.wants(t, "DELETED w0")
	}},
}

var tables = []behaviour{
	{"A custom resource is shown by its columns", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.merge(t, widgetsPath+"/a/status", `{"status":{"phase":"Up"}}`)
		e.post(t, widgetsPath, widget("b", `{}`))
		got := e.granted(t, request{method: http.MethodGet, path: widgetsPath, accept: asTable})
		if diff := cmp.Diff([]string{
			"Name string name 0", "Size integer  0", "Color string  0 What it looks like.", "Phase string  1", "Age date  0",
		}, columns(got)); diff != "" {
			t.Errorf("columns (-want +got):\n%s", diff)
		}
		e.same(t, "rows", `{"rows":[["a",1,"red","Up","AGE"],["b",null,"red",null,"AGE"]]}`, object{"rows": cells(got)})
		row := object(got["rows"].([]any)[0].(map[string]any))
		e.same(t, "the object", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","namespace":"$NS","generation":1,"uid":"x","resourceVersion":"1","creationTimestamp":"x"}}`, object(row["object"].(map[string]any)))
		if got.text("metadata", "resourceVersion") == "" {
			t.Error("the list has no resourceVersion")
		}
	}},
	{"What goes with a row is what was asked", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		for include, kind := range map[string]string{"None": "", "Metadata": "PartialObjectMetadata", "Object": "Widget"} {
			got := e.granted(t, request{method: http.MethodGet, path: widgetsPath + "/a?includeObject=" + include, accept: asTable})
			row := object(got["rows"].([]any)[0].(map[string]any))
			if row.text("object", "kind") != kind {
				t.Errorf("%s: %s", include, row.json())
			}
		}
	}},
	{"A definition without columns shows the age", func(t *testing.T, e *env) {
		name := e.unique()
		e.post(t, gadgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Gadget","metadata":{"name":"`+name+`"}}`)
		got := e.granted(t, request{method: http.MethodGet, path: gadgetsPath + "/" + name, accept: asTable})
		if diff := cmp.Diff([]string{"Name string name 0", "Age date  0"}, columns(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}},
	{"Built-in types are shown by columns of their own", func(t *testing.T, e *env) {
		e.post(t, configMaps, configMap("c", `{"a":"1","b":"2"}`))
		got := e.granted(t, request{method: http.MethodGet, path: configMaps + "?fieldSelector=metadata.name%3Dc", accept: asTable})
		if diff := cmp.Diff([]string{"Name string name 0", "Data string  0", "Age string  0"}, columns(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		e.same(t, "rows", `{"rows":[["c",2,"AGE"]]}`, object{"rows": cells(got)})
	}},
	{"A client that takes other things too gets a table where there is one", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{}`))
		const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
		if got := e.granted(t, request{method: http.MethodGet, path: widgetsPath, accept: kubectl}); got.text("kind") != "Table" {
			t.Errorf("%s", got.json())
		}
		if got := e.granted(t, request{method: http.MethodGet, path: "/apis/$GROUP/v1", accept: kubectl}); got.text("kind") != "APIResourceList" {
			t.Errorf("%s", got.json())
		}
	}},
	{"A refusal is a Status also for who asks for a table", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "/a", accept: asTable + ",application/json"}, 404,
			failure(404, "NotFound", `widgets.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
}

// columns tells a table's columns in words. The long descriptions, which are
// those of metadata, are left out.
func columns(table object) (all []string) {
	definitions, _ := table["columnDefinitions"].([]any)
	for _, d := range definitions {
		c := object(d.(map[string]any))
		line := c.text("name") + " " + c.text("type") + " " + c.text("format") + " " + c.text("priority")
		if d := c.text("description"); len(d) < 20 {
			line += " " + d
		}
		all = append(all, line)
	}
	return all
}

// cells are a table's cells, of which the ages differ from one time to the next.
func cells(table object) (rows []any) {
	definitions, _ := table["columnDefinitions"].([]any)
	for _, r := range table["rows"].([]any) {
		row := r.(map[string]any)["cells"].([]any)
		for i, d := range definitions {
			if age, ok := row[i].(string); ok && d.(map[string]any)["name"] == "Age" && strings.HasSuffix(age, "s") {
				row[i] = "AGE"
			}
		}
		rows = append(rows, row)
	}
	return rows
}
