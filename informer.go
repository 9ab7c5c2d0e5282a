package tether

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/store"
)

// InformerOptions restrict what an [Informer] sees. The zero value sees all.
type InformerOptions struct {
	Namespaces        []string // only these [all]; each has a list-watch of its own
	LabelSelector     string   // as in kubectl -l [all]
	FieldSelector     string   // as in kubectl --field-selector [all]
	KeepManagedFields bool     // keep metadata.managedFields, about half of a small object [false]
}

// Informer keeps the objects of one resource in memory, as the API server tells of
// them: list, watch, and the answers to this process's own writes, the newest of
// which counts. It may be shared by any number of controllers of one [Run], which
// starts it; nothing else does.
//
// An object that does not fit its Go type, since it came past an older definition,
// has its metadata and nothing else; it is logged, a pass of it is Stalled, and the
// others are served on.
//
// What Get, List and an Index return is shared: it must not be changed. DeepCopy
// it first. All methods may be called concurrently, and before, during and after
// Run.
type Informer[T Object] struct {
	resource Resource[T]
	opts     InformerOptions
	indexes  []*Index[T]

	live atomic.Pointer[liveInformer[T]] // while Run runs
}

// NewInformer makes an informer. It starts nothing.
func NewInformer[T Object](r Resource[T], o InformerOptions) *Informer[T] {
	o.Namespaces = slices.Clone(o.Namespaces)
	return &Informer[T]{resource: r, opts: o}
}

// Get returns the object: shared, read-only. It is false before the first sync,
// and for an object that is not there.
func (in *Informer[T]) Get(key Key) (T, bool) {
	if l := in.live.Load(); l != nil && l.synced() {
		return l.store.Get(key)
	}
	var none T
	return none, false
}

// List yields the objects of a namespace, or all for "", in no order: as they were
// when the iteration began, shared, read-only. It yields none before the first sync.
func (in *Informer[T]) List(namespace string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if l := in.live.Load(); l != nil && l.synced() {
			all(l.store.List(namespace), yield)
		}
	}
}

func all[T any](list []T, yield func(T) bool) {
	for _, o := range list {
		if !yield(o) {
			return
		}
	}
}

// Index finds an informer's objects by a value derived from them.
type Index[T Object] struct {
	in     *Informer[T]
	values func(T) []string
	at     int
}

// NewIndex adds an index to an informer, before Run. values derives what an object
// is found by; it must be pure and quick, and must not call the informer. A panic
// in it means no values.
func NewIndex[T Object](in *Informer[T], values func(T) []string) *Index[T] {
	x := &Index[T]{in: in, values: values, at: len(in.indexes)}
	in.indexes = append(in.indexes, x)
	return x
}

// Lookup yields the objects that have the value, in no order, shared and read-only.
func (x *Index[T]) Lookup(value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if l := x.in.live.Load(); l != nil && l.synced() && x.at < len(l.indexes) {
			all(l.indexes[x.at].Lookup(value), yield)
		}
	}
}

// informer is an Informer of any type, as Run and controllers see it.
type informer interface {
	name() string
	mistakes() []string
	open(*environment) error
	runner() func(ctx context.Context)
	close()
	state() InformerState
	synced() <-chan struct{}
	busy() bool
	latest(ctx context.Context) (version string, err error)
}

// liveInformer is an informer during one Run.
type liveInformer[T Object] struct {
	*Informer[T]
	env     *environment
	client  *kube.Client[T]
	store   *store.Store[T]
	indexes []*store.Index[T]
	ready   chan struct{} // closed at the first sync
	once    sync.Once
	served  kube.Served // valid once ready

	mu      sync.Mutex // guards the rest
	pending int        // list-watches that have not synced yet
	trouble map[string]trouble
	reached map[string]string    // by namespace: what the list-watch has told up to
	listed  map[string]time.Time // by namespace: when the last consistent list that came was asked for
}

// keep takes the answer to a request of a Client into the store, if it is of an object
// that the list-watches tell of.
func (l *liveInformer[T]) keep(w *store.Write[T], obj T) {
	if l.watches(obj) {
		w.Answered(obj)
	} else {
		w.Failed()
	}
}

// watches tells whether an object is among what is listed and watched. Of a field selector
// only the metadata's fields can be told here; one of other fields it has met, or not.
func (l *liveInformer[T]) watches(obj T) bool {
	o, key := l.opts, store.KeyOf(obj)
	if len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, key.Namespace) {
		return false
	}
	if s, err := labels.Parse(o.LabelSelector); err != nil || !s.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	s, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return false
	}
	for _, r := range s.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			_, stored := l.store.Get(key)
			return stored
		}
	}
	return s.Matches(fields.Set{"metadata.name": key.Name, "metadata.namespace": key.Namespace})
}

func (l *liveInformer[T]) synced() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

func (in *Informer[T]) name() string { return in.resource.kube().String() }

func (in *Informer[T]) busy() bool { return in.live.Load() != nil }

func (in *Informer[T]) mistakes() []string {
	wrong := in.resource.mistakes()
	if _, err := labels.Parse(in.opts.LabelSelector); err != nil {
		wrong = append(wrong, fmt.Sprintf("InformerOptions.LabelSelector: %v; give one as kubectl -l takes it", err))
	}
	if _, err := fields.ParseSelector(in.opts.FieldSelector); err != nil {
		wrong = append(wrong, fmt.Sprintf("InformerOptions.FieldSelector: %v; give one as kubectl --field-selector takes it", err))
	}
	if in.resource.ClusterScoped && len(in.opts.Namespaces) > 0 {
		wrong = append(wrong, "InformerOptions.Namespaces: the resource is cluster-scoped; leave them empty")
	}
	for i, ns := range in.opts.Namespaces {
		if len(validation.IsDNS1123Label(ns)) > 0 || slices.Contains(in.opts.Namespaces[:i], ns) {
			wrong = append(wrong, fmt.Sprintf("InformerOptions.Namespaces: %q is no namespace's name, or named twice; name each namespace once, or none for all", ns))
		}
	}
	for i, x := range in.indexes {
		if x.values == nil {
			wrong = append(wrong, fmt.Sprintf("NewIndex: index %d has no function; give one that derives the values", i))
		}
	}
	return wrong
}

// open makes the informer ready to hear; nothing is sent yet.
func (in *Informer[T]) open(env *environment) error {
	client, err := kube.NewClient[T](env.conn, in.resource.kube())
	if err != nil {
		return err
	}
	client.Keep = in.opts.KeepManagedFields
	l := &liveInformer[T]{
		Informer: in, env: env, client: client, store: store.New[T](), ready: make(chan struct{}),
		trouble: map[string]trouble{}, reached: map[string]string{}, listed: map[string]time.Time{},
	}
	for _, x := range in.indexes {
		l.indexes = append(l.indexes, l.store.NewIndex(func(obj T) (values []string) {
			defer l.recovered("NewIndex")
			return x.values(obj)
		}))
	}
	if !in.live.CompareAndSwap(nil, l) {
		return fmt.Errorf("informer of %s: it runs already; give each Run informers of its own", in.name())
	}
	return nil
}

// recovered is deferred.
func (l *liveInformer[T]) recovered(where string) {
	if v := recover(); v != nil {
		l.panicked(where, v)
	}
}

func (l *liveInformer[T]) panicked(where string, value any) {
	l.env.log.Error(&panicError{value: value}, "a function of the author panicked", "where", where, "resource", l.name(), "stack", string(debug.Stack()))
}

func (in *Informer[T]) close() { in.live.Store(nil) }

func (in *Informer[T]) synced() <-chan struct{} { return in.live.Load().ready }

// runner returns what runs this opened informer, also after it was closed again.
func (in *Informer[T]) runner() func(context.Context) { return in.live.Load().run }

// run waits until the resource is served, and then lists and watches until ctx
// ends. What keeps it from it is told in readiness, in the log and in metrics.
func (l *liveInformer[T]) run(ctx context.Context) {
	if !l.discover(ctx) {
		return
	}
	namespaces := l.opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	l.mu.Lock()
	l.pending = len(namespaces)
	l.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { l.watchdog(ctx) })
	for _, ns := range namespaces {
		sink := &listSink[T]{live: l, namespace: ns}
		lw := kube.ListWatch[T]{
			Client: l.client, Namespace: ns, Sink: sink,
			LabelSelector: l.opts.LabelSelector, FieldSelector: l.opts.FieldSelector,
		}
		wg.Go(func() { lw.Run(logr.NewContext(ctx, l.env.log)) })
	}
	wg.Wait()
}

// discover waits until the API server serves the resource as it was described.
func (l *liveInformer[T]) discover(ctx context.Context) bool {
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		served, err := l.client.Discover(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			l.troubled("discovery", err)
		case !served.Found:
			l.troubled("discovery", &notServed{l.name(), l.resource.GroupVersion.Version})
		default:
			l.served = served
			if err := l.misdescribed(served); err != nil {
				l.env.fail(err)
				return false
			}
			l.troubled("discovery", nil)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// misdescribed holds the Resource against what is served.
func (l *liveInformer[T]) misdescribed(s kube.Served) error {
	switch {
	case s.Kind != l.resource.Kind:
		return fmt.Errorf("informer of %s: Resource.Kind is %q, the API server says %q; correct it", l.name(), l.resource.Kind, s.Kind)
	case s.Namespaced == l.resource.ClusterScoped:
		return fmt.Errorf("informer of %s: Resource.ClusterScoped is %v, the API server says %v; correct it", l.name(), l.resource.ClusterScoped, !s.Namespaced)
	}
	return nil
}

// listSink brings one list-watch into the store.
type listSink[T Object] struct {
	live      *liveInformer[T]
	namespace string
	listing   store.Listing // of the list under way
	asked     time.Time     // when it was asked for, if it is consistent
	synced    bool
}

func (s *listSink[T]) Listing(authoritative bool) {
	s.asked = time.Time{}
	if authoritative {
		s.asked = time.Now()
	}
	s.listing = s.live.store.StartList(authoritative)
}

func (s *listSink[T]) Replace(items []T, version string) {
	for _, obj := range items {
		s.tell(obj)
	}
	s.live.store.Replace(s.namespace, items, version, s.listing)
	s.Reached(version)
	if !s.asked.IsZero() {
		s.live.mu.Lock()
		s.live.listed[s.namespace] = s.asked
		s.live.mu.Unlock()
	}
	if s.synced {
		return
	}
	s.synced = true
	s.live.mu.Lock()
	s.live.pending--
	last := s.live.pending == 0
	if last {
		s.live.troubledLocked("sync", nil)
	}
	s.live.mu.Unlock()
	if last {
		s.live.once.Do(func() { close(s.live.ready) })
	}
}

func (s *listSink[T]) Apply(obj T) {
	s.tell(obj)
	s.live.store.Apply(obj)
}

// tell logs an object that does not fit its Go type: only its metadata is known.
func (s *listSink[T]) tell(obj T) {
	if err := s.live.client.Unreadable(obj); err != nil {
		s.live.env.log.Error(err, "object does not fit its Go type", "resource", s.live.name(), "namespace", obj.GetNamespace(), "name", obj.GetName())
	}
}

func (s *listSink[T]) Remove(obj T) { s.live.store.Remove(obj) }
func (s *listSink[T]) Reached(version string) {
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	s.live.reached[s.namespace] = version
}

func (s *listSink[T]) Trouble(err error) { s.live.troubled("watch of "+s.namespace, err) }
