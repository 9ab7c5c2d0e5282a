package conformance

import (
	"net/http"
	"testing"
)

var builtIn = []behaviour{
	{"A Secret takes text and keeps bytes", func(t *testing.T, e *env) {
		got := e.post(t, "/api/v1/namespaces/$NS/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"b"},"data":{"c":"ZA=="}}`)
		e.same(t, "it", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"$NS","uid":"x","resourceVersion":"1","creationTimestamp":"x"},"data":{"a":"Yg==","c":"ZA=="},"type":"Opaque"}`, got)
	}},
	{"A ConfigMap has no generation", func(t *testing.T, e *env) {
		got := e.post(t, configMaps, configMap("c", `{"a":"b"}`))
		e.same(t, "it", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"$NS","uid":"x","resourceVersion":"1","creationTimestamp":"x"},"data":{"a":"b"}}`, got)
	}},
	{"A ConfigMap that is immutable stays as it is", func(t *testing.T, e *env) {
		e.post(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b"},"immutable":true}`)
		const message = "Forbidden: field is immutable when `immutable` is set"
		e.refused(t, request{method: http.MethodPatch, path: configMaps + "/c", contentType: mergePatch, body: `{"data":{"a":"c"}}`}, 422,
			failure(422, "Invalid", `ConfigMap "c" is invalid: data: `+message, `{"name":"c","kind":"ConfigMap","causes":[{"reason":"FieldValueForbidden","message":"`+message+`","field":"data"}]}`))
	}},
	{"A Lease is an object like others", func(t *testing.T, e *env) {
		const leases = "/apis/coordination.k8s.io/v1/namespaces/$NS/leases"
		e.post(t, leases, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.678901Z"}}`)
		got := e.merge(t, leases+"/l", `{"spec":{"holderIdentity":"b","leaseTransitions":1}}`)
		e.same(t, "spec", `{"holderIdentity":"b","leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.678901Z","leaseTransitions":1}`, object(got.at("spec").(map[string]any)))
	}},
	{"A Lease may be made by PUT", func(t *testing.T, e *env) {
		const leases = "/apis/coordination.k8s.io/v1/namespaces/$NS/leases"
		a := e.do(t, request{method: http.MethodPut, path: leases + "/l", body: `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"}}`})
		if a.code != http.StatusCreated {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"An event is one in both groups", func(t *testing.T, e *env) {
		e.post(t, "/apis/events.k8s.io/v1/namespaces/$NS/events", `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.678901Z","type":"Normal","reason":"Why","action":"Do","note":"hi",
			"reportingController":"example.com/c","reportingInstance":"i","regarding":{"kind":"Pod","namespace":"$NS","name":"p"}}`)
		got := e.get(t, "/api/v1/namespaces/$NS/events/e")
		e.same(t, "it", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"$NS","uid":"x","resourceVersion":"1","creationTimestamp":"x"},"eventTime":"2026-01-02T03:04:05.678901Z","type":"Normal","reason":"Why","action":"Do","message":"hi",
			"reportingComponent":"example.com/c","reportingInstance":"i","involvedObject":{"kind":"Pod","namespace":"$NS","name":"p"},"source":{},"firstTimestamp":null,"lastTimestamp":null}`, got)
	}},
	{"A Deployment has its defaults and a generation", func(t *testing.T, e *env) {
		const deployments = "/apis/apps/v1/namespaces/$NS/deployments"
		got := e.post(t, deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
		if got.text("metadata", "generation") != "1" || got.text("spec", "replicas") != "1" || got.text("spec", "strategy", "type") != "RollingUpdate" ||
			got.text("spec", "template", "spec", "restartPolicy") != "Always" {
			t.Errorf("%s", got.json())
		}
		if got := e.merge(t, deployments+"/d", `{"spec":{"replicas":3}}`); got.text("metadata", "generation") != "2" {
			t.Errorf("%s", got.json())
		}
	}},
	{"A pod waits for a node that does not come", func(t *testing.T, e *env) {
		const pods = "/api/v1/namespaces/$NS/pods"
		e.accounted(t)
		got := e.post(t, pods, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}`)
		if got.text("status", "phase") != "Pending" || got.text("spec", "restartPolicy") != "Always" || got.text("spec", "dnsPolicy") != "ClusterFirst" {
			t.Errorf("%s", got.json())
		}
		e.delete(t, pods+"/p")
		e.gone(t, pods, "p")
	}},
	{"A Service has an address", func(t *testing.T, e *env) {
		got := e.post(t, "/api/v1/namespaces/$NS/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)
		if got.text("spec", "clusterIP") == "" || got.text("spec", "type") != "ClusterIP" {
			t.Errorf("%s", got.json())
		}
		e.same(t, "ports", `{"p":[{"port":80,"protocol":"TCP","targetPort":80}]}`, object{"p": got.at("spec", "ports")})
	}},
	{"Deleting a built-in object answers as its type does", func(t *testing.T, e *env) {
		e.post(t, configMaps, configMap("c", `{}`))
		e.same(t, "a ConfigMap", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"c","kind":"configmaps","uid":"x"}}`, e.delete(t, configMaps+"/c"))
		e.post(t, "/api/v1/namespaces/$NS/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}}`)
		if got := e.delete(t, "/api/v1/namespaces/$NS/serviceaccounts/a"); got.text("kind") != "ServiceAccount" {
			t.Errorf("%s", got.json())
		}
	}},
	{"A binding to no role is refused", func(t *testing.T, e *env) {
		a := e.do(t, request{method: http.MethodPost, path: rbacPath + "/namespaces/$NS/rolebindings", body: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Odd","name":"x"}}`})
		if o := a.object(t); a.code != 422 || o.text("message") != `RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef.kind: Unsupported value: "Odd": supported values: "Role", "ClusterRole"` {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"A binding's role cannot be changed", func(t *testing.T, e *env) {
		e.post(t, rbacPath+"/namespaces/$NS/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"}}`)
		a := e.do(t, request{method: http.MethodPatch, path: rbacPath + "/namespaces/$NS/rolebindings/b", contentType: mergePatch, body: `{"roleRef":{"name":"y"}}`})
		if o := a.object(t); a.code != 422 || o.text("message") != `RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"y"}: field is immutable` {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
}

// accounted makes sure of the ServiceAccount that a pod needs, where nothing makes
// it for each namespace.
func (e *env) accounted(t *testing.T) {
	t.Helper()
	a := e.do(t, request{method: http.MethodPost, path: "/api/v1/namespaces/$NS/serviceaccounts", body: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`})
	if a.code != http.StatusCreated && a.code != http.StatusConflict {
		t.Fatalf("%d %s", a.code, a.body)
	}
}
