package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
)

const boxes = `
metadata: {name: boxes.example.com, generation: 3}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boxes, singular: box, kind: Box, listKind: BoxList, shortNames: [bx]}
  versions:
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.count, statusReplicasPath: .status.count, labelSelectorPath: .status.s}}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {count: {type: integer}, color: {type: string, default: red}}}
          status: {type: object, properties: {count: {type: integer}, s: {type: string}}}
  - name: v2
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

// object is one in YAML, whose numbers are whole, as the server reads them.
func object(t *testing.T, text string) catalog.Object {
	t.Helper()
	var obj catalog.Object
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return whole(obj).(catalog.Object)
}

// whole has whole numbers in place of those that YAML makes.
func whole(v any) any {
	switch x := v.(type) {
	case catalog.Object:
		for k := range x {
			x[k] = whole(x[k])
		}
	case []any:
		for i := range x {
			x[i] = whole(x[i])
		}
	case float64:
		return int64(x)
	}
	return v
}

func setup(t *testing.T) (c *catalog.Catalog, stored *catalog.Resource) {
	t.Helper()
	stored, served, err := catalog.Custom(object(t, boxes))
	if err != nil {
		t.Fatal(err)
	}
	c = catalog.New()
	c.Put("boxes.example.com", stored, served)
	return c, stored
}

func TestADefinitionIsServedInTheVersionsThatItSays(t *testing.T) {
	t.Parallel()
	c, stored := setup(t)
	var got []string
	of, served := c.Of("boxes.example.com")
	if of != stored {
		t.Errorf("stored as %v", of)
	}
	for _, r := range served {
		got = append(got, r.Version)
		if r.Stored != stored || r.Table != "boxes.example.com" || r.Generation != 3 {
			t.Errorf("%s: stored as %v in %s, generation %d", r.Version, r.Stored.Version, r.Table, r.Generation)
		}
	}
	if diff := cmp.Diff([]string{"v1beta1", "v1"}, got); diff != "" || stored.Version != "v1" {
		t.Error(diff, stored.Version)
	}
	old := c.Find(schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "boxes"})
	if old.Warning != "example.com/v1beta1 Box is deprecated; use example.com/v1 Box" {
		t.Errorf("it warns: %q", old.Warning)
	}
	if c.ByKind(old.GVK()) != old || c.BuiltIn("example.com", "v1") || !c.BuiltIn("apps", "v1") {
		t.Error("kinds and groups are mixed up")
	}
	before := c.Changes()
	c.Put("boxes.example.com", nil, nil)
	of, served = c.Of("boxes.example.com")
	if c.ByKind(stored.GVK()) != nil || c.Table(stored.Table) != nil || of != nil || served != nil || c.Changes() == before {
		t.Error("it is served although it was taken away")
	}
}

func TestResourcesComeInTheOrderOfDiscovery(t *testing.T) {
	t.Parallel()
	c, _ := setup(t)
	var names []string
	for _, r := range c.All() {
		if r.Group == "" || r.Group == "example.com" {
			names = append(names, strings.TrimPrefix(r.Group+"/"+r.Version+"/"+r.Plural, "/"))
		}
	}
	want := []string{"v1/configmaps", "v1/events", "v1/namespaces", "v1/pods", "v1/secrets", "v1/serviceaccounts", "v1/services", "example.com/v1/boxes", "example.com/v1beta1/boxes"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	tables := map[string]int{}
	for _, r := range c.Tables() {
		tables[r.Table]++
	}
	if tables["boxes.example.com"] != 1 || tables["events"] != 1 || tables[""] != 0 {
		t.Errorf("a table for each: %v", tables)
	}
}

func TestADefinitionThatServesNoVersionIsKnownAndNotServed(t *testing.T) {
	t.Parallel()
	c, stored := setup(t)
	c.Put("boxes.example.com", stored, nil)
	if of, served := c.Of("boxes.example.com"); of != stored || served != nil {
		t.Errorf("it is %v, and serves %v", of, served)
	}
	if diff := cmp.Diff([]string{"boxes.example.com"}, []string{c.Definitions()[0].Definition}); diff != "" || len(c.Definitions()) != 1 {
		t.Error(diff)
	}
	if c.ByKind(stored.GVK()) != nil || c.Table(stored.Table) != nil || slices.Contains(c.Tables(), stored) || slices.Contains(c.All(), stored) {
		t.Error("it is served")
	}
}

func TestAnObjectOfAnotherVersionIsFittedToWhatIsStored(t *testing.T) {
	t.Parallel()
	c, stored := setup(t)
	old := c.Find(schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "boxes"})
	got, err := stored.Convert(old, object(t, `{apiVersion: example.com/v1beta1, kind: Box, metadata: {name: a}, spec: {count: 2, more: 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `{apiVersion: example.com/v1, kind: Box, metadata: {name: a}, spec: {count: 2, color: red}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"spec.color": "red"}, stored.Fields(got)); diff != "" {
		t.Error(diff)
	}
}

func TestAScaleIsReadAndWrittenWhereTheDefinitionSays(t *testing.T) {
	t.Parallel()
	_, stored := setup(t)
	obj := object(t, `{metadata: {name: a}, spec: {count: 2}, status: {count: 1, s: "x=y"}}`)
	scale, complete, err := stored.Scale.View(obj)
	if err != nil || !complete || scale.Spec.Replicas != 2 || scale.Status.Replicas != 1 || scale.Status.Selector != "x=y" {
		t.Fatalf("%+v, %v, %v", scale, complete, err)
	}
	if err := stored.Scale.Set(obj, 7); err != nil {
		t.Fatal(err)
	}
	if scale, _, _ = stored.Scale.View(obj); scale.Spec.Replicas != 7 {
		t.Errorf("%+v", scale)
	}
	if _, complete, err := stored.Scale.View(catalog.Object{}); complete || err != nil {
		t.Errorf("of nothing: %v, %v", complete, err)
	}
	if _, _, err := stored.Scale.View(object(t, `{spec: {count: many}}`)); err == nil {
		t.Error("of a word there is no error")
	}
	for text, want := range map[string]string{
		`{spec: {count: -1}}`:         "non-negative",
		`{spec: {count: 3000000000}}`: "less than or equal to 2147483647",
		`{spec: {count: many}}`:       "accessor error",
		`{status: {s: 1}}`:            "accessor error",
		`{}`:                          "",
	} {
		errs := stored.Traits.Validate(object(t, text), nil, "")
		if got := errs.ToAggregate(); (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
}

func TestAWriteOfTheStatusIsNotToBlameForTheSpec(t *testing.T) {
	t.Parallel()
	_, stored := setup(t)
	for text, want := range map[string]int{
		`{spec: {count: -1}}`:                          0,
		`{spec: {count: many}, status: {count: 1}}`:    0,
		`{spec: {count: -1}, status: {count: -1}}`:     1,
		`{status: {s: 1}}`:                             1,
		`{status: {count: 3000000000, s: ["a", "b"]}}`: 2,
	} {
		if errs := stored.Traits.Validate(object(t, text), object(t, text), "status"); len(errs) != want {
			t.Errorf("%s: %v, want %d errors", text, errs, want)
		}
	}
}

func TestADefinitionThatCannotBeServedIsRefused(t *testing.T) {
	t.Parallel()
	definitions := catalog.New().Find(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for name, c := range map[string]struct{ from, to, want string }{
		"as it is":              {"", "", ""},
		"another name":          {"name: boxes.example.com", "name: other", "metadata.name"},
		"two that are stored":   {"name: v2\n    served: false\n    storage: false", "name: v2\n    served: false\n    storage: true", "exactly one version marked as storage version"},
		"one version twice":     {"- name: v2", "- name: v1", "must contain unique version names"},
		"a scope of its own":    {"scope: Namespaced", "scope: Galaxy", "spec.scope"},
		"no kind":               {"kind: Box,", "", "spec.names.kind"},
		"replicas in status":    {".spec.count", ".status.other", "should be a json path under .spec"},
		"replicas without path": {"specReplicasPath: .spec.count,", "", "spec.versions[1].subresources.scale.specReplicasPath: Required"},
		"a path without a dot":  {".status.s}", "status.s}", "must be a simple json path starting with ."},
		"a selector elsewhere":  {".status.s}", ".metadata.s}", "should be a json path under either .spec or .status"},
	} {
		obj := object(t, strings.Replace(boxes, c.from, c.to, 1))
		definitions.Traits.Prepare(obj, nil)
		got := definitions.Traits.Validate(obj, nil, "").ToAggregate()
		if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

func TestManagedFieldsAreAlikeWhereOnlyTheirTimesDiffer(t *testing.T) {
	t.Parallel()
	entry := func(change func(*metav1.ManagedFieldsEntry)) []metav1.ManagedFieldsEntry {
		now := metav1.Now()
		e := metav1.ManagedFieldsEntry{Manager: "m", Operation: "Update", Time: &now}
		change(&e)
		return []metav1.ManagedFieldsEntry{e}
	}
	one := entry(func(*metav1.ManagedFieldsEntry) {})
	if !catalog.ManagedFieldsAlike(one, entry(func(e *metav1.ManagedFieldsEntry) { e.Time = nil })) {
		t.Error("times count")
	}
	for name, change := range map[string]func(*metav1.ManagedFieldsEntry){
		"manager":     func(e *metav1.ManagedFieldsEntry) { e.Manager = "n" },
		"operation":   func(e *metav1.ManagedFieldsEntry) { e.Operation = "Apply" },
		"subresource": func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" },
		"fields":      func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = &metav1.FieldsV1{} },
	} {
		if catalog.ManagedFieldsAlike(one, entry(change)) {
			t.Errorf("the %s does not count", name)
		}
	}
	if catalog.ManagedFieldsAlike(one, nil) {
		t.Error("one is none")
	}
}
