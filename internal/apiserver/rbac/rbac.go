// Package rbac decides what a user of a fake API server may do, by the roles and
// bindings that are stored in the server itself.
package rbac

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/endpoint"
	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// masters may do everything.
const masters = "system:masters"

// Authorizer answers by the rights as they are stored. It is safe for concurrent
// use.
type Authorizer struct {
	store   *storage.Store
	changes atomic.Uint64 // of the rights

	mu     sync.Mutex // guards what follows
	read   bool
	at     uint64 // of changes, when grants were read
	grants []grant
}

// grant is the rules of one binding.
type grant struct {
	namespace string // empty: everywhere
	subjects  []rbacv1.Subject
	rules     []rbacv1.PolicyRule
}

// New makes an authorizer over a store.
func New(store *storage.Store) *Authorizer { return &Authorizer{store: store} }

// Changed is to be told of every change in the store.
func (a *Authorizer) Changed(res *catalog.Resource, _ *storage.Event) {
	if res.Group == rbacv1.GroupName {
		a.changes.Add(1)
	}
}

// May says whether a user may do something.
func (a *Authorizer) May(user registry.User, t endpoint.Target) bool {
	if slices.Contains(user.Groups, masters) {
		return true
	}
	for _, g := range a.all() {
		if g.namespace != "" && (!t.IsResource || g.namespace != t.Namespace) || !binds(g, user) {
			continue
		}
		for _, rule := range g.rules {
			if allows(rule, t) {
				return true
			}
		}
	}
	return false
}

// Rules are all that a user may do in a namespace.
func (a *Authorizer) Rules(user registry.User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	for _, g := range a.all() {
		if g.namespace != "" && g.namespace != namespace || !binds(g, user) {
			continue
		}
		for _, r := range g.rules {
			if len(r.Resources) > 0 {
				status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
					Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
				})
			}
			if len(r.NonResourceURLs) > 0 {
				status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
			}
		}
	}
	return status
}

func binds(g grant, user registry.User) bool {
	return slices.ContainsFunc(g.subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == user.Name
		case rbacv1.GroupKind:
			return slices.Contains(user.Groups, s.Name)
		case rbacv1.ServiceAccountKind:
			namespace := s.Namespace
			if namespace == "" {
				namespace = g.namespace
			}
			return user.Name == "system:serviceaccount:"+namespace+":"+s.Name
		}
		return false
	})
}

func allows(rule rbacv1.PolicyRule, t endpoint.Target) bool {
	if !has(rule.Verbs, t.Verb) {
		return false
	}
	if !t.IsResource {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
			prefix, open := strings.CutSuffix(url, "*")
			return url == t.Path || open && strings.HasPrefix(t.Path, prefix)
		})
	}
	resource := t.Resource
	if t.Subresource != "" {
		resource += "/" + t.Subresource
	}
	named := len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, t.Name)
	return named && has(rule.APIGroups, t.Group) &&
		(has(rule.Resources, resource) || t.Subresource != "" && slices.Contains(rule.Resources, "*/"+t.Subresource))
}

func has(list []string, s string) bool { return slices.Contains(list, s) || slices.Contains(list, "*") }

// all is every grant, read again after a change.
func (a *Authorizer) all() []grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.changes.Load()
	if !a.read || a.at != now {
		a.grants, a.at, a.read = a.load(), now, true
	}
	return a.grants
}

func (a *Authorizer) load() []grant {
	var grants []grant
	for _, o := range a.list("clusterrolebindings") {
		var b rbacv1.ClusterRoleBinding
		if json.Unmarshal(o.Data, &b) == nil {
			grants = append(grants, grant{subjects: b.Subjects, rules: a.rules(b.RoleRef, "")})
		}
	}
	for _, o := range a.list("rolebindings") {
		var b rbacv1.RoleBinding
		if json.Unmarshal(o.Data, &b) == nil {
			grants = append(grants, grant{namespace: b.Namespace, subjects: b.Subjects, rules: a.rules(b.RoleRef, b.Namespace)})
		}
	}
	return grants
}

func (a *Authorizer) list(plural string) []*storage.Object {
	list, err := a.store.List(plural+"."+rbacv1.GroupName, storage.Selection{})
	if err != nil {
		return nil // no such table: no rights
	}
	return list.Objects
}

func (a *Authorizer) rules(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	table, key := "clusterroles", storage.Key{Name: ref.Name}
	if ref.Kind == "Role" {
		table, key.Namespace = "roles", namespace
	}
	o := a.store.Get(table+"."+rbacv1.GroupName, key)
	if o == nil {
		return nil
	}
	var role rbacv1.ClusterRole // a Role is one without aggregation
	if json.Unmarshal(o.Data, &role) != nil {
		return nil
	}
	return role.Rules
}
