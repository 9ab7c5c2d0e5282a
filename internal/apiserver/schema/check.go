package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// level is where in the structure a schema stands, which its errors name.
type level int

const (
	atRoot level = iota
	atItem
	atField
)

// place says what is special about where a schema stands.
type place struct {
	level level
	// inMeta is for what describes apiVersion, kind or metadata of an object.
	inMeta bool
	// noDefault is why no default may stand here, and empty where one may.
	noDefault string
}

// checker collects what makes a schema one that a CRD may not have.
type checker struct {
	errs  field.ErrorList // what is no OpenAPI for CRDs, as it is found
	shape field.ErrorList // what is not structural; told after errs, sorted
}

func (c *checker) add(errs ...*field.Error)    { c.errs = append(c.errs, errs...) }
func (c *checker) shapes(errs ...*field.Error) { c.shape = append(c.shape, errs...) }

// unsupported are parts of OpenAPI that no CRD may use.
var unsupported = []string{"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}

var types = []string{"array", "boolean", "integer", "number", "object", "string"}

// schema checks a schema that is part of the structure, and what is in it.
func (c *checker) schema(s map[string]any, path *field.Path, at place) {
	c.common(s, path, at)
	c.kind(s, path, at)
	c.meta(s, path, at)

	inner := place{level: atField, inMeta: at.inMeta, noDefault: at.noDefault}
	if a, ok := s["additionalProperties"].(map[string]any); ok {
		in := inner
		if at.inMeta {
			in.noDefault = " inside additionalProperties applying to object metadata"
		}
		c.schema(a, path.Child("additionalProperties"), in)
	}
	properties := schemas(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		in := inner
		if (at.level == atRoot || s["x-kubernetes-embedded-resource"] == true) && isMeta(name) {
			in.inMeta = true
			if at.level == atRoot {
				in.noDefault = " in top-level " + name
			}
		}
		c.schema(properties[name], path.Child("properties").Key(name), in)
	}
	if items, ok := s["items"].(map[string]any); ok {
		c.schema(items, path.Child("items"), place{level: atItem, inMeta: at.inMeta, noDefault: at.noDefault})
	}
	// The real server looks for the structure of what is narrowed at the root alone.
	c.junctors(s, narrowed{schema: s, path: path, known: at.level == atRoot}, path)
	c.extensions(s, path)
	c.lists(s, path)
}

// common checks what holds for every schema, in the structure or not.
func (c *checker) common(s map[string]any, path *field.Path, at place) {
	kind, _ := s["type"].(string)
	if kind != "" && !slices.Contains(types, kind) {
		c.add(field.NotSupported(path.Child("type"), kind, types))
	}
	if kind == "null" {
		c.add(field.Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	if s["default"] != nil && at.noDefault != "" {
		c.add(field.Forbidden(path.Child("default"), "must not be set"+at.noDefault))
	}
	for _, name := range unsupported {
		if v, ok := s[name]; ok && v != nil && v != "" {
			c.add(field.Forbidden(path.Child(name), name+" is not supported"))
		}
	}
	if _, ok := s["items"].([]any); ok {
		c.add(field.Forbidden(path.Child("items"), "items must be a schema object and not an array"))
	}
	if s["uniqueItems"] == true {
		c.add(field.Forbidden(path.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	if a, ok := s["additionalProperties"]; ok && a != true && len(object(s["properties"])) > 0 {
		c.add(field.Forbidden(path.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
	}
	if pattern, _ := s["pattern"].(string); pattern != "" {
		if _, err := regexp.Compile(pattern); err != nil {
			c.shapes(field.Invalid(path.Child("pattern"), pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err)))
		}
	}
}

// kind checks that a schema has the type that it needs.
func (c *checker) kind(s map[string]any, path *field.Path, at place) {
	kind, _ := s["type"].(string)
	embedded := s["x-kubernetes-embedded-resource"] == true
	preserve := s["x-kubernetes-preserve-unknown-fields"] == true
	const embeddedObject = "must be object if x-kubernetes-embedded-resource is true"
	switch {
	case embedded && kind == "":
		c.shapes(field.Required(path.Child("type"), embeddedObject))
	case embedded && kind != "object":
		c.shapes(field.Invalid(path.Child("type"), kind, embeddedObject))
	case kind != "" || s["x-kubernetes-int-or-string"] == true || preserve:
	case at.level == atRoot:
		c.shapes(field.Required(path.Child("type"), "must not be empty at the root"))
	case at.level == atItem:
		c.shapes(field.Required(path.Child("type"), "must not be empty for specified array items"))
	default:
		c.shapes(field.Required(path.Child("type"), "must not be empty for specified object fields"))
	}
	if at.level == atRoot && kind != "" && kind != "object" {
		c.shapes(field.Invalid(path.Child("type"), kind, "must be object at the root"))
	}
	if kind == "array" && s["items"] == nil {
		c.shapes(field.Required(path.Child("items"), "must be specified"))
	}
	if s["additionalProperties"] != nil {
		if at.level == atRoot {
			c.shapes(field.Forbidden(path.Child("additionalProperties"), "must not be used at the root"))
		}
		if embedded {
			c.shapes(field.Forbidden(path.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"))
		}
	}
	if embedded && !preserve && len(object(s["properties"])) == 0 {
		c.shapes(field.Required(path.Child("properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
	}
	if embedded && at.inMeta {
		c.add(field.Forbidden(path.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"))
	}
}

func (c *checker) extensions(s map[string]any, path *field.Path) {
	const preserve = "x-kubernetes-preserve-unknown-fields"
	if s[preserve] == false {
		c.add(field.Invalid(path.Child(preserve), false, "must be true or undefined"))
	}
	if s["x-kubernetes-int-or-string"] == true {
		for _, name := range []string{preserve, "x-kubernetes-embedded-resource"} {
			if s[name] == true {
				c.shapes(field.Invalid(path.Child(name), true, "must be false if x-kubernetes-int-or-string is true"))
			}
		}
	}
	kind, _ := s["type"].(string)
	if mapType, ok := s["x-kubernetes-map-type"].(string); ok {
		c.wants(kind, "object", "x-kubernetes-map-type", path)
		if mapType != "atomic" && mapType != "granular" {
			c.add(field.NotSupported(path.Child("x-kubernetes-map-type"), mapType, []string{"atomic", "granular"}))
		}
	}
	if listType, ok := s["x-kubernetes-list-type"].(string); ok {
		c.wants(kind, "array", "x-kubernetes-list-type", path)
		if listType != "atomic" && listType != "set" && listType != "map" {
			c.add(field.NotSupported(path.Child("x-kubernetes-list-type"), listType, []string{"atomic", "set", "map"}))
		}
	}
}

// wants checks that an extension stands at a schema of its type.
func (c *checker) wants(kind, want, extension string, path *field.Path) {
	detail := fmt.Sprintf("must be %s if %s is specified", want, extension)
	switch kind {
	case want:
	case "":
		c.add(field.Required(path.Child("type"), detail))
	default:
		c.add(field.Invalid(path.Child("type"), kind, detail))
	}
}

// meta checks what a schema says of an object's apiVersion, kind and metadata.
func (c *checker) meta(s map[string]any, path *field.Path, at place) {
	if at.level != atRoot && s["x-kubernetes-embedded-resource"] != true {
		return
	}
	properties := schemas(s["properties"])
	for _, name := range []string{"kind", "apiVersion"} {
		if p, ok := properties[name]; ok && p["type"] != "string" {
			kind, _ := p["type"].(string)
			c.shapes(field.Invalid(path.Child("properties").Key(name).Child("type"), kind, "must be string"))
		}
	}
	metadata, ok := properties["metadata"]
	if !ok {
		return
	}
	path = path.Child("properties").Key("metadata")
	if kind, _ := metadata["type"].(string); kind != "object" {
		c.shapes(field.Invalid(path.Child("type"), kind, "must be object"))
	}
	if at.level != atRoot {
		return
	}
	restricted := true // to what the schema may say of names
	for name := range object(metadata["properties"]) {
		restricted = restricted && (name == "name" || name == "generateName")
	}
	for name := range metadata {
		restricted = restricted && (name == "type" || name == "properties" || name == "default")
	}
	if !restricted {
		c.shapes(field.Forbidden(path, "must not specify anything other than name and generateName, but metadata is implicitly specified"))
	}
}

// schemas are the members of a map that are schemas.
func schemas(v any) map[string]map[string]any {
	found := map[string]map[string]any{}
	for name, s := range object(v) {
		if s, ok := s.(map[string]any); ok {
			found[name] = s
		}
	}
	return found
}

// same says whether two values have the same JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
