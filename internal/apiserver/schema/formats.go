package schema

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// stringFormats are validated; a format that does not stand here says nothing.
var stringFormats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
	"isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime",
	"k8sshortname", "k8slongname",
}

func knownFormat(s *spec.Schema) bool {
	kind := ""
	if len(s.Type) == 1 {
		kind = s.Type[0]
	}
	switch kind {
	case "", "string":
		return slices.Contains(stringFormats, strings.ReplaceAll(s.Format, "-", ""))
	case "integer":
		return s.Format == "int32" || s.Format == "int64"
	case "number":
		return s.Format == "float" || s.Format == "double"
	}
	return false
}

// Unrecognized returns the formats that the schema of a CRD names and the server
// does not know, which the real one warns of: `unrecognized format "foo"`. Each
// is told once, in the order of their names.
func Unrecognized(openAPIV3Schema map[string]any) []string {
	var found []string
	walk(openAPIV3Schema, func(s map[string]any) {
		format, _ := s["format"].(string)
		kind, _ := s["type"].(string)
		open := &spec.Schema{}
		open.Format = format
		if kind != "" {
			open.Type = spec.StringOrArray{kind}
		}
		if format != "" && !knownFormat(open) {
			found = append(found, format)
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// walk calls visit for a schema and all that is in it.
func walk(s map[string]any, visit func(map[string]any)) {
	visit(s)
	for _, name := range []string{"items", "additionalProperties", "not"} {
		if c, ok := s[name].(map[string]any); ok {
			walk(c, visit)
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		for _, c := range list(s[name]) {
			if c, ok := c.(map[string]any); ok {
				walk(c, visit)
			}
		}
	}
	for _, c := range object(s["properties"]) {
		if c, ok := c.(map[string]any); ok {
			walk(c, visit)
		}
	}
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }
