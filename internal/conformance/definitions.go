package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// own is a definition of a test's own.
func (e *env) own(plural, kind string) string {
	return e.expand(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + plural + `.own.$GROUP"},
		"spec":{"group":"own.$GROUP","scope":"Namespaced","names":{"plural":"` + plural + `","kind":"` + kind + `"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
}

// remove deletes a definition, and waits until it has gone.
func (e *env) remove(t *testing.T, plural string) {
	t.Helper()
	e.delete(t, definitionsPath+"/"+plural+".own.$GROUP")
	e.gone(t, definitionsPath, plural+".own."+e.group)
}

var definitions = []behaviour{
	{"A definition is established, and then served", func(t *testing.T, e *env) {
		made := e.post(t, definitionsPath, e.own("tops", "Top"))
		names := `{"plural":"tops","singular":"top","kind":"Top","listKind":"TopList"}`
		e.same(t, "what is wanted", `{"group":"own.$GROUP","scope":"Namespaced","names":`+names+`,"conversion":{"strategy":"None"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}`, object(made.at("spec").(map[string]any)))
		got := e.awaited(t, definitionsPath, made.name(), func(o object) bool { return o.condition("Established") == "True" })
		e.same(t, "what is", `{"acceptedNames":`+names+`,"storedVersions":["v1"],"conditions":[
			{"type":"NamesAccepted","status":"True","lastTransitionTime":"x","reason":"NoConflicts","message":"no conflicts found"},
			{"type":"Established","status":"True","lastTransitionTime":"x","reason":"InitialNamesAccepted","message":"the initial names have been accepted"}]}`, observed(got))
		e.post(t, "/apis/own.$GROUP/v1/namespaces/$NS/tops", `{"apiVersion":"own.$GROUP/v1","kind":"Top","metadata":{"name":"a"}}`)
		e.remove(t, "tops")
		eventually(t, func() bool {
			return e.do(t, request{method: http.MethodGet, path: "/apis/own.$GROUP/v1/namespaces/$NS/tops"}).code == http.StatusNotFound
		})
	}},
	{"The instances of a removed definition are gone when it comes back", func(t *testing.T, e *env) {
		const cups = "/apis/own.$GROUP/v1/namespaces/$NS/cups"
		e.define(t, e.own("cups", "Cup"))
		e.post(t, cups, `{"apiVersion":"own.$GROUP/v1","kind":"Cup","metadata":{"name":"a"}}`)
		w := e.watch(t, cups+"?resourceVersion="+e.get(t, cups).version())
		e.remove(t, "cups")
		w.wants(t, "DELETED a")
		e.define(t, e.own("cups", "Cup"))
		if left := e.get(t, cups).names(); len(left) != 0 {
			t.Errorf("left are %q", left)
		}
		e.remove(t, "cups")
	}},
	{"A definition that serves no version keeps its names, and takes its instances with it", func(t *testing.T, e *env) {
		const urns = "/apis/own.$GROUP/v1/namespaces/$NS/urns"
		e.define(t, e.own("urns", "Urn"))
		e.post(t, urns, `{"apiVersion":"own.$GROUP/v1","kind":"Urn","metadata":{"name":"a"}}`)
		served := func(is string) {
			e.granted(t, request{
				method: http.MethodPatch, path: definitionsPath + "/urns.own.$GROUP", contentType: jsonPatch,
				body: `[{"op":"replace","path":"/spec/versions/0/served","value":` + is + `}]`,
			})
		}
		served("false")
		eventually(t, func() bool { return e.do(t, request{method: http.MethodGet, path: urns}).code == http.StatusNotFound })
		e.post(t, definitionsPath, e.own("vases", "Urn"))
		e.awaited(t, definitionsPath, "vases.own."+e.group, func(o object) bool { return o.condition("NamesAccepted") == "False" })
		e.remove(t, "vases")
		served("true")
		eventually(t, func() bool { return e.do(t, request{method: http.MethodGet, path: urns + "/a"}).code == http.StatusOK })
		served("false")
		e.remove(t, "urns")
		e.define(t, e.own("urns", "Urn"))
		eventually(t, func() bool { return e.do(t, request{method: http.MethodGet, path: urns}).code == http.StatusOK })
		if left := e.get(t, urns).names(); len(left) != 0 {
			t.Errorf("left are %q", left)
		}
		e.remove(t, "urns")
	}},
	{"A definition waits for the finalizers of its instances", func(t *testing.T, e *env) {
		const pots = "/apis/own.$GROUP/v1/namespaces/$NS/pots"
		e.define(t, e.own("pots", "Pot"))
		e.post(t, pots, `{"apiVersion":"own.$GROUP/v1","kind":"Pot","metadata":{"name":"a","finalizers":["example.com/f"]}}`)
		w := e.watch(t, pots+"?resourceVersion="+e.get(t, pots).version())
		e.delete(t, definitionsPath+"/pots.own.$GROUP")
		if ev := w.wants(t, "MODIFIED a"); ev.Object.at("metadata", "deletionTimestamp") == nil {
			t.Errorf("%s", ev.Object.json())
		}
		got := e.awaited(t, definitionsPath, "pots.own."+e.group, func(o object) bool { return o.condition("Terminating") == "True" })
		e.same(t, "finalizers", `{"f":["customresourcecleanup.apiextensions.k8s.io"]}`, object{"f": got.at("metadata", "finalizers")})
		e.refused(t, request{method: http.MethodPost, path: pots, body: `{"apiVersion":"own.$GROUP/v1","kind":"Pot","metadata":{"name":"b"}}`}, 403,
			failure(403, "Forbidden", `pots.own.$GROUP "b" is forbidden: create not allowed while custom resource definition is terminating`,
				`{"name":"b","group":"own.$GROUP","kind":"pots"}`))
		e.merge(t, pots+"/a", `{"metadata":{"finalizers":null}}`)
		e.gone(t, definitionsPath, "pots.own."+e.group)
	}},
	{"A schema that changes is what counts from then on", func(t *testing.T, e *env) {
		const jars = "/apis/own.$GROUP/v1/namespaces/$NS/jars"
		e.define(t, e.own("jars", "Jar"))
		e.post(t, jars, `{"apiVersion":"own.$GROUP/v1","kind":"Jar","metadata":{"name":"a"},"spec":{"size":"big"}}`)
		changed := e.granted(t, request{method: http.MethodPatch, path: definitionsPath + "/jars.own.$GROUP", contentType: jsonPatch, body: `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema",
			"value":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"string","maxLength":2}}}}}}]`})
		if changed.text("metadata", "generation") != "2" {
			t.Errorf("generation %s", changed.text("metadata", "generation"))
		}
		bad := request{method: http.MethodPost, path: jars + "?dryRun=All", body: `{"apiVersion":"own.$GROUP/v1","kind":"Jar","metadata":{"name":"b"},"spec":{"size":"big"}}`}
		eventually(t, func() bool { return e.do(t, bad).code == 422 })
		if got := e.merge(t, jars+"/a", `{"metadata":{"labels":{"a":"b"}}}`); got.text("spec", "size") != "big" {
			t.Errorf("what was wrong before: %s", got.json())
		}
		e.remove(t, "jars")
	}},
	{"A definition with the wrong name is refused", func(t *testing.T, e *env) {
		body := strings.Replace(e.own("caps", "Cap"), `"name":"caps.`, `"name":"hats.`, 1)
		const message = `Invalid value: \"hats.own.$GROUP\": must be spec.names.plural+\".\"+spec.group`
		e.refused(t, request{method: http.MethodPost, path: definitionsPath, body: body}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,"message":"CustomResourceDefinition.apiextensions.k8s.io \"hats.own.$GROUP\" is invalid: metadata.name: `+message+`",
			"details":{"name":"hats.own.$GROUP","group":"apiextensions.k8s.io","kind":"CustomResourceDefinition","causes":[{"reason":"FieldValueInvalid","message":"`+message+`","field":"metadata.name"}]}}`)
	}},
	{"A schema that is not structural is refused", func(t *testing.T, e *env) {
		body := strings.Replace(e.own("rugs", "Rug"), `"x-kubernetes-preserve-unknown-fields":true`, `"properties":{"spec":{}}`, 1)
		const message = `Required value: must not be empty for specified object fields`
		e.refused(t, request{method: http.MethodPost, path: definitionsPath, body: body}, 422,
			failure(422, "Invalid", `CustomResourceDefinition.apiextensions.k8s.io "rugs.own.$GROUP" is invalid: spec.validation.openAPIV3Schema.properties[spec].type: `+message,
				`{"name":"rugs.own.$GROUP","group":"apiextensions.k8s.io","kind":"CustomResourceDefinition","causes":[{"reason":"FieldValueRequired","message":"`+message+`","field":"spec.validation.openAPIV3Schema.properties[spec].type"}]}`))
	}},
	{"A name that another definition has is not accepted", func(t *testing.T, e *env) {
		e.define(t, e.own("bees", "Bee"))
		e.post(t, definitionsPath, e.own("others", "Bee"))
		got := e.awaited(t, definitionsPath, "others.own."+e.group, func(o object) bool { return o.condition("NamesAccepted") == "False" })
		if got.condition("Established") != "False" {
			t.Errorf("%s", got.json())
		}
		e.remove(t, "others")
		e.remove(t, "bees")
	}},
	{"A definition without the version that is stored is refused", func(t *testing.T, e *env) {
		body := strings.Replace(e.own("mats", "Mat"), `"storage":true`, `"storage":false`, 1)
		a := e.do(t, request{method: http.MethodPost, path: definitionsPath, body: body})
		var fields []any
		causes, _ := a.object(t).at("details", "causes").([]any)
		for _, c := range causes {
			fields = append(fields, object(c.(map[string]any)).text("reason")+" "+object(c.(map[string]any)).text("field"))
		}
		if a.code != 422 {
			t.Errorf("%d %s", a.code, a.body)
		}
		e.same(t, "causes", `{"c":["FieldValueInvalid spec.versions","FieldValueInvalid status.storedVersions"]}`, object{"c": fields})
	}},
	{"What the server does not know of a format is warned of", func(t *testing.T, e *env) {
		body := strings.Replace(e.own("pens", "Pen"), `"x-kubernetes-preserve-unknown-fields":true`, `"properties":{"a":{"type":"string","format":"odd"}}`, 1)
		a := e.do(t, request{method: http.MethodPost, path: definitionsPath + "?dryRun=All", body: body})
		if diff := cmp.Diff([]string{`unrecognized format "odd"`}, a.warnings()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}},
}

// observed is a definition's status, with its conditions in one order.
func observed(definition object) object {
	s := object(definition.at("status").(map[string]any))
	conditions := s["conditions"].([]any)
	if len(conditions) == 2 && conditions[0].(map[string]any)["type"] == "Established" {
		conditions[0], conditions[1] = conditions[1], conditions[0]
	}
	return s
}

var namespaces = []behaviour{
	{"A namespace is active, and known by a label", func(t *testing.T, e *env) {
		e.same(t, "it", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$NS","uid":"x","resourceVersion":"1","creationTimestamp":"x","labels":{"kubernetes.io/metadata.name":"$NS"}},
			"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`, e.get(t, "/api/v1/namespaces/$NS"))
	}},
	{"kube-system is there from the start, with a uid", func(t *testing.T, e *env) {
		if got := e.get(t, "/api/v1/namespaces/kube-system"); len(got.uid()) != 36 {
			t.Errorf("%s", got.json())
		}
	}},
	{"A namespace that is deleted takes nothing new", func(t *testing.T, e *env) {
		own := e.inNamespace(t)
		own.post(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","finalizers":["example.com/f"]}}`)
		got := own.delete(t, "/api/v1/namespaces/$NS")
		if got.text("status", "phase") != "Terminating" || got.at("metadata", "deletionTimestamp") == nil {
			t.Errorf("%s", got.json())
		}
		a := own.do(t, request{method: http.MethodPost, path: configMaps, body: configMap("a", `{}`)})
		o := a.object(t)
		want := own.expand(`configmaps "a" is forbidden: unable to create new content in namespace $NS because it is being terminated`)
		if a.code != http.StatusForbidden || o.text("reason") != "Forbidden" || o.text("message") != want {
			t.Errorf("%d %s", a.code, a.body)
		}
		causes, _ := o.at("details", "causes").([]any)
		if len(causes) != 1 || causes[0].(map[string]any)["reason"] != "NamespaceTerminating" {
			t.Errorf("%s", a.body)
		}
		own.merge(t, configMaps+"/held", `{"metadata":{"finalizers":null}}`)
	}},
}
