package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
)

// right is something that the controller must be allowed to do.
type right authorization.ResourceAttributes

// String names it as whoever writes a Role does.
func (r right) String() string {
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Name != "" {
		what += " " + r.Name
	}
	where := " in namespace " + r.Namespace
	switch {
	case r.Namespace != "":
	case r.Resource == "namespaces":
		where = ""
	default:
		where = " in all namespaces"
	}
	return r.Verb + " " + what + where
}

// rightsWanted are all that the controller needs with these settings: the rules of
// deploy/base/account.yaml.
func rightsWanted(s settings, l *tether.Lease) []right {
	var all []right
	want := func(r right, verbs ...string) {
		for _, verb := range verbs {
			r.Verb = verb
			all = append(all, r)
		}
	}
	namespaces := s.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	tickets := right{Group: Tickets.GroupVersion.Group, Resource: Tickets.Plural}
	for _, ns := range namespaces {
		tickets.Namespace = ns
		want(tickets, "get", "list", "watch", "patch")
		status := tickets
		status.Subresource = "status"
		want(status, "patch")
		want(right{Namespace: ns, Group: "events.k8s.io", Resource: "events"}, "create", "patch")
	}
	if s.clusterID == "" {
		want(right{Resource: "namespaces", Name: metav1.NamespaceSystem}, "get")
	}
	if l != nil {
		lease := right{Namespace: l.Namespace, Group: "coordination.k8s.io", Resource: "leases"}
		want(lease, "create") // which cannot be limited to a name
		lease.Name = l.Name
		want(lease, "get", "update")
	}
	return all
}

// rights asks the API server what the controller may do, and tells in readiness and
// in the log what it may not. Without it a right that is seldom needed would be
// missed on the day that it is.
type rights struct {
	ready http.Handler // what else readiness depends on
	log   logr.Logger

	mu      sync.Mutex // guards missing
	missing []string
}

const (
	askAgainSoon = 10 * time.Second // while one is missing
	askAgain     = time.Minute
)

// watch asks until ctx ends. Where the API server does not answer, others say so.
func (r *rights) watch(ctx context.Context, cfg *rest.Config, wanted []right) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the server's priority and fairness bounds it; there are seven questions a namespace
	transport, err := rest.HTTPClientFor(cfg)
	if err != nil {
		r.log.Error(err, "rights are not looked at")
		return
	}
	defer transport.CloseIdleConnections()
	reviews, err := client.NewForConfigAndClient(cfg, transport)
	if err != nil {
		r.log.Error(err, "rights are not looked at")
		return
	}
	for {
		missing, err := lacking(ctx, reviews.SelfSubjectAccessReviews(), wanted)
		next := askAgain
		if err != nil {
			r.log.V(1).Info("rights cannot be looked at", "cause", err.Error())
			next = askAgainSoon
		} else if r.found(missing); len(missing) > 0 {
			next = askAgainSoon
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// found tells what is missing, once for each change.
func (r *rights) found(missing []string) {
	r.mu.Lock()
	before := r.missing
	r.missing = missing
	r.mu.Unlock()
	switch {
	case strings.Join(before, ",") == strings.Join(missing, ","):
	case len(missing) == 0:
		r.log.Info("no right is missing any more")
	default:
		r.log.Error(nil, "rights are missing: grant them to this account", "missing", strings.Join(missing, ", "))
	}
}

func lacking(ctx context.Context, reviews client.SelfSubjectAccessReviewInterface, wanted []right) (missing []string, err error) {
	for _, w := range wanted {
		review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
			ResourceAttributes: (*authorization.ResourceAttributes)(&w),
		}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("may it %s: %w", w, err)
		}
		if !answer.Status.Allowed {
			missing = append(missing, w.String())
		}
	}
	return missing, nil
}

// ServeHTTP answers as ready does, but for readiness while a right is missing.
func (r *rights) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	missing := r.missing
	r.mu.Unlock()
	if len(missing) > 0 && strings.HasSuffix(strings.TrimSuffix(req.URL.Path, "/"), "/readyz") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "[-]rights failed: missing: %s\n", strings.Join(missing, ", "))
		w = begun{w}
	}
	r.ready.ServeHTTP(w, req)
}

// begun is an answer whose status has been sent.
type begun struct{ http.ResponseWriter }

// WriteHeader does nothing.
func (begun) WriteHeader(int) {}
