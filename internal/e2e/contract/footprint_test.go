package contract

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"go.uber.org/goleak"

	"github.com/tetherkube/tether"
)

// Line 17.
func TestManagedFieldsAreStrippedUnlessTheyAreWanted(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			o := s.here()
			o.KeepManagedFields = keep
			in := tether.NewInformer(gadgets, o)
			s.gadget(t, "listed", `{"spec":{"size":1}}`)
			given := make(chan *Gadget, 10)
			hooks := newHooks()
			s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(in, reconciles[*Gadget](func(_ context.Context, g *Gadget) (tether.Result, error) {
				given <- g
				g.Status.Note = "written"
				return tether.Done, nil
			}), tether.Options{}))
			hooks.ending(t, 1, "listed") // and what the answer to its write brought
			s.gadget(t, "watched", `{"spec":{"size":1}}`)
			hooks.ending(t, 1, "watched")
			for _, name := range []string{"listed", "watched"} {
				g, ok := in.Get(s.key(name))
				if seen := received(t, given, "a pass"); !ok || (len(g.ManagedFields) > 0) != keep || (len(seen.ManagedFields) > 0) != keep {
					t.Errorf("%s: %d managed fields in the store, %d in the pass", name, len(g.ManagedFields), len(seen.ManagedFields))
				}
			}
		})
	}
}

// Line 17.
func TestWhatNoControllerOfARunUsesIsNotStarted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	unused := tether.NewInformer(parts, s.here())
	index := tether.NewIndex(unused, func(p *Part) []string { return []string{p.Spec.For} })
	client := tether.NewClient(unused, tether.ClientOptions{})
	tether.New(unused, reconciles[*Part](nil), tether.Options{})
	tether.Watches(unused, ofGadget)
	s.make(t, served("parts"), "Part", "wheel", `{"spec":{"for":"one"}}`)
	r := rigOn(t, s, rigging{reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		_, err := client.Get(ctx, s.key("wheel"))
		return tether.Done, err
	}, options: never})
	r.gadget(t, "one", `{}`)
	g := r.await(t, "one", "told that the client does not work", is("Ready", "False", "Failed"))
	if got := condition(g, "Ready").Message; !strings.Contains(got, "client of parts.shop.example.com: its informer does not run") {
		t.Errorf("it says %q", got)
	}
	if _, ok := unused.Get(s.key("wheel")); ok {
		t.Error("the informer shows something")
	}
	for range index.Lookup("one") {
		t.Error("the index shows something")
	}
	if got := r.wire.lines(func(q request) bool { return q.Resource == "parts" }); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

// Line 17.
func TestTwoControllersOfOneNameWorkInOneProcess(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var in [3]*tether.Informer[*Gadget]
	var passes [3]record[string]
	c := func(i, informer int) *tether.Controller {
		if in[informer] == nil {
			in[informer] = tether.NewInformer(gadgets, s.here())
		}
		return tether.New(in[informer], reconciles[*Gadget](func(_ context.Context, g *Gadget) (tether.Result, error) {
			passes[i].add(g.Name)
			return tether.Done, nil
		}), tether.Options{Name: "the-same"})
	}
	first, second := c(0, 0), c(1, 0)
	s.start(t, tether.RunOptions{}, first, second) // in one Run, with one informer
	s.start(t, tether.RunOptions{}, c(2, 2))       // and in another one beside it
	s.gadget(t, "one", `{}`)
	for i := range passes {
		passes[i].await(t, 1, fmt.Sprint("a pass of controller ", i), func(name string) bool { return name == "one" })
	}
	s.await(t, "one", "ready", ready)
	// What runs cannot run twice at once.
	again := s.launch(t, s.config(), tether.RunOptions{}, first)
	if err := received(t, again.ended, "the end of the Run"); err == nil || !strings.Contains(err.Error(), "it runs already; give each Run informers of its own") {
		t.Errorf("Run returned %v", err)
	}
}

// Line 18. What is left by others would be found as well, so that these run alone.
func TestAHundredControllersLeaveNothingBehindAndRunAgain(t *testing.T) {
	s := setup(t)
	s.make(t, served("parts"), "Part", "one", `{}`)
	const runs, each = 10, 10
	var all [runs][]*tether.Controller
	var passes atomic.Int32
	for i := range all {
		shared := tether.NewInformer(parts, s.here())
		for n := range each {
			in := shared // half of them share one, the others have their own
			if n%2 == 0 {
				in = tether.NewInformer(parts, s.here())
			}
			all[i] = append(all[i], tether.New(in, reconciles[*Part](func(ctx context.Context, p *Part) (tether.Result, error) {
				tether.Event(ctx, corev1.EventTypeNormal, "Seen", "seen")
				passes.Add(1)
				return tether.Done, nil
			}), tether.Options{Name: fmt.Sprint("c-", n)}))
		}
	}
	before := goleak.IgnoreCurrent()
	for round := range 2 {
		passes.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, runs)
		hooks := newHooks()
		for i := range all {
			go func() {
				ended <- tether.Run(ctx, s.config(), tether.RunOptions{Hooks: counting{hooks}, Logger: s.log.logger()}, all[i]...)
			}()
		}
		hooks.passes.await(t, runs*each, "a pass of each", nil)
		cancel()
		for range runs {
			if err := received(t, ended, "the end of a Run"); err != nil {
				t.Error(err)
			}
		}
		if got := passes.Load(); got != runs*each {
			t.Errorf("round %d: %d passes of one object by %d controllers", round, got, runs*each)
		}
		if err := goleak.Find(before); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// counting is hooks for several Runs.
type counting struct{ h *hooks }

func (c counting) Running(func() tether.Snapshot) {}
func (c counting) Pass(p tether.PassInfo)         { c.h.passes.add(p) }
func (c counting) Call(tether.CallInfo)           {}
func (c counting) Request(tether.RequestInfo)     {}

// Line 18.
func TestARunThatEndsInTheMiddleOfThingsLeavesNothingBehind(t *testing.T) {
	missing := tether.Resource[*Gadget]{GroupVersion: groupVersion, Kind: "Nothing", Plural: "nothings"}
	for name, c := range map[string]struct {
		resource tether.Resource[*Gadget]
		prepare  func(*stage)
		options  func(*testing.T, *stage) tether.RunOptions
		at       []string // a line of the log; none: when a pass runs
		says     string   // what Run returns, where it ends by itself
	}{
		"while a definition is missing": {resource: missing, at: []string{"informer waits", "NotServed"}},
		"while the first list hangs": {resource: gadgets, at: []string{`"resource":"hangs"`}, prepare: func(s *stage) {
			list := s.wire.hold(before, 1, watchOf("gadgets"))
			go func() { <-list.met; s.log.add(`"resource":"hangs"`) }()
		}},
		"while the API server is away": {resource: gadgets, at: []string{"Unreachable"}, prepare: func(s *stage) {
			s.wire.lose(before, always, func(request) bool { return true })
		}},
		"as a standby": {resource: gadgets, at: []string{"Caches populated"}, options: func(t *testing.T, s *stage) tether.RunOptions {
			s.make(t, leases, "Lease", "shop", `{"spec":{"holderIdentity":"another","leaseDurationSeconds":3600,"renewTime":"2999-01-01T00:00:00.000000Z"}}`)
			return tether.RunOptions{Lease: s.lease("standby")}
		}},
		"by a mistake":           {resource: tether.Resource[*Gadget]{GroupVersion: groupVersion, Kind: "Wrong", Plural: "gadgets"}, says: "Resource.Kind"},
		"while passes run":       {resource: gadgets},
		"while events are owing": {resource: gadgets, prepare: func(s *stage) { s.wire.refuse(always, http.StatusInternalServerError, to(http.MethodPost, "events")) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup(t)
			for i := range 5 {
				s.gadget(t, fmt.Sprint("one-", i), `{}`)
			}
			if c.prepare != nil {
				c.prepare(s)
			}
			o := tether.RunOptions{}
			if c.options != nil {
				o = c.options(t, s)
			}
			running := make(chan struct{}, 10)
			controller := tether.New(tether.NewInformer(c.resource, s.here()), reconciles[*Gadget](func(ctx context.Context, _ *Gadget) (tether.Result, error) {
				tether.Event(ctx, corev1.EventTypeWarning, "Running", "so far")
				running <- struct{}{}
				return tether.Done, errSold
			}), tether.Options{})
			before := goleak.IgnoreCurrent()
			ended, cancel := s.runs(t, s.config(), o, controller)
			switch {
			case c.says != "":
			case c.at != nil:
				s.log.line(t, c.at...)
			default:
				received(t, running, "a pass")
			}
			if c.says == "" {
				cancel()
			}
			if err := received(t, ended, "the end of the Run"); c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("Run returned %v", err)
			}
			cancel()
			if err := goleak.Find(before); err != nil {
				t.Error(err)
			}
		})
	}
}

// runs is a bare Run.
func (s *stage) runs(t *testing.T, cfg *rest.Config, o tether.RunOptions, cs ...*tether.Controller) (ended chan error, cancel func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended, o.Logger = make(chan error, 1), s.log.logger()
	go func() { ended <- tether.Run(ctx, cfg, o, cs...) }()
	return ended, cancel
}
