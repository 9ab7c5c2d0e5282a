package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// thing is a schema with one of everything. What is told of its objects was
// read off the real server.
const thing = `{type: object, required: [spec], properties: {spec: {type: object, required: [size], properties: {
  size: {type: integer, minimum: 1, maximum: 9}, half: {type: number, minimum: 0, exclusiveMinimum: true, multipleOf: 0.5},
  color: {type: string, enum: [red, green]}, name: {type: string, minLength: 2, maxLength: 4, pattern: "^[a-z]+$"},
  when: {type: string, format: date-time}, day: {type: string, format: date}, ip: {type: string, format: ipv4}, odd: {type: string, format: odd},
  small: {type: integer, format: int32}, port: {x-kubernetes-int-or-string: true}, live: {type: boolean}, level: {type: integer, enum: [1, 2]},
  tags: {type: array, maxItems: 2, minItems: 1, x-kubernetes-list-type: set, items: {type: string}},
  many: {type: array, x-kubernetes-list-type: set, items: {type: string}},
  rows: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: integer, maximum: 3}}}},
  pairs: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object, required: [a], properties: {a: {type: string}, b: {type: string, default: z}}}},
  labels: {type: object, maxProperties: 1, additionalProperties: {type: string, maxLength: 2}},
  few: {type: object, minProperties: 1, additionalProperties: {type: string}},
  one: {type: object, properties: {x: {type: string}, "y": {type: string}}, oneOf: [{required: [x]}, {required: ["y"]}]},
  not: {type: object, properties: {x: {type: string}}, not: {required: [x]}},
  tmpl: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true},
  free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {x: {type: string}}}}},
  nul: {type: string, nullable: true}, dflt: {type: object, default: {}, properties: {deep: {type: integer, default: 3}, nn: {type: string}}},
  anymap: {type: object, additionalProperties: true},
  list: {type: array, items: {type: object, properties: {x: {type: string}, d: {type: string, default: dd}}}}
}}, status: {type: object, properties: {phase: {type: string, enum: [Up, Down]}}}}}`

func messages(errs field.ErrorList) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func TestAnObjectThatIsInvalidIsToldSoInTheWordsOfTheRealServer(t *testing.T) {
	t.Parallel()
	s := structural(t, thing)
	for obj, want := range map[string][]string{
		`{}`:                                 {`spec: Required value`},
		`{spec: x}`:                          {`spec: Invalid value: "string": spec in body must be of type object: "string"`},
		`{spec: {size: 1, odd: x, port: 1}}`: nil,
		`{spec: {size: 1, port: a}}`:         nil,
		`{spec: {size: 0}}`:                  {`spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1`},
		`{spec: {size: 10}}`:                 {`spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9`},
		`{spec: {size: "1"}}`:                {`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`},
		`{spec: {size: 1.5}}`: {
			`<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size`,
			`spec.size: Invalid value: "number": spec.size in body must be of type integer: "number"`,
		},
		`{spec: {size: 1, half: 0.75}}`:        {`spec.half: Invalid value: 0.75: spec.half in body should be a multiple of 0.5`},
		`{spec: {size: 1, color: blue}}`:       {`spec.color: Unsupported value: "blue": supported values: "red", "green"`},
		`{spec: {size: 1, level: 3}}`:          {`spec.level: Unsupported value: 3: supported values: "1", "2"`},
		`{spec: {size: 1, name: A}}`:           {`spec.name: Invalid value: "A": spec.name in body should be at least 2 chars long`},
		`{spec: {size: 1, name: abcde}}`:       {`spec.name: Too long: may not be more than 4 bytes`},
		`{spec: {size: 1, name: AB}}`:          {`spec.name: Invalid value: "AB": spec.name in body should match '^[a-z]+$'`},
		`{spec: {size: 1, when: x}}`:           {`spec.when: Invalid value: "x": spec.when in body must be of type date-time: "x"`},
		`{spec: {size: 1, day: x}}`:            {`spec.day: Invalid value: "x": spec.day in body must be of type date: "x"`},
		`{spec: {size: 1, ip: x}}`:             {`spec.ip: Invalid value: "x": spec.ip in body must be of type ipv4: "x"`},
		`{spec: {size: 1, small: 5000000000}}`: {`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.small`},
		`{spec: {size: 1, port: true}}`:        {`spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"`},
		`{spec: {size: 1, live: x}}`:           {`spec.live: Invalid value: "string": spec.live in body must be of type boolean: "string"`},
		`{spec: {size: 1, tags: [a, b, c]}}`:   {`spec.tags: Too many: 3: must have at most 2 items`},
		`{spec: {size: 1, tags: []}}`:          {`spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items`},
		`{spec: {size: 1, many: [a, b, a, a]}}`: {
			`spec.many[2]: Duplicate value: "a"`,
		},
		`{spec: {size: 1, rows: [{k: a}, {k: a}]}}`: {`spec.rows[1]: Duplicate value: {"k":"a"}`},
		`{spec: {size: 1, rows: [{v: 1}]}}`:         {`spec.rows[0].k: Required value`},
		`{spec: {size: 1, rows: [x]}}`: {
			`spec.rows[0]: Invalid value: "string": spec.rows[0] in body must be of type object: "string"`,
			`spec.rows[0]: Invalid value: "x": must be an object for an array of list-type map`,
		},
		`{spec: {size: 1, pairs: [{a: "1", b: z}, {a: "1", b: z}]}}`: {`spec.pairs[1]: Duplicate value: {"a":"1","b":"z"}`},
		`{spec: {size: 1, labels: {a: xxx}}}`:                        {`spec.labels.a: Too long: may not be more than 2 bytes`},
		`{spec: {size: 1, labels: {a: x, b: x}}}`:                    {`spec.labels: Too many: 2: must have at most 1 item`},
		`{spec: {size: 1, few: {}}}`:                                 {`spec.few: Invalid value: 0: spec.few in body should have at least 1 properties`},
		`{spec: {size: 1, one: {}}}`: {
			`<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid`,
			`spec.one.x: Required value`,
		},
		`{spec: {size: 1, not: {x: ""}}}`: {`<nil>: Invalid value: "": "spec.not" must not validate the schema (not)`},
		`{spec: {size: 1, tmpl: {}}}`:     {`spec.tmpl.apiVersion: Required value`, `spec.tmpl.kind: Required value`},
		`{spec: {size: 1, tmpl: {apiVersion: a/b/c, kind: A_}}}`: {
			`spec.tmpl.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
			`spec.tmpl.kind: Invalid value: "A_": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
		},
		`{spec: {size: 1, list: {}}}`:     {`spec.list: Invalid value: "object": spec.list in body must be of type array: "object"`},
		`{spec: {size: 1, list: [null]}}`: {`spec.list[0]: Invalid value: "null": spec.list[0] in body must be of type object: "null"`},
		`{spec: {name: A, color: x}}`: {
			`spec.color: Unsupported value: "x": supported values: "red", "green"`,
			`spec.name: Invalid value: "A": spec.name in body should be at least 2 chars long`,
			`spec.size: Required value`,
		},
	} {
		t.Run(obj, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, messages(s.Validate(parse(t, obj)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTheSchemaDoesNotKnowIsRemovedAndNamed(t *testing.T) {
	t.Parallel()
	obj := parse(t, `{
		apiVersion: t.example.com/v1, kind: Thing, top: 1,
		metadata: {name: o, foo: 1, labels: {a: b}, ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: u, zoo: 1}]},
		spec: {size: 1, foo: 1, list: [{x: "", "y": 1}, {"y": [{z: 1}]}], free: {z: {q: 1}, known: {x: "", "y": 1}},
			anymap: {s: x, o: {q: 1}}, tmpl: {apiVersion: v1, kind: X, metadata: {foo: 1, name: q}, zz: 1}}}`)
	unknown := structural(t, thing).Prune(obj)
	if diff := cmp.Diff([]string{
		"metadata.foo", "metadata.ownerReferences[0].zoo", "spec.anymap.o.q", "spec.foo", "spec.free.known.y",
		"spec.list[0].y", "spec.list[1].y", "top", "spec.tmpl.metadata.foo",
	}, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parse(t, `{
		apiVersion: t.example.com/v1, kind: Thing,
		metadata: {name: o, labels: {a: b}, ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: u}]},
		spec: {size: 1, list: [{x: ""}, {}], free: {z: {q: 1}, known: {x: ""}},
			anymap: {s: x, o: {}}, tmpl: {apiVersion: v1, kind: X, metadata: {name: q}, zz: 1}}}`), obj); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestANameWithDotsInMetadataIsRemoved(t *testing.T) {
	t.Parallel()
	obj := parse(t, `{metadata: {a.b: 1, name: o}, spec: {size: 1, tmpl: {apiVersion: v1, kind: X, metadata: {a.b: 1, name: q}}}}`)
	unknown := structural(t, thing).Prune(obj)
	if diff := cmp.Diff([]string{"metadata.a.b", "spec.tmpl.metadata.a.b"}, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parse(t, `{metadata: {name: o}, spec: {size: 1, tmpl: {apiVersion: v1, kind: X, metadata: {name: q}}}}`), obj); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestListsInWhatIsPreservedAreKept(t *testing.T) {
	t.Parallel()
	s := structural(t, `{type: object, properties: {a: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {in: {type: object}}}}}}`)
	obj := parse(t, `{a: [{"y": {z: 1}, in: {gone: 1}}]}`)
	unknown := s.Prune(obj)
	if diff := cmp.Diff([]string{"a[0].in.gone"}, unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parse(t, `{a: [{"y": {z: 1}, in: {}}]}`), obj); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestDefaultsTakeThePlaceOfWhatIsMissingAndOfNull(t *testing.T) {
	t.Parallel()
	s := structural(t, thing)
	obj := parse(t, `{spec: {size: null, nul: null, color: null, dflt: {deep: null, nn: null}, list: [{x: null, d: null}, {}], labels: {a: null}, free: {z: null}}}`)
	s.Default(obj)
	if diff := cmp.Diff(parse(t, `{spec: {nul: null, dflt: {deep: 3}, list: [{d: dd}, {d: dd}], labels: {}, free: {z: null}}}`), obj); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := parse(t, `{spec: {}}`)
	s.Default(other)
	other["spec"].(map[string]any)["dflt"].(map[string]any)["deep"] = int64(4)
	again := parse(t, `{spec: {}}`)
	s.Default(again)
	if diff := cmp.Diff(parse(t, `{spec: {dflt: {deep: 3}}}`), again); diff != "" {
		t.Errorf("after a change of what was filled in (-want +got):\n%s", diff)
	}
}

func TestAnUpdateMayLeaveWrongWhatWasWrong(t *testing.T) {
	t.Parallel()
	s := structural(t, thing)
	old := parse(t, `{spec: {size: 10, color: blue, many: [a, a], rows: [{k: a, v: 9}, {k: b, v: 9}]}}`)
	for obj, want := range map[string][]string{
		`{spec: {size: 10, color: blue, many: [a, a], rows: [{k: a, v: 9}, {k: b, v: 9}], name: ab}}`: nil,
		`{spec: {size: 10, color: pink, many: [a, a], rows: [{k: b, v: 9}, {k: a, v: 8}]}}`: {
			`spec.color: Unsupported value: "pink": supported values: "red", "green"`,
			`spec.rows[1].v: Invalid value: 8: spec.rows[1].v in body should be less than or equal to 3`,
		},
		`{spec: {color: blue}}`: {`spec.size: Required value`},
	} {
		t.Run(obj, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, messages(s.ValidateUpdate(parse(t, obj), old))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{`spec.many[1]: Duplicate value: "b"`},
		messages(s.ValidateUpdate(parse(t, `{spec: {size: 1, many: [b, b]}}`), parse(t, `{spec: {size: 1, many: [b]}}`)))); diff != "" {
		t.Errorf("a duplicate that is new (-want +got):\n%s", diff)
	}
}

func TestAWriteOfTheStatusIsJudgedByTheStatusAlone(t *testing.T) {
	t.Parallel()
	s := structural(t, thing)
	if diff := cmp.Diff([]string{`status.phase: Unsupported value: "Odd": supported values: "Up", "Down"`},
		messages(s.ValidateStatusUpdate(parse(t, `{spec: {size: 99}, status: {phase: Odd}}`), parse(t, `{}`)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if errs := s.ValidateStatusUpdate(parse(t, `{spec: {size: 99}}`), parse(t, `{}`)); errs != nil {
		t.Errorf("without a status: %v", errs)
	}
	// What is twice in a list counts wherever it is, as on the real server.
	twice, once := parse(t, `{spec: {many: [a, a]}, status: {phase: Up}}`), parse(t, `{spec: {many: [a]}}`)
	if diff := cmp.Diff([]string{`spec.many[1]: Duplicate value: "a"`}, messages(s.ValidateStatusUpdate(twice, once))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if errs := s.ValidateStatusUpdate(twice, twice); errs != nil {
		t.Errorf("what was twice before: %v", errs)
	}
}
