package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

// without takes a verb off a rule until the end of the test.
func without(t *testing.T, g grant) {
	t.Helper()
	change := func(ctx context.Context, rules func([]rbacv1.PolicyRule)) error {
		if g.kind == "Role" {
			r, err := core.RbacV1().Roles(namespace).Get(ctx, g.role, metav1.GetOptions{})
			if err != nil {
				return err
			}
			rules(r.Rules)
			_, err = core.RbacV1().Roles(namespace).Update(ctx, r, metav1.UpdateOptions{})
			return err
		}
		r, err := core.RbacV1().ClusterRoles().Get(ctx, g.role, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rules(r.Rules)
		_, err = core.RbacV1().ClusterRoles().Update(ctx, r, metav1.UpdateOptions{})
		return err
	}
	var before []string
	err := change(t.Context(), func(rules []rbacv1.PolicyRule) {
		before = rules[g.rule].Verbs
		rules[g.rule].Verbs = slices.DeleteFunc(slices.Clone(before), func(v string) bool { return v == g.verb })
		if len(rules[g.rule].Verbs) == 0 { // a rule wants one
			rules[g.rule].Verbs = []string{"none"}
		}
	})
	if err == nil {
		err = allowed(t.Context(), g, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := change(ctx, func(rules []rbacv1.PolicyRule) { rules[g.rule].Verbs = before })
		if err = errors.Join(err, allowed(ctx, g, true)); err != nil {
			t.Error(err)
		}
	})
}

// allowed waits until the API server's authorizer has seen a change of a role, which
// it hears of by a watch of its own.
func allowed(ctx context.Context, g grant, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resource, sub, _ := strings.Cut(g.resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: g.verb, Group: g.group, Resource: resource, Subresource: sub, Name: g.name,
		},
	}}
	if g.kind == "Role" {
		review.Spec.ResourceAttributes.Namespace = namespace
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := core.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil || answer.Status.Allowed == want {
			return err
		}
		<-tick.C
	}
}

// toldByReadinessAlone are the verbs whose refusal the library keeps to itself: it
// waits for the list, and Events are best effort.
var toldByReadinessAlone = []string{"list tickets", "create events", "patch events"}

// Each run is one of the whole life, up to the request that is refused.
func TestEachVerbOfEachRuleIsMissedByName(t *testing.T) {
	for _, g := range grants(t) {
		t.Run(strings.ReplaceAll(g.String(), "/", "."), func(t *testing.T) {
			noLease(t)
			without(t, g)
			before, ns := time.Now(), tickets(t)
			c := start(t)
			ctx, cancel := context.WithCancel(patiently(t, "a request that is refused"))
			defer cancel()
			lived := make(chan error, 1)
			go func() { lived <- c.life(ctx, ns) }()
			audit, err := cluster.Audit(ctx)
			if err != nil {
				t.Fatal(err)
			}
			err = audit.WaitFor(ctx, 1, func(r controlplane.Request) bool {
				return r.User.Name == account && r.ReceivedAt.After(before) && asOf(r) == ask{g.verb, g.group, g.resource, http.StatusForbidden}
			})
			if err != nil {
				t.Errorf("nothing misses %s: take it off, or give the life what needs it: %v", g, err)
			}
			c.says(t, g)
			cancel()
			if err := <-lived; err == nil && !strings.HasPrefix(g.resource, "events") {
				t.Errorf("the Ticket lived to its end without %s", g)
			}
		})
	}
}

// says checks that the controller names what it may not do, in its log and in
// readiness.
func (c *controller) says(t *testing.T, g grant) {
	t.Helper()
	words := fmt.Sprintf("cannot %s resource %q in API group %q", g.verb, g.resource, g.group)
	if g.resource == "namespaces" { // nobody can give that later: it ends, and the pod is not ready
		c.line(t, words)
		if exit, err := c.Wait(patiently(t, "the end")); err != nil || exit.Code != 1 {
			t.Errorf("it ended with %+v, %v", exit, err)
		}
		c.line(t, `grant "get" on resource "namespaces" with resourceNames ["kube-system"]`)
		return
	}
	if !slices.Contains(toldByReadinessAlone, g.verb+" "+g.resource) {
		c.line(t, strings.ReplaceAll(words, `"`, `\"`)) // in JSON
	}
	missing := g.verb + " " + g.resource + "." + g.group
	c.line(t, "rights are missing", missing)
	code, body := c.readiness(t)
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "[-]rights failed: missing: "+missing) {
		t.Errorf("readiness is %d:\n%s", code, body)
	}
	t.Logf("readiness without %s:\n%s", g, body)
}
