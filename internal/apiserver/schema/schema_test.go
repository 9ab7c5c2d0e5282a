package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/apiserver/schema"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return whole(obj).(map[string]any)
}

// whole makes numbers as they are in objects that a server decodes.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func structural(t *testing.T, text string) *schema.Structural {
	t.Helper()
	s, err := schema.New(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASchemaThatIsNotStructuralIsRefusedInTheWordsOfTheRealServer(t *testing.T) {
	t.Parallel()
	const a = "openAPIV3Schema.properties[spec].properties[a]"
	for name, test := range map[string]struct {
		schema string
		want   []string
	}{
		"a field without a type": {`{type: object, properties: {spec: {type: object, properties: {a: {}}}}}`, []string{
			a + `.type: Required value: must not be empty for specified object fields`,
		}},
		"a list without items": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array}}}}}`, []string{
			a + `.items: Required value: must be specified`,
		}},
		"items without a type": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array, items: {}}}}}}`, []string{
			a + `.items.type: Required value: must not be empty for specified array items`,
		}},
		"a root without a type": {`{properties: {}}`, []string{
			`openAPIV3Schema.type: Required value: must not be empty at the root`,
		}},
		"a root that is no object": {`{type: string}`, []string{
			`openAPIV3Schema.type: Invalid value: "string": must be object at the root`,
		}},
		"a reference": {`{type: object, properties: {spec: {type: object, properties: {a: {type: string, $ref: "#/x"}}}}}`, []string{
			a + `.$ref: Forbidden: $ref is not supported`,
		}},
		"properties and others": {`{type: object, properties: {spec: {type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}}}`, []string{
			`openAPIV3Schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
		}},
		"structure in a junctor": {`{type: object, properties: {spec: {type: object, properties: {a: {type: string}}, anyOf: [{required: [a], type: object, properties: {b: {minLength: 1}, a: {description: x}}}]}}}`, []string{
			`openAPIV3Schema.properties[spec].anyOf[0].properties[a].description: Forbidden: must be empty to be structural`,
			`openAPIV3Schema.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural`,
		}},
		"metadata restricted": {`{type: object, properties: {metadata: {type: object, properties: {labels: {type: object}}}}}`, []string{
			`openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
		}},
		"kind and metadata of other types": {`{type: object, properties: {kind: {type: integer}, metadata: {type: string}}}`, []string{
			`openAPIV3Schema.properties[kind].type: Invalid value: "integer": must be string`,
			`openAPIV3Schema.properties[metadata].type: Invalid value: "string": must be object`,
		}},
		"defaults that do not fit": {`{type: object, properties: {spec: {type: object, properties: {a: {type: integer, default: x}, b: {type: object, default: {q: 1}, properties: {x: {type: integer}}}}}}}`, []string{
			a + `.default: Invalid value: "string":  in body must be of type integer: "string"`,
			`openAPIV3Schema.properties[spec].properties[b].default: Invalid value: {"q":1}: must not have unknown fields`,
		}},
		"a default in metadata": {`{type: object, properties: {metadata: {type: object, properties: {name: {type: string, default: x}}}}}`, []string{
			`openAPIV3Schema.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`,
		}},
		"a type that is none": {`{type: object, properties: {spec: {type: object, properties: {a: {type: text}}}}}`, []string{
			a + `.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
		}},
		"the type null": {`{type: object, properties: {spec: {type: object, properties: {a: {type: "null"}}}}}`, []string{
			a + `.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"`,
			a + `.type: Forbidden: type cannot be set to null, use nullable as an alternative`,
		}},
		"a set of what is granular": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: object}}}}}}`, []string{
			a + `.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`,
		}},
		"keys that are not there or optional": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, z], items: {type: object, properties: {k: {type: string}}}}}}}}`, []string{
			a + `.x-kubernetes-list-map-keys: Invalid value: ["k","z"]: entries must all be names of item properties`,
			a + `.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
		}},
		"a list of scalars with keys": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array, x-kubernetes-list-type: map, items: {type: string}}}}}}`, []string{
			a + `.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
			a + `.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map`,
		}},
		"a pattern that is none": {`{type: object, properties: {spec: {type: object, properties: {a: {type: string, pattern: "["}}}}}`, []string{
			a + ".pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
		}},
		"unique items": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}}}`, []string{
			a + `.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
		}},
		"a resource that is no object": {`{type: object, properties: {spec: {type: object, properties: {a: {x-kubernetes-embedded-resource: true}}}}}`, []string{
			a + `.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields`,
			a + `.type: Required value: must be object if x-kubernetes-embedded-resource is true`,
		}},
		"extensions at other types": {`{type: object, properties: {spec: {type: object, properties: {a: {type: string, x-kubernetes-map-type: atomic}, b: {type: object, x-kubernetes-list-type: odd}}}}}`, []string{
			a + `.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified`,
			`openAPIV3Schema.properties[spec].properties[b].type: Invalid value: "object": must be array if x-kubernetes-list-type is specified`,
			`openAPIV3Schema.properties[spec].properties[b].x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map"`,
		}},
		"int-or-string that is preserved": {`{type: object, properties: {spec: {type: object, properties: {a: {x-kubernetes-int-or-string: true, x-kubernetes-preserve-unknown-fields: true}}}}}`, []string{
			a + `.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true`,
		}},
		"anything at the root": {`{type: object, additionalProperties: true}`, []string{
			`openAPIV3Schema.additionalProperties: Forbidden: must not be used at the root`,
		}},
		"items of more than one schema": {`{type: object, properties: {spec: {type: object, properties: {a: {type: array, items: [{type: string}]}}}}}`, []string{
			a + `.items: Forbidden: items must be a schema object and not an array`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schema.New(parse(t, test.schema))
			var not *schema.NotStructural
			if !errors.As(err, &not) {
				t.Fatalf("%v", err)
			}
			var got []string
			for _, e := range not.Under("spec.validation") {
				got = append(got, strings.TrimPrefix(e.Error(), "spec.validation."))
			}
			for i, e := range not.Errors {
				if e.Error() != got[i] {
					t.Errorf("%s, and under a path %s", e, got[i])
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTheRealServerAcceptsIsStructural(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"an int-or-string of either type": `{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}}`,
		"one that is narrowed":            `{type: object, properties: {a: {x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: "^1"}]}}}`,
		"metadata with a rule for names":  `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}}}`,
		"a type that is preserved":        `{type: object, properties: {a: {x-kubernetes-preserve-unknown-fields: true}}}`,
		"an unknown format":               `{type: object, properties: {a: {type: string, format: odd}}}`,
		"rules in CEL":                    `{type: object, x-kubernetes-validations: [{rule: "self.a == 1"}], properties: {a: {type: integer}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			structural(t, text)
		})
	}
}

func TestUnknownFormatsAreTold(t *testing.T) {
	t.Parallel()
	got := schema.Unrecognized(parse(t, `{type: object, properties: {
		a: {type: string, format: odd}, b: {type: array, items: {type: integer, format: date}},
		c: {type: string, format: date-time}, d: {type: object, additionalProperties: {type: string, format: odd}}, e: {type: number, format: double}}}`))
	if diff := cmp.Diff([]string{"date", "odd"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsPublishedIsNotTheSchemasOwn(t *testing.T) {
	t.Parallel()
	s := structural(t, `{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string, maxLength: 2}}}}}}`)
	open := s.OpenAPI()
	keys, _ := open.Properties["a"].Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	if diff := cmp.Diff([]string{"k"}, keys); diff != "" {
		t.Errorf("the keys (-want +got):\n%s", diff)
	}
	delete(open.Properties, "a")
	if errs := s.Validate(parse(t, `{a: [{k: abc}]}`)); len(errs) != 1 {
		t.Errorf("after a change of the copy: %v", errs)
	}
}
