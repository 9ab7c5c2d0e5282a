package rbac_test

import (
	"fmt"
	"testing"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/endpoint"
	"github.com/tetherkube/tether/internal/apiserver/rbac"
	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// rights is a store with rights, as JSON by table and name.
func rights(t *testing.T, objects map[string]map[storage.Key]string) (*rbac.Authorizer, *storage.Store) {
	t.Helper()
	s := storage.New(100)
	for table, all := range objects {
		s.Make(table + ".rbac.authorization.k8s.io")
		for key, data := range all {
			put(t, s, table, key, data)
		}
	}
	return rbac.New(s), s
}

func put(t *testing.T, s *storage.Store, table string, key storage.Key, data string) {
	t.Helper()
	table += ".rbac.authorization.k8s.io"
	if _, err := s.Write(table, key, s.Get(table, key), func(v uint64) (*storage.Object, error) {
		return &storage.Object{Key: key, UID: table + key.Name + key.Namespace, Version: v, Data: []byte(data)}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

func binding(namespace, kind, role, subject string) string {
	return fmt.Sprintf(`{"metadata":{"name":"b","namespace":%q},"roleRef":{"kind":%q,"name":%q},"subjects":[%s]}`, namespace, kind, role, subject)
}

func TestAUserMayWhatABindingSaysAndNoMore(t *testing.T) {
	t.Parallel()
	a, _ := rights(t, map[string]map[storage.Key]string{
		"clusterroles": {
			{Name: "reader"}:  `{"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods","pods/log"]}]}`,
			{Name: "one"}:     `{"rules":[{"verbs":["update"],"apiGroups":["flights.com"],"resources":["tickets/status"],"resourceNames":["a"]}]}`,
			{Name: "visitor"}: `{"rules":[{"verbs":["get"],"nonResourceURLs":["/healthz","/open/*"]}]}`,
			{Name: "scaler"}:  `{"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*/scale"]}]}`,
		},
		"roles": {{Namespace: "ns", Name: "writer"}: `{"rules":[{"verbs":["*"],"apiGroups":[""],"resources":["*"]}]}`},
		"clusterrolebindings": {
			{Name: "readers"}:  binding("", "ClusterRole", "reader", `{"kind":"Group","name":"readers"}`),
			{Name: "ones"}:     binding("", "ClusterRole", "one", `{"kind":"User","name":"alice"}`),
			{Name: "visitors"}: binding("", "ClusterRole", "visitor", `{"kind":"User","name":"alice"}`),
			{Name: "scalers"}:  binding("", "ClusterRole", "scaler", `{"kind":"User","name":"carol"}`),
		},
		"rolebindings": {
			{Namespace: "ns", Name: "writers"}: binding("ns", "Role", "writer", `{"kind":"ServiceAccount","name":"robot"}`),
			{Namespace: "ns", Name: "lost"}:    binding("ns", "Role", "nowhere", `{"kind":"User","name":"alice"}`),
		},
	})
	resource := func(verb, group, resource, sub, namespace, name string) endpoint.Target {
		return endpoint.Target{IsResource: true, Verb: verb, Group: group, Resource: resource, Subresource: sub, Namespace: namespace, Name: name}
	}
	alice, reader := registry.User{Name: "alice"}, registry.User{Name: "bob", Groups: []string{"readers"}}
	robot, carol := registry.User{Name: "system:serviceaccount:ns:robot"}, registry.User{Name: "carol"}
	for _, c := range []struct {
		user registry.User
		what endpoint.Target
		want bool
	}{
		{reader, resource("get", "", "pods", "", "any", "p"), true},
		{reader, resource("get", "", "pods", "log", "any", "p"), true},
		{reader, resource("get", "", "pods", "status", "any", "p"), false},
		{reader, resource("delete", "", "pods", "", "any", "p"), false},
		{reader, resource("get", "apps", "pods", "", "any", "p"), false},
		{alice, resource("get", "", "pods", "", "any", "p"), false},
		{alice, resource("update", "flights.com", "tickets", "status", "any", "a"), true},
		{alice, resource("update", "flights.com", "tickets", "status", "any", "b"), false},
		{alice, resource("update", "flights.com", "tickets", "", "any", "a"), false},
		{robot, resource("create", "", "secrets", "", "ns", ""), true},
		{robot, resource("create", "", "secrets", "", "other", ""), false},
		{robot, resource("list", "", "secrets", "", "", ""), false},
		{carol, resource("update", "apps", "deployments", "scale", "ns", "d"), true},
		{carol, resource("update", "apps", "deployments", "", "ns", "d"), false},
		{alice, endpoint.Target{Verb: "get", Path: "/healthz"}, true},
		{alice, endpoint.Target{Verb: "get", Path: "/open/door"}, true},
		{alice, endpoint.Target{Verb: "get", Path: "/shut"}, false},
		{registry.User{Name: "x", Groups: []string{"system:masters"}}, resource("delete", "", "nodes", "", "", "n"), true},
	} {
		if got := a.May(c.user, c.what); got != c.want {
			t.Errorf("%s %+v: %v, want %v", c.user.Name, c.what, got, c.want)
		}
	}
}

func TestARightThatIsWithdrawnIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	a, s := rights(t, map[string]map[storage.Key]string{
		"clusterroles":        {{Name: "reader"}: `{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`},
		"clusterrolebindings": {{Name: "b"}: binding("", "ClusterRole", "reader", `{"kind":"User","name":"alice"}`)},
	})
	what := endpoint.Target{IsResource: true, Verb: "get", Resource: "pods", Name: "p"}
	if !a.May(registry.User{Name: "alice"}, what) {
		t.Error("alice may not")
	}
	put(t, s, "clusterroles", storage.Key{Name: "reader"}, `{"rules":[]}`)
	a.Changed(&catalog.Resource{Group: "rbac.authorization.k8s.io"}, nil)
	if a.May(registry.User{Name: "alice"}, what) {
		t.Error("alice still may")
	}
}
