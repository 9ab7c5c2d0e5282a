package catalog

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	structure "github.com/tetherkube/tether/internal/apiserver/schema"
	"github.com/tetherkube/tether/internal/apiserver/table"
)

//go:embed definition.yaml
var definitionSchema []byte

// definitions is the resource of the definitions of custom resources.
func definitions() *Resource {
	r := builtin("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions").
		short("crd", "crds").in("api-extensions").status().clustered()
	var open Object
	if err := yaml.Unmarshal(definitionSchema, &open); err != nil {
		panic("the schema of definitions: " + err.Error())
	}
	model, err := newStructuralType(r.GVK(), open)
	if err != nil {
		panic("the schema of definitions: " + err.Error())
	}
	model.fill = fillDefinition
	r.Model = model
	r.Traits.NeedsVersion, r.Traits.Generation = true, true
	r.Traits.Prepare, r.Traits.Validate, r.Traits.Warnings = prepareDefinition, validateDefinition, warnOfFormats
	return r
}

func fillDefinition(obj Object) {
	spec, ok := obj["spec"].(Object)
	if !ok {
		return
	}
	if names, ok := spec["names"].(Object); ok {
		kind, _ := names["kind"].(string)
		orDefault(names, "singular", strings.ToLower(kind))
		orDefault(names, "listKind", kind+"List")
	}
	if _, ok := spec["conversion"]; !ok {
		spec["conversion"] = Object{"strategy": "None"}
	}
}

// prepareDefinition keeps the versions that objects may be stored in.
func prepareDefinition(obj, old Object) {
	if old == nil {
		obj["status"] = Object{}
	}
	status := Child(obj, "status")
	stored, _ := status["storedVersions"].([]any)
	for _, v := range versions(obj) {
		if v["storage"] == true && !slices.Contains(stored, v["name"]) {
			stored = append(slices.Clone(stored), v["name"])
		}
	}
	status["storedVersions"] = stored
}

// warnOfFormats tells of formats that the server does not know.
func warnOfFormats(obj, old Object) (warnings []string) {
	known := map[string]bool{}
	formats := func(definition Object) (found []string) {
		for _, v := range versions(definition) {
			open, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema") // no map has none
			found = append(found, structure.Unrecognized(open)...)
		}
		return found
	}
	if old != nil {
		for _, f := range formats(old) {
			known[f] = true
		}
	}
	for _, f := range formats(obj) {
		if !known[f] {
			known[f] = true
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", f))
		}
	}
	return warnings
}

func versions(definition Object) []Object {
	list, _, _ := unstructured.NestedSlice(definition, "spec", "versions") // copies; no list counts as none
	var found []Object
	for _, v := range list {
		if version, ok := v.(Object); ok {
			found = append(found, version)
		}
	}
	return found
}

func text(obj Object, path ...string) string {
	s, _, _ := unstructured.NestedString(obj, path...) // another type counts as none
	return s
}

func texts(obj Object, path ...string) []string {
	s, _, _ := unstructured.NestedStringSlice(obj, path...) // another type counts as none
	return s
}

// validateDefinition finds what would keep a definition from being served.
func validateDefinition(obj, old Object, subresource string) (errs field.ErrorList) {
	if subresource == "status" {
		return nil // who moves objects to another version takes the old one off storedVersions there
	}
	root := field.NewPath("spec")
	group, plural := text(obj, "spec", "group"), text(obj, "spec", "names", "plural")
	for _, required := range [][]string{{"group"}, {"scope"}, {"names", "plural"}, {"names", "kind"}} {
		if text(obj, append([]string{"spec"}, required...)...) == "" {
			errs = append(errs, field.Required(root.Child(required[0], required[1:]...), ""))
		}
	}
	if want, name := plural+"."+group, text(obj, "metadata", "name"); name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, "must be spec.names.plural+\".\"+spec.group"))
	}
	if scope := text(obj, "spec", "scope"); scope != "" && scope != "Namespaced" && scope != "Cluster" {
		errs = append(errs, field.NotSupported(root.Child("scope"), scope, []string{"Cluster", "Namespaced"}))
	}
	if strategy := text(obj, "spec", "conversion", "strategy"); strategy != "" && strategy != "None" {
		errs = append(errs, field.NotSupported(root.Child("conversion", "strategy"), strategy, []string{"None"}))
	}
	if old != nil && text(old, "spec", "scope") != text(obj, "spec", "scope") {
		errs = append(errs, field.Invalid(root.Child("scope"), text(obj, "spec", "scope"), validation.FieldImmutableErrorMsg))
	}
	return append(errs, validateVersions(obj, root.Child("versions"))...)
}

func validateVersions(obj Object, path *field.Path) (errs field.ErrorList) {
	all := versions(obj)
	storing, names := 0, map[string]bool{}
	// Where all versions have one schema, the real server keeps it once.
	alike := same(all, "schema")
	if len(all) > 0 && same(all, "subresources") {
		errs = append(errs, validateScale(all[0], field.NewPath("spec", "subresources"))...)
	}
	for i, v := range all {
		at := path.Index(i)
		name, _ := v["name"].(string)
		if names[name] {
			errs = append(errs, field.Invalid(path, name, "must contain unique version names"))
		}
		names[name] = true
		for _, message := range validation.NameIsDNS1035Label(name, false) {
			errs = append(errs, field.Invalid(at.Child("name"), name, message))
		}
		if v["storage"] == true {
			storing++
		}
		if !same(all, "subresources") {
			errs = append(errs, validateScale(v, at.Child("subresources"))...)
		}
		open, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema") // no map counts as none
		if open == nil {
			errs = append(errs, field.Required(at.Child("schema", "openAPIV3Schema"), "schemas are required"))
			continue
		}
		switch _, err := structure.New(open); err := err.(type) { //nolint:errorlint // New says which type it is
		case nil:
		case *structure.NotStructural:
			if alike {
				errs = append(errs, err.Under("spec.validation")...)
				continue
			}
			errs = append(errs, err.Under(at.Child("schema").String())...)
		default:
			errs = append(errs, field.Invalid(at.Child("schema"), "", err.Error()))
		}
	}
	if storing != 1 {
		errs = append(errs, field.Invalid(path, fmt.Sprint(len(all))+" versions", "must have exactly one version marked as storage version"))
	}
	stored := texts(obj, "status", "storedVersions")
	if len(stored) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("status", "storedVersions"), []string{}, "must have at least one stored version"))
	}
	for _, stored := range stored {
		if !names[stored] {
			errs = append(errs, field.Invalid(field.NewPath("status", "storedVersions"), stored, "missing from spec.versions; ensure it is present"))
		}
	}
	return errs
}

// same says whether all versions say the same under a key.
func same(all []Object, key string) bool {
	return !slices.ContainsFunc(all, func(v Object) bool { return !reflect.DeepEqual(v[key], all[0][key]) })
}

// Custom makes the resources that a valid definition has the server serve. The
// one that is stored comes first, whether it is served or not.
func Custom(definition Object) (stored *Resource, served []*Resource, err error) {
	terminating := text(definition, "metadata", "deletionTimestamp") != ""
	for _, v := range versions(definition) {
		r, err := defined(definition, v)
		if err != nil {
			return nil, nil, err
		}
		r.Terminating = terminating
		r.Generation = (&unstructured.Unstructured{Object: definition}).GetGeneration()
		if v["served"] == true {
			served = append(served, r)
		}
		if v["storage"] == true {
			stored = r
		}
	}
	if stored == nil {
		return nil, nil, fmt.Errorf("no version of %s is stored", text(definition, "metadata", "name"))
	}
	for _, r := range served {
		r.Stored = stored
	}
	stored.Stored = stored
	return stored, served, nil
}

// defined is the resource that one version of a definition makes.
func defined(definition, version Object) (*Resource, error) {
	r := &Resource{
		Group: text(definition, "spec", "group"), Version: text(version, "name"),
		Plural: text(definition, "spec", "names", "plural"), Singular: text(definition, "spec", "names", "singular"),
		Kind: text(definition, "spec", "names", "kind"), ListKind: text(definition, "spec", "names", "listKind"),
		ShortNames: texts(definition, "spec", "names", "shortNames"), Categories: texts(definition, "spec", "names", "categories"),
		Namespaced: text(definition, "spec", "scope") == "Namespaced",
		Custom:     true, Definition: text(definition, "metadata", "name"), DefinitionUID: text(definition, "metadata", "uid"),
		Traits: Traits{NeedsVersion: true, Generation: true, Name: validation.NameIsDNSSubdomain},
	}
	r.Table = r.GroupResource().String()
	_, r.Status, _ = unstructured.NestedFieldNoCopy(version, "subresources", "status") // another shape has no status
	if r.Scale = scaleOf(version); r.Scale != nil {
		r.Traits.Validate = r.Scale.validate
	}
	open, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema") // a valid definition has one
	printer, _ := version["additionalPrinterColumns"].([]any)
	columns, err := table.Custom(printer)
	if err != nil {
		return nil, err
	}
	r.Columns = columns
	if version["deprecated"] == true {
		r.Warning = text(version, "deprecationWarning")
		if r.Warning == "" {
			r.Warning = fmt.Sprintf("%s %s is deprecated", r.GroupVersion(), r.Kind) + successor(definition, r)
		}
	}
	model, err := newStructuralType(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, open)
	if err != nil {
		return nil, err
	}
	r.Model = model
	selectable, _ := version["selectableFields"].([]any)
	for _, s := range selectable {
		if f, ok := s.(Object); ok {
			field, err := selectableField(text(f, "jsonPath"))
			if err != nil {
				return nil, err
			}
			r.Selectable = append(r.Selectable, field)
		}
	}
	return r, nil
}

// successor says which version to use in place of a deprecated one.
func successor(definition Object, r *Resource) string {
	best := ""
	for _, v := range versions(definition) {
		name, _ := v["name"].(string)
		if v["served"] == true && v["deprecated"] != true && compareVersions(r.Version, name) < 0 && (best == "" || compareVersions(best, name) < 0) {
			best = name
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; use %s/%s %s", r.Group, best, r.Kind)
}

func selectableField(path string) (Selectable, error) {
	if !strings.HasPrefix(path, ".") {
		return Selectable{}, fmt.Errorf("selectable field %q: want a simple path that begins with a dot", path)
	}
	fields := strings.Split(strings.TrimPrefix(path, "."), ".")
	return Selectable{Name: strings.TrimPrefix(path, "."), Value: func(obj Object) string {
		v, found, err := unstructured.NestedFieldNoCopy(obj, fields...)
		if err != nil || !found || v == nil {
			return ""
		}
		return fmt.Sprint(v)
	}}, nil
}
