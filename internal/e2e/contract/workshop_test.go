package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tetherkube/tether"
)

// machine is what stands outside for a Gadget.
type machine struct {
	ID, Reference string
	Color         string
	Size          int
	Secret        string // whose object must not be told to another's
	Version       int
	Scrapped      bool
}

// workshop is something outside: it makes machines, accepts a reference once and
// for ever, and repaints but cannot resize them. It is the External of its tests.
type workshop struct {
	wire *wire

	// mu guards what follows.
	mu       sync.Mutex
	machines []*machine
	built    int
	closed   map[string]bool
	careless bool        // a reference is accepted as often as it is sent
	lag      func() bool // look-ups by reference show nothing
	mishaps  []*mishap
	rules    []rulebook
	calls    []call
}

// call is one that has reached the workshop.
type call struct {
	Verb, Name string
	tether.Call
}

// mishap is done to a call, before or after it takes effect. It may wait or panic;
// an error is the call's answer.
type mishap struct {
	verb string
	when moment
	do   func(ctx context.Context) error
}

func newWorkshop(w *wire) *workshop { return &workshop{wire: w, closed: map[string]bool{}} }

// next does something to the next call of a verb.
func (w *workshop) next(verb string, when moment, do func(context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mishaps = append(w.mishaps, &mishap{verb, when, do})
}

// every does something to every call of a verb from now on; what it answers is the
// call's answer, where it is an error. It is called with mu held.
func (w *workshop) every(verb string, when moment, do func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, rulebook{verb, when, do})
}

// rulebook is a mishap that does not end.
type rulebook struct {
	verb string
	when moment
	do   func() error
}

// answers is a mishap that is an error.
func answers(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// held is a mishap that waits for the test: it tells when it is reached.
func held() (do func(context.Context) error, reached, release chan struct{}) {
	reached, release = make(chan struct{}), make(chan struct{})
	return func(ctx context.Context) error {
		close(reached)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, reached, release
}

func (w *workshop) meet(ctx context.Context, verb string, when moment) error {
	w.mu.Lock()
	for _, r := range w.rules {
		if r.verb != verb || r.when != when {
			continue
		}
		if err := r.do(); err != nil {
			w.mu.Unlock()
			return err
		}
	}
	i := slices.IndexFunc(w.mishaps, func(m *mishap) bool { return m.verb == verb && m.when == when })
	if i < 0 {
		w.mu.Unlock()
		return nil
	}
	m := w.mishaps[i]
	w.mishaps = slices.Delete(w.mishaps, i, i+1)
	w.mu.Unlock()
	return m.do(ctx)
}

// serve is one call: written down, met by mishaps, and done in between.
func (w *workshop) serve(ctx context.Context, verb string, g *Gadget, c tether.Call, do func() (tether.Observation, error)) (tether.Observation, error) {
	w.wire.call(verb, g.Name)
	w.mu.Lock()
	w.calls = append(w.calls, call{verb, g.Name, c})
	w.mu.Unlock()
	if err := w.meet(ctx, verb, before); err != nil {
		return tether.Observation{}, err
	}
	w.mu.Lock()
	o, err := do()
	w.mu.Unlock()
	if late := w.meet(ctx, verb, after); late != nil {
		return tether.Observation{}, late
	}
	return o, err
}

// find is by id, or else by reference: the one that stands, or the last.
func (w *workshop) find(c tether.Call) *machine {
	var found *machine
	for _, m := range w.machines {
		if c.ID != "" && m.ID == c.ID || c.ID == "" && m.Reference == c.Reference {
			if found = m; !m.Scrapped {
				return m
			}
		}
	}
	return found
}

// see says how a machine stands, and fills status from it.
func see(g *Gadget, m *machine) tether.Observation {
	g.Status.Note = m.Secret
	g.Status.Tags = map[string]string{"color": m.Color, "size": strconv.Itoa(m.Size)}
	o := tether.Observation{State: tether.Present, ID: m.ID, Reference: m.Reference, Version: strconv.Itoa(m.Version), Message: "stands as " + m.ID}
	switch {
	case m.Scrapped:
		o.State = tether.Ended
	case m.Size != g.Spec.Size:
		o.Differs, o.Replace = []string{"spec.size"}, true
	case m.Color != g.Spec.Color:
		o.Differs = []string{"spec.color"}
	}
	return o
}

// Observe looks.
func (w *workshop) Observe(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	return w.serve(ctx, "observe", g, c, func() (tether.Observation, error) {
		if c.ID == "" && w.lag != nil && w.lag() {
			return tether.Observation{State: tether.Absent}, nil
		}
		var live []string
		for _, m := range w.machines {
			if c.ID == "" && m.Reference == c.Reference && !m.Scrapped {
				live = append(live, m.ID)
			}
		}
		if len(live) > 1 {
			return tether.Observation{State: tether.Ambiguous, Message: strings.Join(live, ", ")}, nil
		}
		if m := w.find(c); m != nil {
			return see(g, m), nil
		}
		return tether.Observation{State: tether.Absent}, nil
	})
}

// Create makes.
func (w *workshop) Create(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	return w.serve(ctx, "create", g, c, func() (tether.Observation, error) {
		if w.closed[c.Reference] {
			return tether.Observation{State: tether.Closed}, nil
		}
		if m := w.find(tether.Call{Reference: c.Reference}); m != nil && !w.careless {
			return tether.Observation{State: tether.Present, ID: m.ID, Reference: m.Reference, Replay: true}, nil
		}
		return see(g, w.buildLocked(g.Name, c.Reference, g.Spec)), nil
	})
}

func (w *workshop) buildLocked(name, reference string, spec GadgetSpec) *machine {
	w.built++
	n := w.built
	m := &machine{
		ID: fmt.Sprintf("machine-%d", n), Reference: reference, Secret: fmt.Sprintf("secret of %s, no %d", name, n),
		Color: spec.Color, Size: spec.Size, Version: 1,
	}
	w.machines = append(w.machines, m)
	return m
}

// build makes a machine as somebody else would, or as a call that lands late.
func (w *workshop) build(name, reference string, spec GadgetSpec) machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.buildLocked(name, reference, spec)
}

// vanish takes machines away without a trace.
func (w *workshop) vanish(which func(*machine) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machines = slices.DeleteFunc(w.machines, which)
}

// Update repaints.
func (w *workshop) Update(ctx context.Context, g *Gadget, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	return w.serve(ctx, "update", g, c, func() (tether.Observation, error) {
		m := w.find(tether.Call{ID: seen.ID})
		if m == nil || strconv.Itoa(m.Version) != seen.Version {
			return tether.Observation{}, tether.NoEffect(errors.New("it is not as it was seen"))
		}
		m.Color, m.Version = g.Spec.Color, m.Version+1
		return see(g, m), nil
	})
}

// Delete scraps.
func (w *workshop) Delete(ctx context.Context, g *Gadget, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	return w.serve(ctx, "delete", g, c, func() (tether.Observation, error) {
		m := w.find(tether.Call{ID: seen.ID})
		if m == nil {
			return tether.Observation{State: tether.Absent}, nil
		}
		m.Scrapped, m.Version = true, m.Version+1
		return see(g, m), nil
	})
}

// fencing is a workshop that can close a reference.
type fencing struct{ *workshop }

func fenced(w *workshop) tether.External[*Gadget] { return fencing{w} }

// Fence closes.
func (w fencing) Fence(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	return w.serve(ctx, "fence", g, c, func() (tether.Observation, error) {
		w.closed[c.Reference] = true
		if m := w.find(tether.Call{Reference: c.Reference}); m != nil {
			return see(g, m), nil
		}
		return tether.Observation{State: tether.Closed}, nil
	})
}

// rebinding is a workshop that can put a machine under another reference.
type rebinding struct{ fencing }

func rebound(w *workshop) tether.External[*Gadget] { return rebinding{fencing{w}} }

// Rebind puts it there.
func (w rebinding) Rebind(ctx context.Context, g *Gadget, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	return w.serve(ctx, "rebind", g, c, func() (tether.Observation, error) {
		m := w.find(tether.Call{ID: seen.ID})
		if m == nil || strconv.Itoa(m.Version) != seen.Version || w.closed[c.Reference] {
			return tether.Observation{}, tether.NoEffect(errors.New("it is not as it was seen"))
		}
		m.Reference, m.Version = c.Reference, m.Version+1
		return see(g, m), nil
	})
}

// regional is a workshop whose credentials reach one region, and which knows of no
// machine that stands in another.
type regional struct {
	*workshop
	region func(*Gadget) (string, error)
	home   string // where its machines stand
}

// Scope is the region.
func (w regional) Scope(_ context.Context, g *Gadget) (string, error) { return w.region(g) }

// Observe looks in the region.
func (w regional) Observe(ctx context.Context, g *Gadget, c tether.Call) (tether.Observation, error) {
	if region, err := w.region(g); err != nil || region != w.home {
		return w.serve(ctx, "observe", g, c, func() (tether.Observation, error) {
			return tether.Observation{State: tether.Absent}, err
		})
	}
	return w.workshop.Observe(ctx, g, c)
}

// picky is a workshop that says no to some Gadgets.
type picky struct {
	*workshop
	validate func(*Gadget) error
}

// Validate asks the test.
func (p picky) Validate(_ context.Context, g *Gadget) error { return p.validate(g) }

// change does something to the machines behind everybody's back.
func (w *workshop) change(f func(*machine)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.machines {
		f(m)
	}
}

// standing are the machines that are not scrapped.
func (w *workshop) standing() []machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []machine
	for _, m := range w.machines {
		if !m.Scrapped {
			all = append(all, *m)
		}
	}
	return all
}

// called are the calls of a verb for an object; "" stands for every verb.
func (w *workshop) called(verb, name string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []call
	for _, c := range w.calls {
		if (verb == "" || c.Verb == verb) && c.Name == name {
			found = append(found, c)
		}
	}
	return found
}
