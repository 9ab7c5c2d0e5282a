package contract

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

// pass is one pass as the author of a Reconciler sees it begin.
type pass struct {
	Object *Gadget // as given, before the author edits it
	N      int     // of this object's passes, from 1
	At     time.Time
	Final  bool // Finalize was called
}

// author is the Reconciler of a test: what it does stands in the test.
type author struct {
	passes    record[pass]
	reconcile step

	mu sync.Mutex // guards n
	n  map[string]int
}

// step is what an author does in an object's n-th pass, from 1.
type step func(ctx context.Context, g *Gadget, n int) (tether.Result, error)

// done does nothing.
func done(context.Context, *Gadget, int) (tether.Result, error) { return tether.Done, nil }

func (a *author) begin(g *Gadget, final bool) (n int) {
	a.mu.Lock()
	if a.n == nil {
		a.n = map[string]int{}
	}
	a.n[g.Name]++
	n = a.n[g.Name]
	a.mu.Unlock()
	a.passes.add(pass{Object: g.clone(), N: n, At: time.Now(), Final: final})
	return n
}

// Reconcile does what the test says.
func (a *author) Reconcile(ctx context.Context, g *Gadget) (tether.Result, error) {
	return a.reconcile(ctx, g, a.begin(g, false))
}

// finalizing is an author that is a Finalizer as well.
type finalizing struct {
	*author
	finalize step
}

// Finalize does what the test says.
func (f finalizing) Finalize(ctx context.Context, g *Gadget) (tether.Result, error) {
	return f.finalize(ctx, g, f.begin(g, true))
}

func (a *author) of(name string) []pass {
	return a.passes.all(func(p pass) bool { return p.Object.Name == name })
}

// pass waits for an object's n-th pass to begin.
func (a *author) pass(t *testing.T, n int, name string) pass {
	t.Helper()
	return a.passes.nth(t, n, "a pass of "+name, func(p pass) bool { return p.Object.Name == name })
}

// rig is a stage with one controller of Gadgets on it, which runs.
type rig struct {
	*stage
	*author
	run     *running
	hooks   *hooks
	in      *tether.Informer[*Gadget]
	arrived *record[arrival]
}

// arrival is a version of an object on its way into the informer's store.
type arrival struct{ name, version string }

// rigging is what a rig is made of. The zero value but for reconcile will do.
type rigging struct {
	reconcile step
	finalize  step // nil: no Finalizer
	options   tether.Options
	run       tether.RunOptions
	also      tether.Reads // an informer that passes read [none]
	standby   bool         // do not wait until passes run
}

// rigUp starts one controller of the stage's Gadgets, with one worker unless the
// test says otherwise, so that nothing happens beside what a test looks at.
func rigUp(t *testing.T, m rigging) *rig {
	t.Helper()
	return rigOn(t, setup(t), m)
}

func rigOn(t *testing.T, s *stage, m rigging) *rig {
	t.Helper()
	r := &rig{stage: s, hooks: newHooks(), author: &author{reconcile: m.reconcile}, arrived: &record[arrival]{}}
	r.in = tether.NewInformer(gadgets, s.here())
	// What an index is asked for has come; what came before it is in the store,
	// and whoever listens has been told.
	tether.NewIndex(r.in, func(g *Gadget) []string {
		r.arrived.add(arrival{g.Name, g.ResourceVersion})
		return nil
	})
	if m.options.Workers == 0 {
		m.options.Workers = 1
	}
	var reconciler tether.Reconciler[*Gadget] = r.author
	if m.finalize != nil {
		reconciler = finalizing{r.author, m.finalize}
	}
	if m.also != nil {
		m.options.Reads = append(m.options.Reads, m.also)
	}
	c := tether.New(r.in, reconciler, m.options)
	if m.run.Hooks == nil {
		m.run.Hooks = r.hooks
	}
	r.run = s.start(t, m.run, c)
	if !m.standby {
		s.log.line(t, "controllers run") // what comes from now on comes by event
	}
	return r
}

// quiet makes sure that no pass is on its way but those that the author has seen.
// It wants one worker.
func (r *rig) quiet(t *testing.T) {
	t.Helper()
	r.stage.quiet(t, r.hooks)
}

// look tells what stands in the queue when all that changed before has been heard.
func (r *rig) look(t *testing.T) tether.Snapshot {
	t.Helper()
	return r.stage.look(t, r.hooks)
}

// heard waits until what changed before this call is in the informer's store, and
// has been judged. It wants no worker.
func (r *rig) heard(t *testing.T) {
	t.Helper()
	for range 2 { // the first may come with the initial list, in the middle of which it is seen
		name := r.post(t)
		r.arrived.await(t, 1, "the arrival of "+name, func(a arrival) bool { return a.name == name })
	}
}

// passed makes sure of how many passes an object has had.
func (r *rig) passed(t *testing.T, n int, name string) {
	t.Helper()
	if got := r.of(name); len(got) != n {
		t.Errorf("%s has had %d passes, want %d: %s", name, len(got), n, describe(got))
	}
}

func describe(passes []pass) string {
	var lines []string
	for _, p := range passes {
		lines = append(lines, p.At.Format("05.000")+" "+p.Object.ResourceVersion)
	}
	return strings.Join(lines, "; ")
}

// condition is a condition of a Gadget.
func condition(g *Gadget, kind string) *metav1.Condition {
	i := slices.IndexFunc(g.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &g.Status.Conditions[i]
}

// is tells whether a condition has status and reason, for the newest spec.
func is(kind string, status metav1.ConditionStatus, reason string) func(*Gadget) bool {
	return func(g *Gadget) bool {
		c := condition(g, kind)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == g.Generation
	}
}

var ready = is("Ready", metav1.ConditionTrue, "Reconciled")
