package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edges are what one meets seldom, and then wants to know.
var edges = []behaviour{
	{"An object has at most one controller among its owners", func(t *testing.T, e *env) {
		owners := `[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"1","controller":true},{"apiVersion":"v1","kind":"ConfigMap","name":"p","uid":"2","controller":true}]`
		message := "Invalid value: " + owners + `: Only one reference can have Controller set to true. Found "true" in references for ConfigMap/o and ConfigMap/p`
		quoted := strings.ReplaceAll(message, `"`, `\"`)
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","ownerReferences":` + owners + `}}`}, 422,
			failure(422, "Invalid", `Widget.$GROUP "a" is invalid: metadata.ownerReferences: `+message,
				`{"name":"a","group":"$GROUP","kind":"Widget","causes":[{"reason":"FieldValueInvalid","message":"`+quoted+`","field":"metadata.ownerReferences"}]}`))
	}},
	{"An owner without a uid is refused", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPost, path: widgetsPath, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":""}]}}`}, 422,
			failure(422, "Invalid", `Widget.$GROUP "a" is invalid: metadata.ownerReferences[0].uid: Required value: must not be empty`,
				`{"name":"a","group":"$GROUP","kind":"Widget","causes":[{"reason":"FieldValueRequired","message":"Required value: must not be empty","field":"metadata.ownerReferences[0].uid"}]}`))
	}},
	{"An apply from an older resourceVersion is refused", func(t *testing.T, e *env) {
		e.applied(t, widgetsPath+"/a", "one", widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=one", contentType: applyPatch, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"1"},"spec":{"size":2}}`}, 409,
			failure(409, "Conflict", `Operation cannot be fulfilled on widgets.$GROUP "a": the object has been modified; please apply your changes to the latest version and try again`,
				`{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
	{"An apply that names a uid makes no object", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=one", contentType: applyPatch, body: `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","uid":"x"}}`}, 409,
			failure(409, "Conflict", `Operation cannot be fulfilled on widgets.$GROUP "a": uid mismatch: the provided object specified uid x, and no existing object was found`,
				`{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
	{"A dry run of a collection's deletion leaves it there", func(t *testing.T, e *env) {
		e.several(t, 2)
		answered := e.delete(t, widgetsPath+"?dryRun=All").names()
		left := e.get(t, widgetsPath).names()
		if diff := cmp.Diff([][]string{{"w0", "w1"}, {"w0", "w1"}}, [][]string{answered, left}); diff != "" {
			t.Errorf("answered and left (-want +got):\n%s", diff)
		}
	}},
	{"A deletion has a policy or the older flag, not both", func(t *testing.T, e *env) {
		e.several(t, 1)
		const message = `Invalid value: \"Background\": orphanDependents and deletionPropagation cannot be both set`
		e.refused(t, request{method: http.MethodDelete, path: widgetsPath + "/w0", body: `{"kind":"DeleteOptions","apiVersion":"v1","orphanDependents":true,"propagationPolicy":"Background"}`}, 422,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,"message":"DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: `+message+`",
			"details":{"group":"meta.k8s.io","kind":"DeleteOptions","causes":[{"reason":"FieldValueInvalid","message":"`+message+`","field":"propagationPolicy"}]}}`)
	}},
	{"A subresource that is none is not found", func(t *testing.T, e *env) {
		e.several(t, 1)
		e.refused(t, request{method: http.MethodGet, path: widgetsPath + "/w0/odd"}, 404,
			failure(404, "NotFound", `widgets.$GROUP "w0" not found`, `{"name":"w0","group":"$GROUP","kind":"widgets"}`))
		e.refused(t, request{method: http.MethodGet, path: configMaps + "/a/status"}, 404,
			failure(404, "NotFound", "the server could not find the requested resource", `{}`))
	}},
	{"A list of no older than what is to come is not answered in time", func(t *testing.T, e *env) {
		got := e.do(t, request{method: http.MethodGet, path: widgetsPath + "?resourceVersion=999999999999"})
		o := got.object(t)
		message := o.text("message")
		if got.code != http.StatusGatewayTimeout || !strings.HasPrefix(message, "Timeout: Too large resource version: 999999999999, current: ") {
			t.Errorf("%d %s", got.code, message)
		}
		e.same(t, "it", failure(504, "Timeout", message, `{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}`), o)
	}},
	{"A watch hears of what comes into a field selector and what leaves it", func(t *testing.T, e *env) {
		w := e.watch(t, widgetsPath+"?fieldSelector=spec.color%3Dgreen&resourceVersion="+e.get(t, widgetsPath).version())
		e.post(t, widgetsPath, widget("a", `{}`))
		for _, spec := range []string{`{"color":"green"}`, `{"size":3}`, `{"color":"blue"}`} {
			e.merge(t, widgetsPath+"/a", `{"spec":`+spec+`}`)
		}
		w.wants(t, "ADDED a", "MODIFIED a", "DELETED a")
	}},
	{"Managed fields are forgotten when asked", func(t *testing.T, e *env) {
		e.several(t, 1)
		if got := e.merge(t, widgetsPath+"/w0", `{"metadata":{"managedFields":[{}]}}`); got.at("metadata", "managedFields") != nil {
			t.Errorf("%s", got.json())
		}
	}},
	{"A manager's updates are one entry, and another manager's take fields from it", func(t *testing.T, e *env) {
		e.post(t, widgetsPath+"?fieldManager=me", widget("a", `{"size":1}`))
		e.granted(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=me", contentType: mergePatch, body: `{"spec":{"note":"x"}}`})
		got := e.granted(t, request{method: http.MethodPatch, path: widgetsPath + "/a?fieldManager=you", contentType: mergePatch, body: `{"spec":{"note":"y"}}`})
		e.same(t, "managed fields", `{"m":[
			{"manager":"me","operation":"Update","apiVersion":"$GROUP/v1","time":"x","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:color":{},"f:size":{}}}},
			{"manager":"you","operation":"Update","apiVersion":"$GROUP/v1","time":"x","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:note":{}}}}]}`,
			object{"m": got.at("metadata", "managedFields")})
	}},
	{"A PUT is validated by field", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`)).set(1, "spec", "odd")
		e.refused(t, request{method: http.MethodPut, path: widgetsPath + "/a?fieldValidation=Strict", body: o.json()}, 400,
			failure(400, "BadRequest", `Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.odd"`, ""))
		a := e.do(t, request{method: http.MethodPut, path: widgetsPath + "/a", body: o.json()})
		if diff := cmp.Diff([]string{`unknown field "spec.odd"`}, a.warnings()); diff != "" {
			t.Errorf("warnings (-want +got):\n%s", diff)
		}
	}},
	{"The last finalizer's removal in a dry run removes nothing", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, withFinalizer)
		deleted := e.delete(t, widgetsPath+"/a")
		e.merge(t, widgetsPath+"/a?dryRun=All", `{"metadata":{"finalizers":null}}`)
		e.same(t, "it", deleted.json(), e.get(t, widgetsPath+"/a"))
		if got := e.merge(t, widgetsPath+"/a", `{"spec":{"size":5}}`); got.text("metadata", "generation") != "3" {
			t.Errorf("a change while it is deleted: %s", got.json())
		}
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"A manager's name is not longer than 128 bytes", func(t *testing.T, e *env) {
		const message = "Too long: may not be more than 128 bytes"
		e.refused(t, request{method: http.MethodPost, path: widgetsPath + "?fieldManager=" + strings.Repeat("a", 129), body: widget("a", `{}`)}, 422,
			failure(422, "Invalid", `CreateOptions.meta.k8s.io "" is invalid: fieldManager: `+message,
				`{"group":"meta.k8s.io","kind":"CreateOptions","causes":[{"reason":"FieldValueTooLong","message":"`+message+`","field":"fieldManager"}]}`))
	}},
	{"A pod on a node has its grace, unless it is taken from it", func(t *testing.T, e *env) {
		e.accounted(t)
		const pods = "/api/v1/namespaces/$NS/pods"
		e.post(t, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`)
		got := e.delete(t, pods+"/p")
		if got.text("metadata", "deletionGracePeriodSeconds") != "30" || got.at("metadata", "deletionTimestamp") == nil {
			t.Errorf("%s", got.json())
		}
		if still := e.get(t, pods+"/p"); still.version() != got.version() {
			t.Errorf("%s", still.json())
		}
		e.delete(t, pods+"/p?gracePeriodSeconds=0")
		e.gone(t, pods, "p")
	}},
}
