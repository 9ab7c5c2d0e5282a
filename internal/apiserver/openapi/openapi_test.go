package openapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/tetherkube/tether/internal/apiserver/openapi"
	structural "github.com/tetherkube/tether/internal/apiserver/schema"
)

func builtIn(group, version, kind, plural string) openapi.Resource {
	return openapi.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Plural:           plural, Namespaced: true,
	}
}

func thing(t *testing.T) openapi.Resource {
	t.Helper()
	s, err := structural.New(map[string]any{
		"type": "object", "required": []any{"spec"}, "properties": map[string]any{
			"spec": map[string]any{"type": "object", "description": "What is wanted.", "properties": map[string]any{
				"port": map[string]any{"x-kubernetes-int-or-string": true},
				"odd":  map[string]any{"type": "string", "format": "odd"},
				"tags": map[string]any{"type": "array", "x-kubernetes-list-type": "set", "items": map[string]any{"type": "string"}},
				"rows": map[string]any{
					"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"k"},
					"items": map[string]any{"type": "object", "required": []any{"k"}, "properties": map[string]any{"k": map[string]any{"type": "string"}, "v": map[string]any{"type": "integer"}}},
				},
				"tmpl": map[string]any{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := builtIn("t.example.com", "v1", "Thing", "things")
	r.Custom, r.Status, r.Schema = true, true, s
	return r
}

func document(t *testing.T, gv schema.GroupVersion, rs ...openapi.Resource) *spec3.OpenAPI {
	t.Helper()
	raw, err := openapi.Document(gv, rs)
	if err != nil {
		t.Fatal(err)
	}
	doc := &spec3.OpenAPI{}
	if err := json.Unmarshal(raw, doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func compact(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestACustomResourceIsPublishedAsTheRealServerDoes(t *testing.T) {
	t.Parallel()
	r := thing(t)
	doc := document(t, r.GroupVersion(), r)
	if diff := cmp.Diff([]string{
		"/apis/t.example.com/v1/namespaces/{namespace}/things",
		"/apis/t.example.com/v1/namespaces/{namespace}/things/{name}",
		"/apis/t.example.com/v1/namespaces/{namespace}/things/{name}/status",
		"/apis/t.example.com/v1/things",
	}, slices.Sorted(maps.Keys(doc.Paths.Paths))); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	open := doc.Components.Schemas["com.example.t.v1.Thing"]
	if open == nil {
		t.Fatalf("only %v", slices.Sorted(maps.Keys(doc.Components.Schemas)))
	}
	const meta = `"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]`
	const info = `More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#`
	spec := open.Properties["spec"]
	for field, want := range map[string]string{
		"port": `{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}`,
		"odd":  `{"type":"string","format":"odd"}`,
		"tmpl": `{"type":"object","required":["kind","apiVersion"],"properties":{` +
			`"apiVersion":{"description":"apiVersion defines the versioned schema of this representation of an object. ` + info + `resources","type":"string"},` +
			`"kind":{"description":"kind is a string value representing the type of this object. In CamelCase. ` + info + `types-kinds","type":"string"},` +
			`"metadata":{"description":"Standard object's metadata. ` + info + `metadata",` + meta + `}},"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`,
	} {
		p := spec.Properties[field]
		if diff := cmp.Diff(want, compact(t, &p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
	if spec.Description != "What is wanted." || compact(t, open.Extensions) != `{"x-kubernetes-group-version-kind":[{"group":"t.example.com","kind":"Thing","version":"v1"}]}` {
		t.Errorf("%q, %s", spec.Description, compact(t, open.Extensions))
	}
	if doc.Components.Schemas["com.example.t.v1.ThingList"] == nil || doc.Info.Title != "Kubernetes CRD Swagger" {
		t.Errorf("no list, or %q", doc.Info.Title)
	}
}

func TestOnlyBuiltInTypesMayBePatchedStrategically(t *testing.T) {
	t.Parallel()
	config := builtIn("", "v1", "ConfigMap", "configmaps")
	r := thing(t)
	kinds := func(doc *spec3.OpenAPI, path string) []string {
		return slices.Sorted(maps.Keys(doc.Paths.Paths[path].Patch.RequestBody.Content))
	}
	want := []string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"}
	if diff := cmp.Diff(want, kinds(document(t, r.GroupVersion(), r), "/apis/t.example.com/v1/namespaces/{namespace}/things/{name}")); diff != "" {
		t.Errorf("custom (-want +got):\n%s", diff)
	}
	want = append(want, "application/strategic-merge-patch+json")
	if diff := cmp.Diff(want, kinds(document(t, config.GroupVersion(), config), "/api/v1/namespaces/{namespace}/configmaps/{name}")); diff != "" {
		t.Errorf("built-in (-want +got):\n%s", diff)
	}
}

func TestPatchesAreSaidToValidateFields(t *testing.T) {
	t.Parallel()
	r := thing(t)
	op := document(t, r.GroupVersion(), r).Paths.Paths["/apis/t.example.com/v1/namespaces/{namespace}/things/{name}"].Patch
	var names []string
	for _, p := range op.Parameters {
		names = append(names, p.In+" "+p.Name)
	}
	if diff := cmp.Diff([]string{"query dryRun", "query fieldManager", "query fieldValidation", "query force"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := compact(t, op.Extensions["x-kubernetes-group-version-kind"]); got != `{"group":"t.example.com","kind":"Thing","version":"v1"}` {
		t.Errorf("%s", got)
	}
}

func TestABuiltInTypeIsDescribedByItsGoType(t *testing.T) {
	t.Parallel()
	doc := document(t, schema.GroupVersion{Version: "v1"}, builtIn("", "v1", "Service", "services"))
	port := doc.Components.Schemas["io.k8s.api.core.v1.ServicePort"]
	if port == nil || port.Description != "ServicePort contains information on service's port." {
		t.Fatalf("%+v", port)
	}
	if diff := cmp.Diff([]string{"port"}, port.Required); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	if got := compact(t, doc.Components.Schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]); got != `{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}` {
		t.Errorf("an int-or-string is %s", got)
	}
	for name, want := range map[string]string{
		"io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
		"io.k8s.apimachinery.pkg.apis.meta.v1.Time":       "date-time",
	} {
		if s := doc.Components.Schemas[name]; s == nil || s.Format != want {
			t.Errorf("%s: %+v", name, s)
		}
	}
	spec := doc.Components.Schemas["io.k8s.api.core.v1.ServiceSpec"].Properties["ports"]
	if diff := cmp.Diff(`{"x-kubernetes-patch-merge-key":"port","x-kubernetes-patch-strategy":"merge"}`, compact(t, spec.Extensions)); diff != "" {
		t.Errorf("the ports are merged by (-want +got):\n%s", diff)
	}
	meta := doc.Components.Schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].Properties["finalizers"]
	if diff := cmp.Diff(`{"x-kubernetes-list-type":"set","x-kubernetes-patch-strategy":"merge"}`, compact(t, meta.Extensions)); diff != "" {
		t.Errorf("the finalizers (-want +got):\n%s", diff)
	}
}

func TestStrategicPatchesAreMadeByTheSchemas(t *testing.T) {
	t.Parallel()
	deployment := builtIn("apps", "v1", "Deployment", "deployments")
	schemas, err := openapi.Schemas([]openapi.Resource{deployment})
	if err != nil {
		t.Fatal(err)
	}
	meta := strategicpatch.PatchMetaFromOpenAPIV3{Schema: schemas["io.k8s.api.apps.v1.Deployment"], SchemaList: schemas}
	patch, err := strategicpatch.CreateThreeWayMergePatch(
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}}}}`),
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"2"}]}}}}`),
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"},{"name":"c","image":"1"}]}}}}`),
		meta, true)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"2","name":"a"},{"$patch":"delete","name":"b"}]}}}}`
	if diff := cmp.Diff(want, string(patch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFieldsAreOwnedByTheSchemas(t *testing.T) {
	t.Parallel()
	schemas, err := openapi.Schemas([]openapi.Resource{thing(t)})
	if err != nil {
		t.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "t.example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x", "finalizers": []any{"a.b/c"}},
		"spec": map[string]any{"port": "http", "tags": []any{"a"}, "rows": []any{map[string]any{"k": "1", "v": int64(2)}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:finalizers":{"v:\"a.b/c\"":{}},"f:name":{}},"f:spec":{"f:port":{},"f:rows":{"k:{\"k\":\"1\"}":{".":{},"f:k":{},"f:v":{}}},"f:tags":{"v:\"a\"":{}}}}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheIndexSaysWhereDocumentsAre(t *testing.T) {
	t.Parallel()
	raw, err := openapi.Index(map[string][]byte{
		openapi.Key(schema.GroupVersion{Version: "v1"}):                []byte(`{}`),
		openapi.Key(schema.GroupVersion{Group: "apps", Version: "v1"}): []byte(`{"a":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=` + openapi.Hash([]byte(`{}`)) +
		`"},"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=` + openapi.Hash([]byte(`{"a":1}`)) + `"}}}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if hash := openapi.Hash(nil); len(hash) != 128 {
		t.Errorf("a hash of %d digits", len(hash))
	}
}

func TestATypeThatIsNotKnownIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := openapi.Document(schema.GroupVersion{Group: "odd", Version: "v1"}, []openapi.Resource{builtIn("odd", "v1", "Odd", "odds")}); err == nil {
		t.Error("it was described")
	}
}
