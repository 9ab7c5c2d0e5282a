package contract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

// bench is a stage with one managed controller of Gadgets, which runs.
type bench struct {
	*stage
	shop  *workshop
	run   *running
	hooks *hooks
	made  managing
}

// managing is what a bench is made of. The zero value will do.
type managing struct {
	external func(*workshop) tether.External[*Gadget] // [the workshop itself]
	options  tether.ManageOptions[*Gadget]
	run      tether.RunOptions
	selector string // labels that a Gadget must have [any]
}

const claimName = ourFinalizer + ".claim"

func serial(g *Gadget) *string { return &g.Status.SerialNumber }

// manageUp starts a managed controller of the stage's Gadgets, with one worker. Its
// window is longer than the test unless that says otherwise: what a test makes is
// newborn when it is first seen, and nothing waits for a window to pass.
func manageUp(t *testing.T, m managing) *bench {
	t.Helper()
	s := setup(t)
	return manageOn(t, &bench{stage: s, shop: newWorkshop(s.wire)}, m)
}

// manageOn starts one on a stage that has been used already.
func manageOn(t *testing.T, b *bench, m managing) *bench {
	t.Helper()
	o := &m.options
	if o.ID == nil {
		o.ID = serial
	}
	if o.Guarantee == 0 {
		o.Guarantee = tether.UniqueReference
	}
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.MinBackoff == 0 {
		o.MinBackoff = 20 * time.Millisecond
	}
	var e tether.External[*Gadget] = b.shop
	if m.external != nil {
		e = m.external(b.shop)
	}
	hooks := newHooks()
	m.run.SingleProcess, m.run.Hooks = m.run.Lease == nil, hooks
	in := b.here()
	in.LabelSelector = m.selector
	c := tether.Manage(tether.NewInformer(gadgets, in), e, m.options)
	n := &bench{stage: b.stage, shop: b.shop, hooks: hooks, made: m, run: b.start(t, m.run, c)}
	n.log.await(t, 1+len(n.begun()), "the beginning of passes", having("controllers run"))
	return n
}

// begun are the Runs that have been told to begin before this one.
func (b *bench) begun() []string { return b.log.all(having("controllers run")) }

// again stops the Run, and starts another one as a new process would.
func (b *bench) again(t *testing.T, change func(*managing)) *bench {
	t.Helper()
	if err := b.run.end(t); err != nil {
		t.Fatal(err)
	}
	m := b.made
	if change != nil {
		change(&m)
	}
	list, err := b.on(served("gadgets")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := manageOn(t, b, m)
	for _, u := range list.Items { // the initial list is in the low lane, where a sentinel does not wait for it
		if name := u.GetName(); strings.HasPrefix(name, sentinelName) {
			n.hooks.sentinels.nth(t, 1, "the pass of "+name, func(s sentinel) bool { return s.name == name })
		} else {
			n.hooks.ending(t, 1, name)
		}
	}
	return n
}

// down stops the Run. What comes next comes to a controller that was not there.
func (b *bench) down(t *testing.T) {
	t.Helper()
	if err := b.run.end(t); err != nil {
		t.Fatal(err)
	}
}

// up starts another Run as a new process would.
func (b *bench) up(t *testing.T, change func(*managing)) *bench {
	t.Helper()
	m := b.made
	if change != nil {
		change(&m)
	}
	return manageOn(t, b, m)
}

// quiet makes sure that no pass is on its way.
func (b *bench) quiet(t *testing.T) {
	t.Helper()
	b.stage.quiet(t, b.hooks)
}

// book creates a Gadget, and waits until its machine stands.
func (b *bench) book(t *testing.T, name, content string) *Gadget {
	t.Helper()
	b.gadget(t, name, content)
	return b.await(t, name, "ready", func(g *Gadget) bool { return ready(g) && g.Status.SerialNumber != "" })
}

// tells is what the claim of a Gadget says.
func tells(t *testing.T, g *Gadget) map[string]any {
	t.Helper()
	claim := map[string]any{}
	if raw := g.Annotations[claimName]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &claim); err != nil {
			t.Fatalf("claim %s: %v", raw, err)
		}
	}
	return claim
}

// annotate sets one annotation, as a person would; nil takes it off.
func (b *bench) annotate(t *testing.T, name, annotation string, value any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: value}}})
	if err != nil {
		t.Fatal(err)
	}
	b.patch(t, name, string(body))
}

// stalled waits until a Gadget is stalled for a reason, and returns what it says.
func (b *bench) stalled(t *testing.T, name, reason string) string {
	t.Helper()
	g := b.await(t, name, "stalled: "+reason, is("Stalled", metav1.ConditionTrue, reason))
	return condition(g, "Stalled").Message
}

// one makes sure that exactly one machine stands, and that the Gadget tells it.
func (b *bench) one(t *testing.T, name string) machine {
	t.Helper()
	all, g := b.shop.standing(), b.get(t, name)
	if len(all) != 1 || all[0].ID != g.Status.SerialNumber || all[0].Secret != g.Status.Note {
		t.Fatalf("machines %+v; status %+v", all, g.Status)
	}
	return all[0]
}
