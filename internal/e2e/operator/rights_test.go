package operator

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

// grant is one verb on one resource of one rule.
type grant struct {
	kind, role string // where the rule stands
	rule       int
	verb       string
	group      string
	resource   string // with the subresource
	name       string // "" for all
}

func (g grant) String() string {
	what := g.resource
	if g.group != "" {
		what += "." + g.group
	}
	return strings.TrimSpace(g.verb + " " + what + " " + g.name)
}

// grants are all that install.yaml gives the controller.
func grants(t *testing.T) (all []grant) {
	t.Helper()
	add := func(kind, role string, rules []rbacv1.PolicyRule) {
		for i, rule := range rules {
			for _, verb := range rule.Verbs {
				all = append(all, grant{kind, role, i, verb, rule.APIGroups[0], rule.Resources[0], strings.Join(rule.ResourceNames, ",")})
			}
			if len(rule.APIGroups) != 1 || len(rule.Resources) != 1 || len(rule.ResourceNames) > 1 {
				t.Errorf("rule %d of %s %s is not about one resource: write one rule for each", i, kind, role)
			}
		}
	}
	objects := unit(t)
	for _, obj := range objects {
		switch name := obj.GetName(); {
		case !strings.HasPrefix(name, "ticket-controller"):
		case obj.GetKind() == "ClusterRole":
			add("ClusterRole", name, find[rbacv1.ClusterRole](t, objects, "ClusterRole", name).Rules)
		case obj.GetKind() == "Role":
			add("Role", name, find[rbacv1.Role](t, objects, "Role", name).Rules)
		}
	}
	return all
}

// ask is a request of the controller's account, by the API server's own record.
type ask struct {
	verb, group, resource string
	code                  int
}

func (a ask) is(g grant) bool {
	return a.verb == g.verb && a.group == g.group && a.resource == g.resource
}

func asOf(r controlplane.Request) ask {
	resource := r.Object.Resource
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return ask{r.Verb, r.Object.Group, resource, r.Response.Code}
}

// asked is every request of the account so far, each kind once.
func asked(t *testing.T) (all []ask) {
	t.Helper()
	audit, err := cluster.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	requests, err := audit.Requests(func(r controlplane.Request) bool { return r.User.Name == account })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if a := asOf(r); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}
