package conformance

import (
	"slices"
	"strings"
	"testing"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Where the objects of the suite's definitions are, in the test's namespace.
const (
	widgetsPath = "/apis/$GROUP/v1/namespaces/$NS/widgets"
	gadgetsPath = "/apis/$GROUP/v1/gadgets" // cluster-scoped
	configMaps  = "/api/v1/namespaces/$NS/configmaps"
)

// widgets is a definition with all that a definition can say: two versions, of
// which the older is deprecated, the status subresource, printer columns,
// selectable fields. The real server does not take selectable fields where two
// versions have the same schema, so these differ in a word.
func (e *env) widgets() string {
	return e.expand(`{
"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.$GROUP"},
"spec":{"group":"$GROUP","scope":"Namespaced",
 "names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList","shortNames":["wd"],"categories":["conformance"]},
 "versions":[
 {"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
  "selectableFields":[{"jsonPath":".spec.color"}],
  "additionalPrinterColumns":[
   {"name":"Size","type":"integer","jsonPath":".spec.size"},
   {"name":"Color","type":"string","jsonPath":".spec.color","description":"What it looks like."},
   {"name":"Phase","type":"string","jsonPath":".status.phase","priority":1},
   {"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}],
  "schema":{"openAPIV3Schema":` + widgetSchema + `}},
 {"name":"v1beta1","served":true,"storage":false,"deprecated":true,"subresources":{"status":{}},
  "schema":{"openAPIV3Schema":` + strings.Replace(widgetSchema, "to test with", "as it was before", 1) + `}}]}}`)
}

const widgetSchema = `{"type":"object","description":"Widget is a thing to test with.","properties":{
 "spec":{"type":"object","description":"What is wanted.","properties":{
  "size":{"type":"integer","minimum":1,"maximum":9,"description":"How big it is."},
  "color":{"type":"string","enum":["red","green","blue"],"default":"red"},
  "note":{"type":"string","maxLength":10,"nullable":true},
  "port":{"x-kubernetes-int-or-string":true},
  "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
  "rows":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["key"],
   "items":{"type":"object","required":["key"],"properties":{"key":{"type":"string"},"value":{"type":"string"}}}},
  "list":{"type":"array","items":{"type":"string"}},
  "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
  "labels":{"type":"object","additionalProperties":{"type":"string"}}}},
 "status":{"type":"object","properties":{
  "phase":{"type":"string","enum":["Up","Down"]},
  "conditions":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],
   "items":{"type":"object","required":["type"],"properties":{"type":{"type":"string"},"status":{"type":"string"}}}}}}}}`

// gadgets is a definition with as little as one can say: cluster-scoped, without
// the status subresource.
func (e *env) gadgets() string {
	return e.expand(`{
"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.$GROUP"},
"spec":{"group":"$GROUP","scope":"Cluster","names":{"plural":"gadgets","kind":"Gadget"},
 "versions":[{"name":"v1","served":true,"storage":true,
  "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
}

// racks is a definition with the scale subresource, whose numbers lie at other
// places than those of built-in types.
func (e *env) racks() string {
	return e.expand(`{
"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"racks.$GROUP"},
"spec":{"group":"$GROUP","scope":"Namespaced","names":{"plural":"racks","kind":"Rack"},
 "versions":[{"name":"v1","served":true,"storage":true,
  "subresources":{"status":{},"scale":{"specReplicasPath":".spec.deep.count","statusReplicasPath":".status.count","labelSelectorPath":".status.selector"}},
  "schema":{"openAPIV3Schema":{"type":"object","properties":{
   "spec":{"type":"object","properties":{"note":{"type":"string"},"deep":{"type":"object","properties":{"count":{"type":"integer","maximum":99}}}}},
   "status":{"type":"object","properties":{"count":{"type":"integer"},"selector":{"type":"string"}}}}}}}]}}`)
}

// define makes a definition, and waits until it is served.
func (e *env) define(t *testing.T, definition string) {
	t.Helper()
	made := e.post(t, definitionsPath, definition)
	e.awaited(t, definitionsPath, made.name(), func(o object) bool { return o.condition("Established") == "True" })
}

// condition is the status of a condition.
func (o object) condition(kind string) string {
	all, _ := o.at("status", "conditions").([]any)
	i := slices.IndexFunc(all, func(c any) bool { m, _ := c.(map[string]any); return m["type"] == kind })
	if i < 0 {
		return ""
	}
	return object(all[i].(map[string]any)).text("status")
}

// widget is a widget as one writes it.
func widget(name, spec string) string {
	return `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
}

// configMap is a ConfigMap as one writes it.
func configMap(name, data string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":` + data + `}`
}
