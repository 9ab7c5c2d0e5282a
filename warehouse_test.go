package tether

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

const definitionOfThings = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// warehouse is an endpoint outside that two controllers call: it is the External of
// boxes, and the Reconciler of shelves.
type warehouse struct {
	budget *Budget

	mu     sync.Mutex // guards the rest
	each   int        // calls that a pass for a shelf makes with Do; 0: one without it
	answer func(name string) error
	boxes  map[string]bool // by reference
	calls  []visit
}

type visit struct {
	at   time.Time
	name string
}

func (w *warehouse) call(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, visit{time.Now(), name})
	return w.answer(name)
}

func well(string) error { return nil }
func away(string) error { return errors.New("connection lost") }

// becomes is how it answers from now on.
func (w *warehouse) becomes(answer func(name string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// since are the visits since a time.
func (w *warehouse) since(at time.Time) (all []visit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.calls {
		if !v.at.Before(at) {
			all = append(all, v)
		}
	}
	return all
}

func (w *warehouse) Observe(_ context.Context, t *thing, c Call) (Observation, error) {
	if err := w.call(t.Name); err != nil {
		return Observation{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.boxes[c.Reference] {
		return Observation{State: Absent}, nil
	}
	return Observation{State: Present, ID: c.Reference, Reference: c.Reference}, nil
}

func (w *warehouse) set(t *thing, reference string, s State) (Observation, error) {
	if err := w.call(t.Name); err != nil {
		return Observation{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boxes[reference] = s == Present
	return Observation{State: s, ID: reference, Reference: reference}, nil
}

func (w *warehouse) Create(_ context.Context, t *thing, c Call) (Observation, error) {
	return w.set(t, c.Reference, Present)
}

func (w *warehouse) Update(_ context.Context, t *thing, c Call, _ Observation) (Observation, error) {
	return w.set(t, c.Reference, Present)
}

func (w *warehouse) Delete(_ context.Context, t *thing, c Call, _ Observation) (Observation, error) {
	return w.set(t, c.Reference, Ended)
}

func (w *warehouse) Reconcile(ctx context.Context, t *thing) (Result, error) {
	w.mu.Lock()
	each := w.each
	w.mu.Unlock()
	if each == 0 {
		return Done, w.call(t.Name)
	}
	for range each {
		if err := w.budget.Do(ctx, func(context.Context) error { return w.call(t.Name) }); err != nil {
			return Done, err
		}
	}
	return Done, nil
}

// stage is a warehouse, two controllers that share its Budget, and who puts boxes and
// shelves into the cluster.
type stage struct {
	*warehouse
	t       *testing.T
	api     *fake.APIServer
	things  dynamic.ResourceInterface
	program *faketest.Process

	mu    sync.Mutex // guards the rest
	state func() Snapshot
	log   []string // what is said of the budget

	outcomes []string // of passes
}

// staged runs f on a stage.
func staged(t *testing.T, o BudgetOptions, options Options, f func(ctx context.Context, t *testing.T, s *stage)) {
	t.Helper()
	faketest.Run(t, faketest.Options{Seed: 1, API: fake.APIOptions{Manifests: []string{definitionOfThings}}}, func(ctx context.Context, t *testing.T, w *faketest.World) {
		options.Budget = NewBudget(o)
		s := &stage{warehouse: &warehouse{budget: options.Budget, each: 1, answer: well, boxes: map[string]bool{}}, t: t, api: w.API}
		client, err := dynamic.NewForConfig(w.API.Config())
		if err != nil {
			t.Fatal(err)
		}
		s.things = client.Resource(things.GroupVersion.WithResource("things")).Namespace("default")
		s.program = w.Start(func(ctx context.Context, cluster *rest.Config, _ *http.Client) error {
			return s.run(ctx, cluster, options)
		})
		f(ctx, t, s)
	})
}

type listening struct {
	NoHooks
	s *stage
}

func (l listening) Running(now func() Snapshot) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.state = now
}

func (l listening) Pass(p PassInfo) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.outcomes = append(l.s.outcomes, p.Outcome)
}

func (s *stage) run(ctx context.Context, cluster *rest.Config, o Options) error {
	log := funcr.New(func(_, line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if strings.Contains(line, `"budget"="warehouse"`) {
			s.log = append(s.log, line)
		}
	}, funcr.Options{})
	in := func(kind string) *Informer[*thing] {
		return NewInformer(things, InformerOptions{LabelSelector: "kind=" + kind})
	}
	managed, plain := o, o
	managed.Name, plain.Name = "boxes", "shelves"
	return Run(ctx, cluster, RunOptions{SingleProcess: true, Logger: &log, Hooks: listening{s: s}},
		Manage(in("box"), s.warehouse, ManageOptions[*thing]{
			Options: managed, Guarantee: LookupOnly, ID: func(t *thing) *string { return &t.Status.ID },
		}),
		New(in("shelf"), s.warehouse, plain))
}

// put creates an object of a kind, box or shelf.
func (s *stage) put(ctx context.Context, kind, name string) {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
	u.SetName(name)
	u.SetLabels(map[string]string{"kind": kind})
	if _, err := s.things.Create(ctx, u, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) patch(ctx context.Context, name, format string, args ...any) {
	s.t.Helper()
	if _, err := s.things.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// get is an object as it stands.
func (s *stage) get(ctx context.Context, name string) (is thing) {
	s.t.Helper()
	u, err := s.things.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := json.Marshal(u)
	if err == nil {
		err = json.Unmarshal(raw, &is)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return is
}

func (s *stage) budgetNow() BudgetState {
	s.mu.Lock()
	now := s.state
	s.mu.Unlock()
	return now().Budgets[0]
}

// said is how often something was said of the budget.
func (s *stage) said(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.log {
		if strings.Contains(line, what) {
			n++
		}
	}
	return n
}

// standing is how many boxes there are.
func (w *warehouse) standing() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, there := range w.boxes {
		if there {
			n++
		}
	}
	return n
}
