package conformance

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

var discovery = []behaviour{
	{"A group tells its versions, the newest first", func(t *testing.T, e *env) {
		e.same(t, "the group", `{"kind":"APIGroup","apiVersion":"v1","name":"$GROUP","versions":[{"groupVersion":"$GROUP/v1","version":"v1"},{"groupVersion":"$GROUP/v1beta1","version":"v1beta1"}],
			"preferredVersion":{"groupVersion":"$GROUP/v1","version":"v1"}}`, e.get(t, "/apis/$GROUP"))
	}},
	{"A version tells its resources", func(t *testing.T, e *env) {
		got := e.get(t, "/apis/$GROUP/v1")
		for _, r := range got["resources"].([]any) {
			delete(r.(map[string]any), "storageVersionHash")
		}
		slices.SortFunc(got["resources"].([]any), func(a, b any) int {
			return cmpText(a.(map[string]any)["name"], b.(map[string]any)["name"])
		})
		e.same(t, "they", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"$GROUP/v1","resources":[
			{"name":"gadgets","singularName":"gadget","namespaced":false,"kind":"Gadget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"]},
			{"name":"racks","singularName":"rack","namespaced":true,"kind":"Rack","verbs":["delete","deletecollection","get","list","patch","create","update","watch"]},
			{"name":"racks/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]},
			{"name":"racks/status","singularName":"","namespaced":true,"kind":"Rack","verbs":["get","patch","update"]},
			{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["wd"],"categories":["conformance"]},
			{"name":"widgets/status","singularName":"","namespaced":true,"kind":"Widget","verbs":["get","patch","update"]}]}`, got)
	}},
	{"The core group and the other groups are told apart", func(t *testing.T, e *env) {
		core := e.get(t, "/api")
		if core.text("kind") != "APIVersions" || len(core["versions"].([]any)) != 1 || core["versions"].([]any)[0] != "v1" {
			t.Errorf("%s", core.json())
		}
		all := e.get(t, "/apis")
		var names []string
		for _, g := range all["groups"].([]any) {
			names = append(names, g.(map[string]any)["name"].(string))
		}
		for _, want := range []string{"apps", "coordination.k8s.io", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "events.k8s.io", "authorization.k8s.io", e.group} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is not among %q", want, names)
			}
		}
	}},
	{"All is told at once when asked", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodGet, path: "/apis", accept: aggregated + "," + jsonType})
		if got := a.header.Get("Content-Type"); got != aggregated {
			t.Errorf("%s", got)
		}
		var own object
		for _, item := range a.object(t).items() {
			if item.name() == e.group {
				own = item
			}
		}
		if own == nil {
			t.Fatal("the suite's group is not there")
		}
		versions := own["versions"].([]any)
		v1 := object(versions[0].(map[string]any))
		slices.SortFunc(v1["resources"].([]any), func(a, b any) int { return cmpText(a.(map[string]any)["resource"], b.(map[string]any)["resource"]) })
		e.same(t, "the version", `{"version":"v1","freshness":"Current","resources":[
			{"resource":"gadgets","responseKind":{"group":"$GROUP","version":"v1","kind":"Gadget"},"scope":"Cluster","singularResource":"gadget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"]},
			{"resource":"racks","responseKind":{"group":"$GROUP","version":"v1","kind":"Rack"},"scope":"Namespaced","singularResource":"rack","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],
			 "subresources":[{"subresource":"status","responseKind":{"group":"$GROUP","version":"v1","kind":"Rack"},"verbs":["get","patch","update"]},
			  {"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}]},
			{"resource":"widgets","responseKind":{"group":"$GROUP","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget","shortNames":["wd"],"categories":["conformance"],
			 "verbs":["delete","deletecollection","get","list","patch","create","update","watch"],
			 "subresources":[{"subresource":"status","responseKind":{"group":"$GROUP","version":"v1","kind":"Widget"},"verbs":["get","patch","update"]}]}]}`, v1)
		core := e.do(t, request{method: http.MethodGet, path: "/api", accept: aggregated})
		var kinds []string
		for _, r := range object(core.object(t).items()[0]["versions"].([]any)[0].(map[string]any))["resources"].([]any) {
			kinds = append(kinds, r.(map[string]any)["resource"].(string))
		}
		for _, want := range []string{"configmaps", "events", "namespaces", "pods", "secrets", "serviceaccounts", "services"} {
			if !slices.Contains(kinds, want) {
				t.Errorf("%s is not among %q", want, kinds)
			}
		}
	}},
	{"Discovery of a group that is not there is not found", func(t *testing.T, e *env) {
		for _, path := range []string{"/apis/none.example.com", "/apis/none.example.com/v1", "/apis/$GROUP/v9"} {
			if a := e.do(t, request{method: http.MethodGet, path: path}); a.code != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	}},
	{"Built-in resources say what can be done with them", func(t *testing.T, e *env) {
		for _, r := range e.get(t, "/api/v1")["resources"].([]any) {
			r := r.(map[string]any)
			delete(r, "storageVersionHash")
			if r["name"] == "configmaps" {
				e.same(t, "ConfigMaps", `{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"]}`, r)
				return
			}
		}
		t.Error("there are no ConfigMaps")
	}},
}

var server = []behaviour{
	{"The server says its version", func(t *testing.T, e *env) {
		got := e.get(t, "/version")
		if got.text("major") != "1" || got.text("gitVersion") == "" || got.text("minor") == "" || got.text("goVersion") == "" {
			t.Errorf("%s", got.json())
		}
	}},
	{"The server is ready and alive", func(t *testing.T, e *env) {
		for _, path := range []string{"/readyz", "/livez", "/healthz"} {
			if a := e.do(t, request{method: http.MethodGet, path: path}); a.code != http.StatusOK || string(a.body) != "ok" {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	}},
	{"The schemas are published", func(t *testing.T, e *env) {
		var location string
		eventually(t, func() bool {
			location = e.get(t, "/openapi/v3").text("paths", "apis/"+e.group+"/v1", "serverRelativeURL")
			return location != ""
		})
		var doc object
		eventually(t, func() bool {
			doc = e.get(t, location)
			return doc.at("paths", e.expand("/apis/$GROUP/v1/namespaces/{namespace}/widgets")) != nil
		})
		var name string
		schemas := doc.at("components", "schemas").(map[string]any)
		for key, s := range schemas {
			gvks, _ := object(s.(map[string]any))["x-kubernetes-group-version-kind"].([]any)
			if len(gvks) == 1 && gvks[0].(map[string]any)["kind"] == "Widget" {
				name = key
			}
		}
		widget := object(schemas[name].(map[string]any))
		if widget.text("properties", "spec", "properties", "size", "description") != "How big it is." || widget.text("properties", "metadata", "description") == "" {
			t.Errorf("%s", widget.json())
		}
		patch := object(doc.at("paths", e.expand("/apis/$GROUP/v1/namespaces/{namespace}/widgets")+"/{name}", "patch").(map[string]any))
		if patch.text("x-kubernetes-group-version-kind", "kind") != "Widget" {
			t.Errorf("%s", patch.json())
		}
		var params []string
		for _, p := range patch["parameters"].([]any) {
			params = append(params, object(p.(map[string]any)).text("name"))
		}
		slices.Sort(params)
		if diff := cmp.Diff([]string{"dryRun", "fieldManager", "fieldValidation", "force"}, params); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}},
	{"Times and versions of requests are told as clients expect", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodGet, path: widgetsPath})
		if a.header.Get("Audit-Id") == "" || a.header.Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%v", a.header)
		}
	}},
}
