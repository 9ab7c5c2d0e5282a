package tether

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Lease says that of several processes one runs the controllers: the one that
// holds the Lease object. A process that loses it stops at once, and Run returns
// an error: the program should end, so that it comes back as a standby.
type Lease struct {
	Namespace string // required
	Name      string // required
	// Identity is this process's, and nobody else's [host name and a random part].
	Identity string
	// Duration, RenewDeadline and RetryPeriod are the election's times
	// [15 s, 10 s, 750 ms].
	Duration, RenewDeadline, RetryPeriod time.Duration
}

// RunOptions configure [Run]. Controllers made by Manage want SingleProcess or a
// Lease; otherwise the zero value works.
type RunOptions struct {
	// SingleProcess says that no other process runs these controllers [false].
	SingleProcess bool
	// Lease makes sure of it [none].
	Lease *Lease
	// StopTimeout is how long running passes may take to end in a stop; then they
	// are cancelled, and have 5 s for their last writes. Keep both together below the
	// pod's terminationGracePeriodSeconds [20 s].
	StopTimeout time.Duration
	// Health answers probes [none].
	Health *Health
	// Hooks hear of passes, calls and requests [none].
	Hooks Hooks
	// Logger takes the log [klog's].
	Logger *logr.Logger
}

func (o RunOptions) withDefaults() RunOptions {
	if o.StopTimeout == 0 {
		o.StopTimeout = 20 * time.Second
	}
	if o.Hooks == nil {
		o.Hooks = NoHooks{}
	}
	if o.Logger == nil {
		log := klog.Background()
		o.Logger = &log
	}
	if o.Lease != nil {
		l := *o.Lease
		if l.Duration == 0 {
			l.Duration = 15 * time.Second
		}
		if l.RenewDeadline == 0 {
			l.RenewDeadline = l.Duration * 2 / 3
		}
		if l.RetryPeriod == 0 {
			l.RetryPeriod = min(750*time.Millisecond, l.RenewDeadline/4)
		}
		if l.Identity == "" {
			host, err := os.Hostname()
			if err != nil {
				host = "unknown"
			}
			l.Identity = host + "_" + randomID()
		}
		o.Lease = &l
	}
	return o
}

// validate gathers all mistakes.
func validate(cfg *rest.Config, o RunOptions, cs []*Controller) error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if cfg == nil {
		say("Run: the rest.Config is nil; load one, for example with clientcmd or rest.InClusterConfig")
	}
	if len(cs) == 0 {
		say("Run: no controller was given; make one with New or Manage")
	}
	if o.StopTimeout < 0 {
		say("RunOptions.StopTimeout: %v is negative; give a positive duration, or 0 for 20s", o.StopTimeout)
	}
	if l := o.Lease; l != nil {
		if l.Namespace == "" || l.Name == "" {
			say("RunOptions.Lease: Namespace or Name is missing; give both")
		}
		if l.RetryPeriod <= 0 || l.RenewDeadline <= l.RetryPeriod*6/5 || l.Duration.Truncate(time.Second) <= l.RenewDeadline {
			say("RunOptions.Lease: Duration %v, of which a Lease says the whole seconds, RenewDeadline %v and RetryPeriod %v do not fit; each must be more than the next, the second by a fifth at least", l.Duration, l.RenewDeadline, l.RetryPeriod)
		}
		if l.Duration < time.Second {
			say("RunOptions.Lease.Duration: %v is less than a second, which a Lease cannot say; give at least 1s", l.Duration)
		}
	}
	names := map[string]bool{}
	budgets := map[string]*Budget{}
	seen := map[informer]bool{}
	for i, c := range cs {
		if c == nil || c.engine == nil {
			say("Run: controller %d is nil; make one with New or Manage", i)
			continue
		}
		e := c.engine
		for _, m := range e.mistakes() {
			say("controller %q: %s", e.name(), m)
		}
		if e.managed() && !o.SingleProcess && o.Lease == nil {
			say("controller %q: it is managed, so no two processes may run it; set RunOptions.Lease, or RunOptions.SingleProcess where there is only one", e.name())
		}
		for _, in := range e.informers() {
			if isNil(in) || seen[in] {
				continue
			}
			seen[in] = true
			for _, m := range in.mistakes() {
				say("controller %q: informer of %s: %s", e.name(), in.name(), m)
			}
			if in.busy() {
				say("controller %q: informer of %s: it runs already; give each Run informers of its own", e.name(), in.name())
			}
		}
		if name, twice := e.budget().meets(budgets, e.name()); twice {
			say("controller %q: BudgetOptions.Name: another Budget is called %q as well; name each after its endpoint", e.name(), name)
		}
		finalizer, ok := e.finalizes()
		if id := e.name() + "|" + finalizer; ok && names[id] {
			say("controller %q: another one has the same Domain and Name, so that both would use finalizer %q; set Options.Name", e.name(), finalizer)
		} else {
			names[id] = true
		}
	}
	return errors.Join(wrong...)
}
