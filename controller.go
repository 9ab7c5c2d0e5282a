package tether

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

// Options configure a controller. A zero Options works for a [Reconciler]; the
// defaults stand in brackets.
type Options struct {
	// Name tells controllers apart: in logs, metrics, conditions' field owner, and
	// with Domain in the finalizer "<Domain>/<Name>". At most 50 characters of
	// [a-z0-9-] [the kind in lower case].
	Name string
	// Domain prefixes annotations and finalizers. Required with a Finalizer or
	// Manage where the group has no dot or ends in k8s.io [the resource's group].
	Domain string
	// Workers is how many passes run at once [4].
	Workers int
	// Timeout is a pass's deadline [2 min; Manage: four times CallTimeout, if that is more].
	Timeout time.Duration
	// Poll is how often an object is looked at although nothing changed, give or
	// take a tenth [New: never; Manage: 10 min].
	Poll time.Duration
	// MinBackoff and MaxBackoff bound an object's backoff [1 s, 5 min].
	MinBackoff, MaxBackoff time.Duration
	// Watches start passes when other objects change [none].
	Watches []Watch
	// Reads are informers that passes read; passes start when all have synced [none].
	Reads []Reads
	// Budget is that of the endpoint which the passes call, shared by giving the same
	// one to several controllers [none].
	Budget *Budget
}

// Reads is an informer of any type, for [Options].
type Reads interface{ informer }

// Controller runs passes for the objects of one informer. [New] and [Manage] make
// one, and [Run] runs it.
type Controller struct{ engine engine }

// engine is a controller of any type, as Run sees it.
type engine interface {
	name() string
	mistakes() []string
	managed() bool
	budget() *Budget
	wantsClusterID() bool
	finalizes() (finalizer string, ok bool)
	informers() []informer
	setUp(*environment) error
	resource() string
	judgesStatus(bool)
	checkServed() error
	beginTerm(ctx context.Context) error
	work(ctx context.Context, workers *sync.WaitGroup)
	drain()
	queueState() QueueState
	managedState() ManagedState
	lookForOrphans(ctx context.Context)
	strangers(known []string) map[string]int
	references(clusterID string) References
}

// New makes a controller from a [Reconciler], which may be a [Finalizer] as well.
// It starts nothing.
func New[T Object](in *Informer[T], r Reconciler[T], o Options) *Controller {
	c := newController(in, o)
	c.reconciler = r
	c.finalizer, _ = r.(Finalizer[T])
	return &Controller{c}
}

// controller is a Controller of one type.
type controller[T Object] struct {
	in         *Informer[T]
	given      Options
	opts       Options // with defaults
	reconciler Reconciler[T]
	finalizer  Finalizer[T]  // nil: there is none
	external   *managedBy[T] // nil: made by New
	status     statusField[T]
	unfit      []string // what findStatus found
	own        names
	former     []names // of a managed controller
	tooLong    error   // the cause of a pass's end at its deadline

	// During a Run:
	env        *environment
	live       *liveInformer[T]
	queue      *queue.Queue[Key]
	judges     bool // this controller writes the conditions of kstatus
	memoryMu   sync.Mutex
	memory     map[Key]*memory    // of managed objects
	stalled    map[Key]stalled[T] // what the last pass left, where it ended in a Stall
	losses     map[Key]time.Time  // of managed objects, by when they were seen
	unknown    map[Key]time.Time  // managed objects with a call of unknown outcome, since when
	orphaned   int                // things outside that nobody derives, at the last listing
	vanished   map[Key]T          // deleted ones whose finalizer somebody took off
	passNumber atomic.Uint64

	since    string       // the version that the store must get to in this term
	fresh    map[Key]bool // what was read consistently meanwhile; guarded by memoryMu
	caughtUp atomic.Bool  // … and it has
}

func newController[T Object](in *Informer[T], o Options) *controller[T] {
	c := &controller[T]{in: in, given: o, opts: o}
	if in == nil {
		return c
	}
	c.status, c.unfit = findStatus[T]()
	if c.opts.Name == "" {
		c.opts.Name = strings.ToLower(in.resource.Kind)
	}
	if c.opts.Domain == "" && domainOK(in.resource.GroupVersion.Group) {
		c.opts.Domain = in.resource.GroupVersion.Group
	}
	if c.opts.Workers == 0 {
		c.opts.Workers = 4
	}
	if c.opts.Timeout == 0 {
		c.opts.Timeout = defaultTimeout
	}
	if c.opts.MinBackoff == 0 {
		c.opts.MinBackoff = time.Second
	}
	if c.opts.MaxBackoff == 0 {
		c.opts.MaxBackoff = max(5*time.Minute, c.opts.MinBackoff)
	}
	c.own = newNames(c.opts.Domain + "/" + c.opts.Name)
	c.tooLong = fmt.Errorf("the pass took longer than it may take, %v", c.opts.Timeout)
	return c
}

// defaultTimeout is a pass's deadline where none is given.
const defaultTimeout = 2 * time.Minute

func domainOK(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, "k8s.io")
}

func (c *controller[T]) name() string          { return c.opts.Name }
func (c *controller[T]) resource() string      { return c.in.name() }
func (c *controller[T]) managed() bool         { return c.external != nil }
func (c *controller[T]) budget() *Budget       { return c.opts.Budget }
func (c *controller[T]) owner() any            { return c }
func (c *controller[T]) finalizerName() string { return c.own.finalizer }
func (c *controller[T]) claimName() string     { return c.own.claim }

func (c *controller[T]) finalizes() (string, bool) {
	return c.finalizerName(), c.finalizer != nil || c.external != nil
}

// judgesStatus says whether this controller writes Ready, Reconciling, Stalled and
// observedGeneration: one of those that run on a resource does, and none on a
// built-in one, whose status belongs to others. All write what their author edits.
func (c *controller[T]) judgesStatus(one bool) {
	c.judges = one && domainOK(c.in.resource.GroupVersion.Group)
}

// writesStatus is asked once it is known what the API server serves. Nobody promised that
// the resource of an unstructured object has a status.
func (c *controller[T]) writesStatus() bool {
	return c.status.has() && (!c.status.unstructured || c.live.served.Status)
}

func (c *controller[T]) informers() []informer {
	all := []informer{c.in}
	for _, w := range c.opts.Watches {
		all = append(all, w.in)
	}
	for _, r := range c.opts.Reads {
		all = append(all, r)
	}
	return all
}

// mistakes are all that is wrong with the controller, each with field and remedy.
func (c *controller[T]) mistakes() []string {
	if c.in == nil {
		return []string{"the informer is nil; make one with NewInformer"}
	}
	wrong := append([]string{}, c.unfit...)
	if c.reconciler == nil && c.external == nil {
		wrong = append(wrong, "the Reconciler is nil; give one")
	}
	wrong = append(wrong, c.opts.mistakes(c.in.resource.GroupVersion.Group, c.finalizer != nil || c.external != nil)...)
	if c.external != nil {
		wrong = append(wrong, c.external.mistakes(c)...)
	}
	return wrong
}

func (o Options) mistakes(group string, needsDomain bool) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len(o.Name) > 50 || len(validation.IsDNS1123Label(o.Name)) > 0 {
		say("Options.Name: %q is not a name of at most 50 characters of [a-z0-9-]; choose one", o.Name)
	}
	switch {
	case o.Domain != "" && len(validation.IsDNS1123Subdomain(o.Domain)) > 0:
		say("Options.Domain: %q is not a DNS domain; choose one of yours, for example \"example.com\"", o.Domain)
	case o.Domain == "" && needsDomain:
		say("Options.Domain: it is required, since annotations and finalizers cannot be named after group %q; choose a domain of yours, for example \"example.com\"", group)
	case strings.HasSuffix(o.Domain, "k8s.io") || strings.HasSuffix(o.Domain, "kubernetes.io"):
		say("Options.Domain: %q is Kubernetes' own; choose a domain of yours", o.Domain)
	}
	if o.Workers < 0 {
		say("Options.Workers: %d is negative; give a positive number, or 0 for 4", o.Workers)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Timeout", o.Timeout}, {"Poll", o.Poll}, {"MinBackoff", o.MinBackoff}, {"MaxBackoff", o.MaxBackoff}} {
		if d.value < 0 {
			say("Options.%s: %v is negative; give a positive duration, or 0 for the default", d.field, d.value)
		}
	}
	if o.MinBackoff > o.MaxBackoff && o.MaxBackoff > 0 {
		say("Options.MinBackoff: %v is more than MaxBackoff, %v; swap them", o.MinBackoff, o.MaxBackoff)
	}
	if o.Budget != nil {
		wrong = append(wrong, o.Budget.mistakes(o.Timeout)...)
	}
	for i, w := range o.Watches {
		switch {
		case w.in == nil:
			say("Options.Watches[%d]: its informer is nil; make one with NewInformer", i)
		case w.missing != "":
			say("Options.Watches[%d]: %s", i, w.missing)
		}
	}
	for i, r := range o.Reads {
		if isNil(r) {
			say("Options.Reads[%d]: it is nil; give an Informer", i)
		}
	}
	return wrong
}

// setUp makes the controller ready to hear; nothing runs yet.
func (c *controller[T]) setUp(env *environment) error {
	c.env, c.live = env, c.in.live.Load()
	o := c.opts.queueOptions()
	o.Counts = c.external == nil // what calls a Reconciler makes is not known
	c.queue = queue.New[Key](o)
	c.memory, c.stalled = map[Key]*memory{}, map[Key]stalled[T]{}
	c.caughtUp.Store(true) // until a term begins
	c.losses, c.unknown, c.vanished = map[Key]time.Time{}, map[Key]time.Time{}, map[Key]T{}
	c.live.store.Subscribe(c.heard)
	for _, w := range c.opts.Watches {
		w.subscribe(c)
	}
	return nil
}

// checkServed holds the type against what the API server serves, once it is known.
func (c *controller[T]) checkServed() error {
	if c.live.served.Status || !c.status.has() || c.status.unstructured {
		return nil
	}
	return fmt.Errorf("controller %q: %T has a Status, but %s has no status subresource; add subresources: {status: {}} to its CustomResourceDefinition", c.name(), *new(T), c.in.name())
}

func (c *controller[T]) known(key Key) bool {
	_, ok := c.live.store.Get(key)
	return ok
}

func (c *controller[T]) add(key Key, cause queue.Cause) { c.queue.Add(key, cause) }
func (c *controller[T]) drain() {
	if c.queue != nil { // nil: it was not set up
		c.queue.Close()
	}
}

// recovered is deferred, and has to ask for the panic itself.
func (c *controller[T]) recovered(where string) {
	if v := recover(); v != nil {
		c.live.panicked(where, v)
	}
}

func (c *controller[T]) queueState() QueueState {
	s := QueueState{Controller: c.name(), Ready: map[string]int{}}
	q := c.queue.Stats()
	for l := range queue.Lanes {
		s.Ready[l.String()] = q.Ready[l]
	}
	s.Waiting, s.Running = q.Waiting, q.Running
	return s
}

// memory is what this process knows of one managed object, by its UID.
type memory struct {
	uid    string
	learnt protocol.Memory
	done   bool // the last pass found all as wanted

	unanswered string // what the last call of unknown outcome ended in; "" once it is known how things stand
	lost       bool   // the last pass found that it is over

	// held: this process has seen its claim and finalizer on the object, and is not
	// taking them off. Whoever hears of the object's end reads it.
	held atomic.Bool
}
