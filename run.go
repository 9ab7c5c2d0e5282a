package tether

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tetherkube/tether/internal/kube"
)

// errStopped is the cause of a pass's cancellation late in a stop.
var errStopped = errors.New("the controller is stopping")

// Run runs controllers until ctx ends, and returns after all that it started has
// ended: nil where ctx ended, otherwise what was wrong. It validates everything
// before anything starts, and answers all mistakes at once. What keeps it from
// working (no API server, a missing definition, a right to list or watch that is
// missing) is told in readiness, in the log and in metrics, and waited for; a write
// that is forbidden is told in the object's conditions, as far as those can be
// written, and in the log. Only where the cluster's id is needed, not given and
// forbidden to read does Run end for a right: nobody could grant what a reference
// begins with later.
//
// A stop goes in two phases: no new passes; running ones end, with their context
// alive, within StopTimeout; then they are cancelled, write their status, and the
// lease is given back.
//
// cfg is copied. A zero QPS in it means no client-side limit.
func Run(ctx context.Context, cfg *rest.Config, o RunOptions, cs ...*Controller) error {
	o = o.withDefaults()
	if err := validate(cfg, o, cs); err != nil {
		return err
	}
	r := &running{opts: o}
	for _, c := range cs {
		r.engines = append(r.engines, c.engine)
	}
	return r.run(ctx, cfg)
}

// environment is what a Run gives its controllers and informers.
type environment struct {
	conn   *kube.Conn
	log    logr.Logger
	hooks  Hooks
	record func(kube.Event)
	held   func() error // nil error: this process may act
	fail   func(error)  // ends the Run with this error
	holder string       // namespace/name of the Lease, or ""

	// Set when the term begins, before the first pass:
	term    time.Time
	cluster string
}

func (e *environment) clusterOf(given string) string { return orElse(given, e.cluster) }

// running is one Run.
type running struct {
	opts      RunOptions
	engines   []engine
	informers []informer
	env       *environment
	elector   *kube.Elector // nil: no lease

	mu      sync.Mutex // guards the rest
	waits   string     // what the passes wait for, "" when they run
	leading bool
	ended   bool
}

func (r *running) run(ctx context.Context, cfg *rest.Config) (err error) {
	log := *r.opts.Logger
	conn, err := kube.Dial(cfg, r.observe)
	if err != nil {
		return fmt.Errorf("Run: rest.Config: %w", err)
	}
	defer conn.Close()
	informCtx, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	r.env = &environment{conn: conn, log: log, hooks: r.opts.Hooks, held: func() error { return nil }, fail: fail}
	r.waits = "starting"

	var background sync.WaitGroup
	defer background.Wait()
	stopEvents, err := r.startEvents(conn, &background)
	if err != nil {
		return err
	}
	defer stopEvents()
	if closeLease, err := r.openLease(cfg); err != nil {
		return err
	} else if closeLease != nil {
		defer closeLease()
	}
	if err := r.open(); err != nil {
		return err
	}
	defer r.close()
	r.opts.Hooks.Running(r.snapshot)
	defer r.end()
	if r.opts.Health != nil {
		r.opts.Health.set(r.checks)
		defer r.opts.Health.set(nil)
	}
	defer fail(nil)
	r.env.term = time.Now() // … of a process without a lease: before anything is listed
	for _, in := range r.informers {
		run := in.runner()
		background.Go(func() { run(informCtx) })
	}
	// Passes end before informers do: what a pass reads must stay true.
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	context.AfterFunc(informCtx, func() { stop(context.Cause(informCtx)) })
	if r.elector != nil {
		err = r.elector.Run(klog.NewContext(runCtx, log), func(ctx context.Context) { r.lead(ctx) })
	} else {
		r.lead(runCtx)
	}
	if mistake := context.Cause(informCtx); mistake != nil {
		return mistake
	}
	if err != nil {
		return fmt.Errorf("Run: %w", err)
	}
	return nil
}

func (r *running) startEvents(conn *kube.Conn, background *sync.WaitGroup) (func(), error) {
	instance, _ := os.Hostname() // "" is a name as well
	recorder, err := kube.NewRecorder(conn, clip(orElse(instance, "tether"), 128), func(err error, e kube.Event) {
		r.env.log.V(1).Info("event not recorded", "reason", e.Reason, "namespace", e.Regarding.Namespace, "name", e.Regarding.Name, "cause", err.Error())
	})
	if err != nil {
		return nil, err
	}
	r.env.record = recorder.Record
	ctx, cancel := context.WithCancel(context.Background())
	background.Go(func() { recorder.Run(ctx) })
	return func() {
		recorder.Close()
		late := time.AfterFunc(lastWrites, cancel)
		defer late.Stop()
		background.Wait()
		cancel()
	}, nil
}

// openLease prepares the elector, on a connection of its own.
func (r *running) openLease(cfg *rest.Config) (func(), error) {
	l := r.opts.Lease
	if l == nil {
		return nil, nil
	}
	conn, err := kube.Dial(cfg, r.observe)
	if err != nil {
		return nil, fmt.Errorf("Run: rest.Config: %w", err)
	}
	conn.Config.Timeout = l.RenewDeadline / 2
	conn.Client.Timeout = l.RenewDeadline / 2
	r.elector, err = kube.NewElector(conn, kube.LeaseOptions{
		Namespace: l.Namespace, Name: l.Name, Identity: l.Identity,
		Duration: l.Duration, RenewDeadline: l.RenewDeadline, RetryPeriod: l.RetryPeriod,
	})
	if err != nil {
		return nil, err
	}
	r.env.held, r.env.holder = r.elector.Held, l.Namespace+"/"+l.Name
	r.waits = "standing by for lease " + r.env.holder
	return conn.Close, nil
}

// open makes informers and controllers ready to hear.
func (r *running) open() error {
	for _, e := range r.engines {
		for _, in := range e.informers() {
			if slices.Contains(r.informers, in) {
				continue
			}
			if err := in.open(r.env); err != nil {
				r.close()
				return err
			}
			r.informers = append(r.informers, in)
		}
	}
	judges := map[string]engine{} // by resource: the managed controller, else the first
	for _, e := range r.engines {
		if b := e.budget(); b != nil {
			b.nameAfter(e.name())
		}
		if err := e.setUp(r.env); err != nil {
			r.close()
			return err
		}
		if first := judges[e.resource()]; first == nil || e.managed() && !first.managed() {
			judges[e.resource()] = e
		}
	}
	for _, e := range r.engines {
		e.judgesStatus(judges[e.resource()] == e)
	}
	return nil
}

func (r *running) close() {
	for _, e := range r.engines {
		e.drain() // a Run that never led leaves its place in a Budget, and no timer
	}
	for _, in := range r.informers {
		in.close()
	}
}

func (r *running) observe(q kube.Request) {
	r.opts.Hooks.Request(RequestInfo{Method: q.Method, Resource: q.Resource, Watch: q.Watch, Code: q.Code, Duration: q.Duration})
}

// end makes snapshots empty: what they tell of may be another Run's from here on.
func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

func (r *running) snapshot() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return Snapshot{}
	}
	s := Snapshot{Leading: r.leading}
	for _, e := range r.engines {
		s.Queues = append(s.Queues, e.queueState())
		if e.managed() {
			s.Managed = append(s.Managed, e.managedState())
		}
	}
	for _, b := range budgetsOf(r.engines) {
		s.Budgets = append(s.Budgets, b.state())
	}
	for _, in := range r.informers {
		s.Informers = append(s.Informers, in.state())
	}
	return s
}

// checks are those of Health.
func (r *running) checks() (live, ready []check) {
	live = []check{{name: "process"}}
	for _, in := range r.informers {
		s := in.state()
		c := check{name: "informer/" + s.Resource}
		switch {
		case s.Trouble != "":
			c.reason = fmt.Sprintf("%s since %s: %s", s.Trouble, s.Since.UTC().Format(time.RFC3339), s.Message)
		case !s.Synced:
			c.reason = "Syncing: the first list is under way"
		}
		ready = append(ready, c)
	}
	r.mu.Lock()
	waits, leading := r.waits, r.leading
	r.mu.Unlock()
	if r.elector != nil {
		c := check{name: "lease/" + r.env.holder}
		if err := r.elector.Trouble(); err != nil {
			c.reason = err.Error()
		}
		ready = append(ready, c)
	}
	for _, e := range r.engines {
		c := check{name: "controller/" + e.name()}
		if waits != "" && (leading || r.elector == nil) {
			c.reason = waits
		}
		ready = append(ready, c)
	}
	return live, ready
}
