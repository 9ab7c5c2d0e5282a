package conformance

import (
	"net/http"
	"strings"
	"testing"
)

var status = []behaviour{
	{"A write of the object leaves its status as it is", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1},"status":{"phase":"Up"}}`)
		if o.at("status") != nil {
			t.Errorf("created with %s", o.json())
		}
		e.merge(t, widgetsPath+"/a/status", `{"status":{"phase":"Up"}}`)
		if got := e.merge(t, widgetsPath+"/a", `{"spec":{"size":2},"status":{"phase":"Down"}}`); got.text("status", "phase") != "Up" || got.text("spec", "size") != "2" {
			t.Errorf("a patch: %s", got.json())
		}
		if got := e.put(t, widgetsPath+"/a", e.get(t, widgetsPath+"/a").set("Down", "status", "phase")); got.text("status", "phase") != "Up" {
			t.Errorf("a PUT: %s", got.json())
		}
	}},
	{"A write of the status leaves all but status as it is", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"n":"1"},"finalizers":["example.com/f"]},"spec":{"size":1}}`)
		got := e.merge(t, widgetsPath+"/a/status", `{"metadata":{"labels":{"l":"2"},"annotations":{"n":"2"},"finalizers":null},"spec":{"size":2},"status":{"phase":"Up"}}`)
		e.same(t, "it", `{"apiVersion":"$GROUP/v1","kind":"Widget","metadata":{"name":"a","namespace":"$NS","generation":1,"uid":"x","resourceVersion":"1","creationTimestamp":"x",
			"labels":{"l":"1"},"annotations":{"n":"1"},"finalizers":["example.com/f"]},"spec":{"size":1,"color":"red"},"status":{"phase":"Up"}}`, got)
		e.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
	}},
	{"A PUT of the status writes the status alone", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		got := e.put(t, widgetsPath+"/a/status", e.get(t, widgetsPath+"/a").set("Down", "status", "phase").set(5, "spec", "size").set("x", "metadata", "labels", "l"))
		if got.text("status", "phase") != "Down" || got.text("spec", "size") != "1" || got.at("metadata", "labels") != nil || got.text("metadata", "generation") != "1" {
			t.Errorf("%s", got.json())
		}
		if got.version() == o.version() {
			t.Error("the resourceVersion is the same")
		}
		e.same(t, "read at the subresource", got.json(), e.get(t, widgetsPath+"/a/status"))
	}},
	{"A status that is invalid is refused, whatever the rest is like", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a/status", contentType: mergePatch, body: `{"spec":{"size":99},"status":{"phase":"Odd"}}`}, 422,
			failure(422, "Invalid", `Widget.$GROUP "a" is invalid: status.phase: Unsupported value: "Odd": supported values: "Up", "Down"`,
				`{"name":"a","group":"$GROUP","kind":"Widget","causes":[{"reason":"FieldValueNotSupported","message":"Unsupported value: \"Odd\": supported values: \"Up\", \"Down\"","field":"status.phase"}]}`))
	}},
	{"A status is written although the schema does not allow the rest any more", func(t *testing.T, e *env) {
		const lids = "/apis/own.$GROUP/v1/namespaces/$NS/lids"
		const definition = definitionsPath + "/lids.own.$GROUP"
		e.define(t, strings.Replace(e.own("lids", "Lid"), `"storage":true,`, `"storage":true,"subresources":{"status":{}},`, 1))
		const lid = `{"apiVersion":"own.$GROUP/v1","kind":"Lid","metadata":{"name":"%"},"spec":{"size":"big"}}`
		e.post(t, lids, strings.Replace(lid, "%", "a", 1))
		e.granted(t, request{method: http.MethodPatch, path: definition, contentType: jsonPatch, body: `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema",
			"value":{"type":"object","required":["color"],"properties":{"color":{"type":"string"},"spec":{"type":"object","required":["color"],"properties":{"size":{"type":"string","maxLength":2}}},
			"status":{"type":"object","properties":{"phase":{"type":"string","enum":["Up","Down"]}}}}}}]`})
		eventually(t, func() bool {
			return e.do(t, request{method: http.MethodPost, path: lids + "?dryRun=All", body: strings.Replace(lid, "%", "b", 1)}).code == 422
		})
		got := e.merge(t, lids+"/a/status", `{"status":{"phase":"Up"}}`)
		e.same(t, "a patch", `{"spec":{"size":"big"},"status":{"phase":"Up"}}`, object{"spec": got.at("spec"), "status": got.at("status")})
		if got := e.put(t, lids+"/a/status", got.set("Down", "status", "phase")); got.text("status", "phase") != "Down" {
			t.Errorf("a PUT: %s", got.json())
		}
		got = e.granted(t, request{
			method: http.MethodPatch, path: lids + "/a/status?fieldManager=m&force=true", contentType: applyPatch,
			body: `{"apiVersion":"own.$GROUP/v1","kind":"Lid","metadata":{"name":"a"},"status":{"phase":"Up"}}`,
		})
		if got.text("status", "phase") != "Up" {
			t.Errorf("an apply: %s", got.json())
		}
		const cause = `{"reason":"FieldValueNotSupported","message":"Unsupported value: \"Odd\": supported values: \"Up\", \"Down\"","field":"status.phase"}`
		e.refused(t, request{method: http.MethodPatch, path: lids + "/a/status", contentType: mergePatch, body: `{"status":{"phase":"Odd"}}`}, 422,
			failure(422, "Invalid", `Lid.own.$GROUP "a" is invalid: status.phase: Unsupported value: "Odd": supported values: "Up", "Down"`,
				`{"name":"a","group":"own.$GROUP","kind":"Lid","causes":[`+cause+`]}`))
		e.refused(t, request{method: http.MethodPatch, path: lids + "/a", contentType: mergePatch, body: `{"metadata":{"labels":{"l":"1"}}}`}, 422,
			failure(422, "Invalid", `Lid.own.$GROUP "a" is invalid: color: Required value`,
				`{"name":"a","group":"own.$GROUP","kind":"Lid","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"color"}]}`))
		e.remove(t, "lids")
	}},
	{"The status of a definition is not refused for the rest of it", func(t *testing.T, e *env) {
		e.define(t, e.own("cans", "Can"))
		got := e.merge(t, definitionsPath+"/cans.own.$GROUP/status", `{"status":{"storedVersions":["v0","v1"]}}`)
		e.same(t, "stored versions", `{"v":["v0","v1"]}`, object{"v": got.at("status", "storedVersions")})
		e.remove(t, "cans")
	}},
	{"The status of what is not there is not found", func(t *testing.T, e *env) {
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a/status", contentType: mergePatch, body: `{"status":{"phase":"Up"}}`}, 404,
			failure(404, "NotFound", `widgets.$GROUP "a" not found`, `{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
	{"Without the subresource, status is a field like others", func(t *testing.T, e *env) {
		name := e.unique()
		o := e.post(t, gadgetsPath, `{"apiVersion":"$GROUP/v1","kind":"Gadget","metadata":{"name":"`+name+`"},"status":{"phase":"Up"}}`)
		if o.text("status", "phase") != "Up" {
			t.Errorf("%s", o.json())
		}
		got := e.merge(t, gadgetsPath+"/"+name, `{"status":{"phase":"Down"}}`)
		if got.text("status", "phase") != "Down" || got.text("metadata", "generation") != "2" {
			t.Errorf("%s", got.json())
		}
		e.refused(t, request{method: http.MethodPatch, path: gadgetsPath + "/" + name + "/status", contentType: mergePatch, body: `{}`}, 404,
			failure(404, "NotFound", `gadgets.$GROUP "`+name+`" not found`, `{"name":"`+name+`","group":"$GROUP","kind":"gadgets"}`))
	}},
	{"The status of a built-in type is written at its subresource", func(t *testing.T, e *env) {
		const pods = "/api/v1/namespaces/$NS/pods"
		e.accounted(t)
		e.post(t, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`)
		if got := e.get(t, pods+"/p"); got.text("status", "phase") != "Pending" {
			t.Errorf("created as %s", got.text("status", "phase"))
		}
		if got := e.merge(t, pods+"/p/status", `{"metadata":{"labels":{"a":"b"}},"status":{"phase":"Running"}}`); got.text("status", "phase") != "Running" {
			t.Errorf("%s", got.json())
		}
		if got := e.merge(t, pods+"/p", `{"status":{"phase":"Failed"}}`); got.text("status", "phase") != "Running" {
			t.Errorf("%s", got.json())
		}
	}},
}

var conflicts = []behaviour{
	{"A write from an older resourceVersion is refused, on the object and on its status", func(t *testing.T, e *env) {
		old := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.merge(t, widgetsPath+"/a", `{"spec":{"size":2}}`)
		want := failure(409, "Conflict", `Operation cannot be fulfilled on widgets.$GROUP "a": the object has been modified; please apply your changes to the latest version and try again`,
			`{"name":"a","group":"$GROUP","kind":"widgets"}`)
		body := `{"metadata":{"resourceVersion":"` + old.version() + `"},"spec":{"size":3},"status":{"phase":"Up"}}`
		for _, at := range []string{"", "/status"} {
			e.refused(t, request{method: http.MethodPut, path: widgetsPath + "/a" + at, body: old.json()}, 409, want)
			e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a" + at, body: body, contentType: mergePatch}, 409, want)
		}
	}},
	{"A write from a resourceVersion to come is refused", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		e.refused(t, request{method: http.MethodPut, path: widgetsPath + "/a", body: o.set("999999999999", "metadata", "resourceVersion").json()}, 409,
			failure(409, "Conflict", `Operation cannot be fulfilled on widgets.$GROUP "a": the object has been modified; please apply your changes to the latest version and try again`,
				`{"name":"a","group":"$GROUP","kind":"widgets"}`))
	}},
	{"A merge patch of the status does not heed the uid", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		if got := e.merge(t, widgetsPath+"/a/status", `{"metadata":{"uid":"another"},"status":{"phase":"Up"}}`); got.text("status", "phase") != "Up" || got.uid() == "another" {
			t.Errorf("%s", got.json())
		}
	}},
	{"A merge patch of the object with another uid is refused", func(t *testing.T, e *env) {
		e.post(t, widgetsPath, widget("a", `{"size":1}`))
		const cause = `{"reason":"FieldValueInvalid","message":"Invalid value: \"another\": field is immutable","field":"metadata.uid"}` // the real server finds it twice
		e.refused(t, request{method: http.MethodPatch, path: widgetsPath + "/a", body: `{"metadata":{"uid":"another"},"spec":{"size":2}}`, contentType: mergePatch}, 422,
			failure(422, "Invalid", `Widget.$GROUP "a" is invalid: metadata.uid: Invalid value: "another": field is immutable`,
				`{"name":"a","group":"$GROUP","kind":"Widget","causes":[`+cause+`,`+cause+`]}`))
	}},
	{"A PUT with another uid is refused", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		uid := o.uid()
		a := e.do(t, request{method: http.MethodPut, path: widgetsPath + "/a", body: o.set("another", "metadata", "uid").json()})
		got := a.object(t)
		// In the middle of the message the real server tells where in etcd it looked.
		message := got.text("message")
		if !strings.HasPrefix(message, e.expand(`Operation cannot be fulfilled on widgets.$GROUP "a": `)) ||
			!strings.HasSuffix(message, "Precondition failed: UID in precondition: another, UID in object meta: "+uid) {
			t.Errorf("%s", message)
		}
		e.same(t, "the answer", failure(409, "Conflict", message, `{"name":"a","group":"$GROUP","kind":"widgets"}`), got)
	}},
	{"A test in a JSON patch that fails is Invalid", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		for _, at := range []string{"", "/status"} {
			e.refused(t, request{
				method: http.MethodPatch, path: widgetsPath + "/a" + at, contentType: jsonPatch,
				body: `[{"op":"test","path":"/metadata/uid","value":"another"},{"op":"add","path":"/status","value":{"phase":"Up"}}]`,
			}, 422, failure(422, "Invalid", "the server rejected our request due to an error in our request", `{}`))
		}
		if got := e.get(t, widgetsPath+"/a"); got.version() != o.version() {
			t.Errorf("it was changed: %s", got.json())
		}
	}},
	{"Of two writers from one resourceVersion one is refused", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{"size":1}`))
		codes := make(chan int)
		for _, size := range []int{2, 3} {
			body := object{}.set(o.version(), "metadata", "resourceVersion").set(size, "spec", "size").json()
			go func() {
				a, err := e.ask(t.Context(), request{method: http.MethodPatch, path: widgetsPath + "/a", body: body, contentType: mergePatch})
				if err != nil {
					t.Error(err)
				}
				codes <- a.code
			}()
		}
		if a, b := <-codes, <-codes; a+b != http.StatusOK+http.StatusConflict {
			t.Errorf("%d and %d", a, b)
		}
	}},
}
