package tether

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

type doNothing[T Object] struct{}

func (doNothing[T]) Reconcile(context.Context, T) (Result, error) { return Done, nil }

type finalizing struct{ doNothing[*corev1.ConfigMap] }

func (finalizing) Finalize(context.Context, *corev1.ConfigMap) (Result, error) { return Done, nil }

// value is an Object that is not a pointer.
type value struct{ *thing }

// mappedConditions has conditions that nothing can be added to as to a list.
type mappedConditions struct {
	thing  `json:"-"`
	Status struct {
		Conditions map[string]string `json:"conditions,omitempty"`
	} `json:"status"`
}

func (m *mappedConditions) DeepCopyObject() runtime.Object { c := *m; return &c }

// embedding has the copy of what it embeds.
type embedding struct{ thing }

type uncopied struct{ thing }

func (*uncopied) DeepCopyObject() runtime.Object { panic("not written yet") }

var shared string // what no ID function should point to

var things = Resource[*thing]{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}, Kind: "Thing", Plural: "things"}

var configMaps = Resource[*corev1.ConfigMap]{GroupVersion: corev1.SchemeGroupVersion, Kind: "ConfigMap", Plural: "configmaps"}

func onThings(o Options) *Controller {
	return New(NewInformer(things, InformerOptions{}), doNothing[*thing]{}, o)
}

func managing1(o ManageOptions[*thing]) *Controller {
	return Manage(NewInformer(things, InformerOptions{}), External[*thing](nil), o)
}

func managingLoose() *Controller {
	loose := Resource[*unstructured.Unstructured]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "things"}
	return Manage(NewInformer(loose, InformerOptions{}), External[*unstructured.Unstructured](nil), ManageOptions[*unstructured.Unstructured]{
		ID: func(*unstructured.Unstructured) *string { return new(string) }, Guarantee: UniqueReference,
	})
}

// Each mistake is named with controller, field and remedy, before anything starts:
// the API server of these tests does not exist.
func TestEveryMistakeIsNamedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	id := func(o *thing) *string { return &o.Status.ID }
	good := &rest.Config{Host: "http://127.0.0.1:1"}
	for _, c := range []struct {
		name string
		cfg  *rest.Config
		o    RunOptions
		cs   []*Controller
		want []string // each in the error
	}{
		{"no config", nil, RunOptions{}, []*Controller{onThings(Options{})}, []string{"rest.Config is nil", "load one"}},
		{"no controller", good, RunOptions{}, nil, []string{"no controller", "New or Manage"}},
		{"nil controller", good, RunOptions{}, []*Controller{nil}, []string{"controller 0 is nil"}},
		{"nil informer", good, RunOptions{}, []*Controller{New[*thing](nil, doNothing[*thing]{}, Options{})}, []string{"informer is nil", "NewInformer"}},
		{"nil reconciler", good, RunOptions{}, []*Controller{New[*thing](NewInformer(things, InformerOptions{}), nil, Options{})}, []string{`controller "thing"`, "Reconciler is nil"}},
		{"T no pointer", good, RunOptions{}, []*Controller{New(NewInformer(Resource[value]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "things"}, InformerOptions{}), doNothing[value]{}, Options{})}, []string{`controller "thing"`, "not a pointer", "Resource[*YourType]"}},
		{"empty resource", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*thing]{}, InformerOptions{}), doNothing[*thing]{}, Options{Name: "x"})}, []string{`controller "x"`, "Resource.Plural", "Resource.Kind", "Resource.GroupVersion"}},
		{"plural in capitals", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*thing]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "Things"}, InformerOptions{}), doNothing[*thing]{}, Options{})}, []string{"Resource.Plural", "lower case"}},
		{"status of an unfit type", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*textStatus]{GroupVersion: things.GroupVersion, Kind: "Text", Plural: "texts"}, InformerOptions{}), doNothing[*textStatus]{}, Options{})}, []string{`controller "text"`, "Status", "make it a struct"}},
		{"conditions that are no list", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*mappedConditions]{GroupVersion: things.GroupVersion, Kind: "Mapped", Plural: "mappeds"}, InformerOptions{}), doNothing[*mappedConditions]{}, Options{})}, []string{`controller "mapped"`, "Status.Conditions", "map[string]string", "[]metav1.Condition"}},
		{"a copy of another type", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*embedding]{GroupVersion: things.GroupVersion, Kind: "Embedding", Plural: "embeddings"}, InformerOptions{}), doNothing[*embedding]{}, Options{})}, []string{`controller "embedding"`, "DeepCopyObject of *tether.embedding returns *tether.thing", "controller-gen"}},
		{"a copy that panics", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*uncopied]{GroupVersion: things.GroupVersion, Kind: "Uncopied", Plural: "uncopieds"}, InformerOptions{}), doNothing[*uncopied]{}, Options{})}, []string{`controller "uncopied"`, "DeepCopyObject of an empty *tether.uncopied panics: not written yet"}},
		{"numbers", good, RunOptions{}, []*Controller{onThings(Options{Workers: -1, Timeout: -1, Poll: -1, MinBackoff: -1, MaxBackoff: -1})}, []string{"Options.Workers: -1", "Options.Timeout", "Options.Poll", "Options.MinBackoff", "Options.MaxBackoff"}},
		{"backoff upside down", good, RunOptions{}, []*Controller{onThings(Options{MinBackoff: time.Hour, MaxBackoff: time.Minute})}, []string{"Options.MinBackoff", "swap"}},
		{"name", good, RunOptions{}, []*Controller{onThings(Options{Name: "A_B"})}, []string{`"A_B"`, "Options.Name"}},
		{"long name", good, RunOptions{}, []*Controller{onThings(Options{Name: strings.Repeat("a", 51)})}, []string{"at most 50"}},
		{"domain", good, RunOptions{}, []*Controller{onThings(Options{Domain: "not a domain"})}, []string{"Options.Domain"}},
		{"Kubernetes' domain", good, RunOptions{}, []*Controller{onThings(Options{Domain: "apps.k8s.io"})}, []string{"Options.Domain", "of yours"}},
		{"finalizer without a domain", good, RunOptions{}, []*Controller{New(NewInformer(configMaps, InformerOptions{}), finalizing{}, Options{})}, []string{`controller "configmap"`, "Options.Domain", "required"}},
		{"selectors", good, RunOptions{}, []*Controller{New(NewInformer(things, InformerOptions{LabelSelector: "a in", FieldSelector: "nonsense"}), doNothing[*thing]{}, Options{})}, []string{"InformerOptions.LabelSelector", "InformerOptions.FieldSelector"}},
		{"namespaces", good, RunOptions{}, []*Controller{New(NewInformer(things, InformerOptions{Namespaces: []string{"a", "a", ""}}), doNothing[*thing]{}, Options{})}, []string{"InformerOptions.Namespaces"}},
		{"namespaces of what has none", good, RunOptions{}, []*Controller{New(NewInformer(Resource[*thing]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "things", ClusterScoped: true}, InformerOptions{Namespaces: []string{"a"}}), doNothing[*thing]{}, Options{})}, []string{"cluster-scoped"}},
		{"watches and reads", good, RunOptions{}, []*Controller{onThings(Options{Watches: []Watch{Watches[*thing](nil, nil), Watches(NewInformer(things, InformerOptions{}), nil)}, Reads: []Reads{nil, (*Informer[*thing])(nil)}})}, []string{"Options.Watches[0]", "Options.Watches[1]", "Options.Reads[0]", "Options.Reads[1]"}},
		{"managed by nothing", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{})}, []string{"External is nil", "ManageOptions.ID", "ManageOptions.Guarantee"}},
		{"managed by a nil pointer", good, RunOptions{SingleProcess: true}, []*Controller{Manage(NewInformer(things, InformerOptions{}), External[*thing]((*silent)(nil)), ManageOptions[*thing]{ID: id, Guarantee: UniqueReference})}, []string{"External is nil"}},
		{"a call longer than a pass", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: id, Guarantee: UniqueReference, CallTimeout: 3 * time.Minute, Options: Options{Timeout: 2 * time.Minute}})}, []string{"ManageOptions.CallTimeout: 3m0s", "Options.Timeout 2m0s", "lengthen"}},
		{"managed by many", good, RunOptions{}, []*Controller{managing1(ManageOptions[*thing]{ID: id, Guarantee: UniqueReference})}, []string{"RunOptions.Lease", "SingleProcess"}},
		{"an id nowhere", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: func(*thing) *string { return nil }, Guarantee: UniqueReference})}, []string{"ManageOptions.ID", "nil", "status"}},
		{"an id in metadata", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: func(o *thing) *string { return &o.Name }, Guarantee: UniqueReference})}, []string{"ManageOptions.ID", "not in the object's status"}},
		{"an id in one place for all", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: func(*thing) *string { return &shared }, Guarantee: UniqueReference})}, []string{"ManageOptions.ID", "not in the object's status"}},
		{"a window of a month", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: id, Guarantee: UniqueReference, Settle: 31 * 24 * time.Hour})}, []string{"ManageOptions.Settle", "shorten"}},
		{"settle", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: id, Guarantee: UniqueReference, Settle: time.Second, CallTimeout: time.Minute})}, []string{"ManageOptions.Settle", "make it longer"}},
		{"key lifetime", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{ID: id, Guarantee: IdempotencyKeys, KeyLifetime: time.Minute})}, []string{"ManageOptions.KeyLifetime"}},
		{"lease", good, RunOptions{Lease: &Lease{Duration: time.Second, RenewDeadline: time.Minute}}, []*Controller{onThings(Options{})}, []string{"Namespace or Name", "do not fit"}},
		{"a lease of parts of a second", good, RunOptions{Lease: &Lease{Namespace: "a", Name: "b", Duration: 1900 * time.Millisecond, RenewDeadline: 1500 * time.Millisecond}}, []*Controller{onThings(Options{})}, []string{"RunOptions.Lease: Duration 1.9s, of which a Lease says the whole seconds", "do not fit"}},
		{"managed without a type", good, RunOptions{SingleProcess: true}, []*Controller{managingLoose()}, []string{"Resource: what is managed needs a Go type with a Status"}},
		{"stop", good, RunOptions{StopTimeout: -1}, []*Controller{onThings(Options{})}, []string{"RunOptions.StopTimeout"}},
		{"budget", good, RunOptions{}, []*Controller{onThings(Options{Budget: NewBudget(BudgetOptions{Rate: math.NaN(), Burst: -1, Failures: -1, MinPause: -1, MaxPause: -1})})}, []string{`controller "thing"`, "BudgetOptions.Rate: NaN", "calls per second", "Burst -1 or Failures -1", "MinPause -1ns or MaxPause -1ns"}},
		{"pauses upside down", good, RunOptions{}, []*Controller{onThings(Options{Budget: NewBudget(BudgetOptions{MinPause: time.Hour, MaxPause: time.Minute})})}, []string{"BudgetOptions.MinPause", "swap"}},
		{"a budget too small for a pass", good, RunOptions{}, []*Controller{onThings(Options{Timeout: time.Minute, Budget: NewBudget(BudgetOptions{Rate: 0.01})})}, []string{"Options.Timeout: in 1m0s", "at least 6m40s", "BudgetOptions.Rate"}},
		{"two budgets of one name", good, RunOptions{}, []*Controller{onThings(Options{Name: "a", Budget: NewBudget(BudgetOptions{Name: "x"})}), onThings(Options{Name: "b", Budget: NewBudget(BudgetOptions{Name: "x"})})}, []string{`controller "b"`, "BudgetOptions.Name", `"x"`}},
		{"two of one name", good, RunOptions{SingleProcess: true}, []*Controller{managing1(ManageOptions[*thing]{}), managing1(ManageOptions[*thing]{})}, []string{`"example.com/thing"`, "Options.Name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // a Run that starts nevertheless ends at once
			err := Run(ctx, c.cfg, c.o, c.cs...)
			if err == nil {
				t.Fatal("it ran")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error lacks %q:\n%v", w, err)
				}
			}
		})
	}
}

func TestARunThatIsStoppedAtOnceLeavesNothingAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	c := onThings(Options{})
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Run(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, RunOptions{}, c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHealthIsAliveAndNotReadyBeforeARun(t *testing.T) {
	t.Parallel()
	h := &Health{}
	for path, want := range map[string]struct {
		code int
		body string
	}{
		"/livez":          {200, "ok"},
		"/healthz":        {200, "ok"},
		"/livez?verbose":  {200, "[+]process ok\nlivez check passed\n"},
		"/readyz":         {503, "[-]run failed: Run has not begun, or has ended\nreadyz check failed\n"},
		"/probes/readyz/": {503, "readyz check failed"},
		"/else":           {404, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		body, _ := io.ReadAll(w.Result().Body)
		if w.Code != want.code || !strings.Contains(string(body), want.body) {
			t.Errorf("%s: %d %q, want %d %q", path, w.Code, body, want.code, want.body)
		}
	}
}

// heardRunning has what a Run told of itself.
type heardRunning struct {
	NoHooks
	now func() Snapshot
}

func (h *heardRunning) Running(now func() Snapshot) { h.now = now }

func TestARunThatNeverLedLeavesItsBudgetAndTellsNothingAnyMore(t *testing.T) {
	t.Parallel()
	b, hooks := NewBudget(BudgetOptions{Name: "x"}), &heardRunning{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := onThings(Options{Budget: b})
	if err := Run(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, RunOptions{Hooks: hooks}, c); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { c.engine.(*controller[*thing]).queue.Get(); close(closed) }() // at once, from a queue that is closed
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the queue is open, and has a place in the budget")
	}
	if s := hooks.now(); s.Leading || s.Queues != nil || s.Informers != nil || s.Budgets != nil {
		t.Errorf("after the Run it tells %+v", s)
	}
}
