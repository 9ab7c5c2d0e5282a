package conformance

import (
	"net/http"
	"strings"
	"testing"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// may lets a user do something in the test's namespace.
func (e *env) may(t *testing.T, user, group, resources, verbs string) {
	t.Helper()
	name := e.unique()
	e.post(t, rbacPath+"/namespaces/$NS/roles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"`+name+`"},"rules":[{"apiGroups":["`+group+`"],"resources":[`+resources+`],"verbs":[`+verbs+`]}]}`)
	e.post(t, rbacPath+"/namespaces/$NS/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"`+name+`"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"`+name+`"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+user+`"}]}`)
	u := e.as(t, user)
	eventually(t, func() bool { return u.allowed(t, group, resources, verbs) })
}

// allowed says whether the user may do the first of verbs to the first of resources.
func (e *env) allowed(t *testing.T, group, resources, verbs string) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(firstOf(resources), "/")
	got := e.post(t, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":
		{"namespace":"$NS","group":"`+group+`","resource":"`+resource+`","subresource":"`+sub+`","verb":"`+firstOf(verbs)+`"}}}`)
	return got.at("status", "allowed") == true
}

// firstOf is the first of names in quotes.
func firstOf(quoted string) string {
	first, _, _ := strings.Cut(quoted, ",")
	return strings.Trim(first, `"`)
}

var rights = []behaviour{
	{"Who has no right is told which", func(t *testing.T, e *env) {
		alice := e.as(t, "alice")
		for _, c := range []struct{ method, path, body, name, text string }{
			{http.MethodGet, widgetsPath, "", "", `cannot list resource "widgets" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodGet, widgetsPath + "?watch=1", "", "", `cannot watch resource "widgets" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodGet, widgetsPath + "/a", "", "a", `cannot get resource "widgets" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodPost, widgetsPath, widget("a", `{}`), "", `cannot create resource "widgets" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodDelete, widgetsPath + "/a", "", "a", `cannot delete resource "widgets" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodDelete, widgetsPath, "", "", `cannot deletecollection resource "widgets" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodPut, widgetsPath + "/a/status", widget("a", `{}`), "a", `cannot update resource "widgets/status" in API group "$GROUP" in the namespace "$NS"`},
			{http.MethodGet, "/apis/$GROUP/v1/widgets", "", "", `cannot list resource "widgets" in API group "$GROUP" at the cluster scope`},
		} {
			details := `{"group":"$GROUP","kind":"widgets"}`
			subject := `widgets.$GROUP is forbidden`
			if c.name != "" {
				details = `{"name":"a","group":"$GROUP","kind":"widgets"}`
				subject = `widgets.$GROUP "a" is forbidden`
			}
			alice.refused(t, request{method: c.method, path: c.path, body: c.body}, 403, failure(403, "Forbidden", subject+`: User "alice" `+c.text, details))
		}
		alice.refused(t, request{method: http.MethodGet, path: configMaps}, 403,
			failure(403, "Forbidden", `configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "$NS"`, `{"kind":"configmaps"}`))
		alice.refused(t, request{method: http.MethodGet, path: "/api/v1/namespaces/$NS"}, 403,
			failure(403, "Forbidden", `namespaces "$NS" is forbidden: User "alice" cannot get resource "namespaces" in API group "" in the namespace "$NS"`, `{"name":"$NS","kind":"namespaces"}`))
	}},
	{"A right that is given is had at once, and one that is taken is gone", func(t *testing.T, e *env) {
		bob := e.as(t, "bob")
		e.may(t, "bob", e.group, `"widgets"`, `"get","create"`)
		bob.post(t, widgetsPath, widget("a", `{}`))
		bob.get(t, widgetsPath+"/a")
		if a := bob.do(t, request{method: http.MethodGet, path: widgetsPath}); a.code != http.StatusForbidden {
			t.Errorf("a list: %d %s", a.code, a.body)
		}
		if a := bob.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a/status", contentType: mergePatch, body: `{}`}); a.code != http.StatusForbidden {
			t.Errorf("the status: %d %s", a.code, a.body)
		}
		e.delete(t, rbacPath+"/namespaces/$NS/rolebindings")
		eventually(t, func() bool { return !bob.allowed(t, e.group, `"widgets"`, `"get"`) })
	}},
	{"A subresource is a right of its own", func(t *testing.T, e *env) {
		carol := e.as(t, "carol")
		e.post(t, widgetsPath, widget("a", `{}`))
		e.may(t, "carol", e.group, `"widgets/status"`, `"patch"`)
		carol.merge(t, widgetsPath+"/a/status", `{"status":{"phase":"Up"}}`)
		if a := carol.do(t, request{method: http.MethodPatch, path: widgetsPath + "/a", contentType: mergePatch, body: `{}`}); a.code != http.StatusForbidden {
			t.Errorf("%d %s", a.code, a.body)
		}
	}},
	{"A user may ask what they may do", func(t *testing.T, e *env) {
		review := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"$NS","group":"$GROUP","resource":"widgets","verb":"get"}}}`
		got := e.as(t, "alice").do(t, request{method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: review})
		if got.code != http.StatusCreated {
			t.Errorf("%d", got.code)
		}
		e.same(t, "alice", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"resourceAttributes":{"namespace":"$NS","group":"$GROUP","resource":"widgets","verb":"get"}},"status":{"allowed":false}}`, got.object(t))
		if admin := e.post(t, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review); admin.at("status", "allowed") != true {
			t.Errorf("who may do anything: %s", admin.json())
		}
	}},
	{"Everybody may ask what there is", func(t *testing.T, e *env) {
		alice := e.as(t, "alice")
		for _, path := range []string{"/api", "/apis", "/apis/$GROUP/v1", "/version", "/openapi/v3"} {
			if a := alice.do(t, request{method: http.MethodGet, path: path}); a.code != http.StatusOK {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	}},
	{"A token that nobody has is refused", func(t *testing.T, e *env) {
		odd := *e
		cfg := e.server.User(t, "alice")
		cfg.BearerToken = "odd"
		odd.client, odd.base = connect(t, cfg)
		odd.refused(t, request{method: http.MethodGet, path: widgetsPath}, 401, failure(401, "Unauthorized", "Unauthorized", ""))
	}},
}
