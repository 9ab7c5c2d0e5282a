package contract

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/metrics"
)

// seen is a Run as an operator sees it: probes, metrics and the log.
type seen struct {
	*stage
	health  *tether.Health
	metrics *metrics.Collector
	passes  record[string] // of which object
	run     *running
}

// operated starts a controller of one resource, and looks at it from outside alone.
func operated[T tether.Object](t *testing.T, s *stage, cfg *rest.Config, in *tether.Informer[T]) *seen {
	t.Helper()
	v := &seen{stage: s, health: &tether.Health{}, metrics: metrics.New()}
	c := tether.New(in, reconciles[T](func(_ context.Context, obj T) (tether.Result, error) {
		v.passes.add(obj.GetName())
		return tether.Done, nil
	}), tether.Options{Name: "watching"})
	v.run = s.launch(t, cfg, tether.RunOptions{Health: v.health, Hooks: v.metrics}, c)
	return v
}

// reconciles is a function as a Reconciler.
type reconciles[T tether.Object] func(context.Context, T) (tether.Result, error)

func (f reconciles[T]) Reconcile(ctx context.Context, obj T) (tether.Result, error) {
	return f(ctx, obj)
}

// waits makes sure that an operator sees what an informer waits for: once the log
// has told it n times, readiness and metrics do.
func (v *seen) waits(t *testing.T, n int, resource, reason, because string) {
	t.Helper()
	v.log.await(t, n, "a line about "+reason, having("informer waits", `"resource"="`+resource+`"`, `"reason"="`+reason+`"`, because))
	code, body := probe(v.health, "/readyz?verbose")
	line := fmt.Sprintf("[-]informer/%s failed: %s since ", resource, reason)
	if code != http.StatusServiceUnavailable || !strings.Contains(body, line) || !strings.Contains(body, because) || !strings.Contains(body, "readyz check failed") {
		t.Errorf("readiness is %d, without %q and %q:\n%s", code, line, because, body)
	}
	v.shows(t, fmt.Sprintf("tether_informer_trouble{reason=%q,resource=%q} 1", reason, resource))
	if code, body := probe(v.health, "/livez"); code != http.StatusOK {
		t.Errorf("liveness is %d: %s", code, body)
	}
}

// works makes sure that passes run, and that an operator sees that all is well.
func (v *seen) works(t *testing.T, resource, name string) {
	t.Helper()
	v.passes.await(t, 1, "a pass of "+name, func(got string) bool { return got == name })
	code, body := probe(v.health, "/readyz?verbose")
	for _, line := range []string{"[+]informer/" + resource + " ok\n", "[+]controller/watching ok\n", "readyz check passed\n"} {
		if code != http.StatusOK || !strings.Contains(body, line) {
			t.Errorf("readiness is %d, without %q:\n%s", code, line, body)
		}
	}
	if code, body := probe(v.health, "/readyz"); code != http.StatusOK || body != "ok" {
		t.Errorf("readiness is %d %q", code, body)
	}
	v.shows(t, fmt.Sprintf("tether_informer_synced{resource=%q} 1", resource), "tether_leading 1")
	if text := v.exposed(t); strings.Contains(text, "tether_informer_trouble{") {
		t.Errorf("metrics still tell of trouble:\n%s", text)
	}
}

// exposed is what Prometheus would scrape.
func (v *seen) exposed(t *testing.T) string {
	t.Helper()
	return scrape(t, v.metrics)
}

func scrape(t *testing.T, m http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Errorf("metrics answer %d", w.Code)
	}
	return w.Body.String()
}

func (v *seen) shows(t *testing.T, lines ...string) {
	t.Helper()
	text := v.exposed(t)
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("metrics lack %q", line)
		}
	}
}

// apart is a definition of the test's own.
func (s *stage) apart() (d definition, at schema.GroupVersionResource, r tether.Resource[*Gadget]) {
	d = definition{Group: s.namespace + ".example.com", Kind: "Gadget", Plural: "gadgets"}
	gv := schema.GroupVersion{Group: d.Group, Version: "v1"}
	return d, gv.WithResource(d.Plural), tether.Resource[*Gadget]{GroupVersion: gv, Kind: d.Kind, Plural: d.Plural}
}

// Line 16.
func TestADefinitionThatIsMissingAtTheStartOrLaterIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	d, at, r := s.apart()
	v := operated(t, s, s.config(), tether.NewInformer(r, s.here()))
	v.waits(t, 1, d.name(), "NotServed", "apply its CustomResourceDefinition")

	if err := define(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.make(t, at, "Gadget", "one", `{}`)
	v.works(t, d.name(), "one")
	s.log.line(t, "informer recovered", d.name(), "NotServed")

	if err := s.on(definitions).Delete(t.Context(), d.name(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	v.waits(t, 2, d.name(), "NotServed", "")
	s.gone(t, definitions, d.name(), "")
	if err := define(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.make(t, at, "Gadget", "two", `{}`)
	v.works(t, d.name(), "two")
}

// someone is a ServiceAccount of the stage without any right.
func (s *stage) someone(t *testing.T) *rest.Config {
	t.Helper()
	s.make(t, schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount", "someone", `{}`)
	cfg, err := cluster.ServiceAccount(t.Context(), s.namespace, "someone")
	if err != nil {
		t.Fatal(err)
	}
	cfg.WrapTransport = s.wire.wrap
	return cfg
}

// grant gives someone rights in the stage's namespace.
func (s *stage) grant(t *testing.T, rules string) {
	t.Helper()
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	s.make(t, rbac.WithResource("roles"), "Role", "some", `{"rules":`+rules+`}`)
	s.make(t, rbac.WithResource("rolebindings"), "RoleBinding", "some", `{
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"some"},
		"subjects":[{"kind":"ServiceAccount","name":"someone","namespace":"`+s.namespace+`"}]}`)
}

// Line 16.
func TestAForbiddenListIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.gadget(t, "one", `{}`)
	v := operated(t, s, s.someone(t), tether.NewInformer(gadgets, s.here()))
	v.waits(t, 1, "gadgets.shop.example.com", "Forbidden", `cannot `)
	s.grant(t, `[{"apiGroups":["shop.example.com"],"resources":["gadgets"],"verbs":["list","watch"]},
		{"apiGroups":["shop.example.com"],"resources":["gadgets/status"],"verbs":["patch"]}]`)
	v.works(t, "gadgets.shop.example.com", "one")
	s.await(t, "one", "ready", ready)
}

// Line 16.
func TestAFirstListThatHangsIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.gadget(t, "one", `{}`)
	list := s.wire.hold(before, 1, watchOf("gadgets"))
	v := operated(t, s, s.config(), tether.NewInformer(gadgets, s.here()))
	list.reached(t)
	code, body := probe(v.health, "/readyz?verbose")
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "[-]informer/gadgets.shop.example.com failed: Syncing") || !strings.Contains(body, "[-]controller/watching failed: waiting for informers") {
		t.Errorf("while it syncs, readiness is %d:\n%s", code, body)
	}
	v.waits(t, 1, "gadgets.shop.example.com", "Hanging", "the first list has not been answered")
	list.release()
	v.works(t, "gadgets.shop.example.com", "one")
}

// Line 16.
func TestAnAPIServerThatCannotBeReachedIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.gadget(t, "one", `{}`)
	lift := s.wire.lose(before, always, func(request) bool { return true })
	v := operated(t, s, s.config(), tether.NewInformer(gadgets, s.here()))
	v.waits(t, 1, "gadgets.shop.example.com", "Unreachable", errLost.Error())
	lift()
	v.works(t, "gadgets.shop.example.com", "one")
}

// Line 16.
func TestAResourceThatIsServedOtherwiseIsAMistakeThatRunNames(t *testing.T) {
	t.Parallel()
	for field, r := range map[string]tether.Resource[*Gadget]{
		`Resource.Kind is "Widget", the API server says "Gadget"`:       {GroupVersion: groupVersion, Kind: "Widget", Plural: "gadgets"},
		"Resource.ClusterScoped is true, the API server says false":     {GroupVersion: groupVersion, Kind: "Gadget", Plural: "gadgets", ClusterScoped: true},
		"Resource.ClusterScoped is false, the API server says true":     {GroupVersion: groupVersion, Kind: "Depot", Plural: "depots"},
		`Resource.Kind is "gadget", the API server says "Gadget"; corr`: {GroupVersion: groupVersion, Kind: "gadget", Plural: "gadgets"},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			r := s.start(t, tether.RunOptions{}, tether.New(tether.NewInformer(r, tether.InformerOptions{}), reconciles[*Gadget](nil), tether.Options{}))
			if err := received(t, r.ended, "the end of the Run"); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("Run returned %v", err)
			}
		})
	}
}

func TestAManagedControllerThatMayNotReadTheClustersIDSaysWhichRightIsMissing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	cfg := s.someone(t)
	s.grant(t, `[{"apiGroups":["shop.example.com"],"resources":["gadgets"],"verbs":["list","watch"]}]`)
	c := tether.Manage(tether.NewInformer(gadgets, s.here()), newWorkshop(s.wire), tether.ManageOptions[*Gadget]{ID: serial, Guarantee: tether.UniqueReference})
	r := s.launch(t, cfg, tether.RunOptions{SingleProcess: true}, c)
	err := received(t, r.ended, "the end of the Run")
	for _, word := range []string{`grant "get" on resource "namespaces" with resourceNames ["kube-system"]`, "ManageOptions.ClusterID", "forbidden"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
}

func TestAManagedControllerWaitsForAClusterThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := setup(t)
	b := &bench{stage: s, shop: newWorkshop(s.wire)}
	s.wire.lose(before, 2, to(http.MethodGet, "namespaces", "kube-system"))
	b = manageOn(t, b, managing{})
	s.log.line(t, "waiting for the cluster's id", errLost.Error())
	b.book(t, "one", `{"spec":{"size":1}}`)
	b.one(t, "one")
}
