package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaseOptions name a Lease and its times.
type LeaseOptions struct {
	Namespace, Name, Identity            string
	Duration, RenewDeadline, RetryPeriod time.Duration
}

// ErrLeaseLost says that the lease is not held any more: another holder was seen,
// or the renew deadline passed, by the wall clock or by the monotonic one.
var ErrLeaseLost = errors.New("the lease is lost")

// Elector takes a Lease, keeps it, and knows at any moment whether it is held.
// client-go's elector does the election; it notices a loss only when a renewal
// fails, which after a freeze is too late, so the lock beneath it is watched here.
type Elector struct {
	opts LeaseOptions
	lock resourcelock.Interface

	mu      sync.Mutex // guards the rest
	renewed instant    // when the last renewal that succeeded was sent; zero: never
	holder  string     // as last seen
	lost    error
	trouble error         // why the last attempt failed; nil: it did not
	expired *time.Timer   // fires at the renew deadline
	gone    chan struct{} // closed when lost
}

// NewElector makes an elector on a connection of its own, so that a busy
// controller cannot delay a renewal.
func NewElector(conn *Conn, o LeaseOptions) (*Elector, error) {
	client, err := coordinationv1.NewForConfigAndClient(conn.Config, conn.Client)
	if err != nil {
		return nil, fmt.Errorf("client for leases: %w", err)
	}
	lock := &resourcelock.LeaseLock{Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity}}
	lock.LeaseMeta.Namespace, lock.LeaseMeta.Name = o.Namespace, o.Name
	e := &Elector{opts: o, gone: make(chan struct{})}
	e.lock = &watchedLock{Interface: lock, elector: e}
	return e, nil
}

// Run waits for the lease, calls leading with it, and gives it back when ctx ends.
// It returns after leading has returned: nil when ctx ended, [ErrLeaseLost] when
// the lease was lost; then the context of leading ended with that cause.
func (e *Elector) Run(ctx context.Context, leading func(context.Context)) error {
	leadCtx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	var wg sync.WaitGroup
	started := make(chan struct{})
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, LeaseDuration: e.opts.Duration, RenewDeadline: e.opts.RenewDeadline, RetryPeriod: e.opts.RetryPeriod,
		ReleaseOnCancel: true, Name: e.opts.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(started) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	electCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	elected := make(chan struct{})
	wg.Go(func() { defer close(elected); le.Run(electCtx) })
	defer e.rest()
	defer wg.Wait()
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case <-elected: // not before it is asked to stop
		return e.reason()
	case <-started:
	}
	led := make(chan struct{})
	wg.Go(func() { defer close(led); leading(leadCtx) })
	select {
	case <-led:
		return e.lostError()
	case <-e.gone:
	case <-elected:
	}
	err = e.reason()
	lose(err)
	<-led
	return err
}

// rest leaves no timer behind.
func (e *Elector) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.expired != nil {
		e.expired.Stop()
	}
}

// Held tells whether the lease is held now, by both clocks: nil, or why not. It is
// asked right before each send.
func (e *Elector) Held() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch since := e.renewed.since(time.Now()); {
	case e.lost != nil:
		return e.lost
	case e.renewed.isZero():
		return fmt.Errorf("%w: it was never held", ErrLeaseLost)
	case since >= e.opts.RenewDeadline:
		e.loseLocked(fmt.Errorf("%w: not renewed for %v", ErrLeaseLost, since.Round(time.Millisecond)))
		return e.lost
	}
	return nil
}

// instant is a moment on two clocks. The monotonic one may stand still while the
// machine sleeps, and the wall clock may be set: what either says has passed has.
type instant struct {
	monotonic time.Time // also has a wall clock's reading, which does not count
	wall      time.Time // has no monotonic one
}

func at(t time.Time) instant { return instant{monotonic: t, wall: t.Round(0)} }

func (i instant) isZero() bool { return i.monotonic.IsZero() }

// since is how long ago it was, by the clock that says longer.
func (i instant) since(now time.Time) time.Duration {
	return max(now.Sub(i.monotonic), now.Round(0).Sub(i.wall))
}

// Holder is who held the lease when it was last seen, "" for nobody.
func (e *Elector) Holder() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.holder
}

// Trouble is why the last request about the lease failed; nil if it did not.
func (e *Elector) Trouble() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.trouble
}

func (e *Elector) lostError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lost
}

func (e *Elector) reason() error {
	if err := e.lostError(); err != nil {
		return err
	}
	return ErrLeaseLost
}

func (e *Elector) loseLocked(err error) {
	if e.lost == nil {
		e.lost = err
		close(e.gone)
	}
	if e.expired != nil {
		e.expired.Stop()
	}
}

// renewedLocked sets the watchdog anew. sent is when the renewal was sent: the
// server may have taken it at once, and counts from then.
func (e *Elector) renewedLocked(sent time.Time) {
	e.renewed = at(sent)
	d := max(time.Until(sent.Add(e.opts.RenewDeadline)), 0)
	if e.expired == nil {
		e.expired = time.AfterFunc(d, func() { _ = e.Held() })
	} else {
		e.expired.Reset(d)
	}
}

// watchedLock tells the elector what each request about the Lease showed.
type watchedLock struct {
	resourcelock.Interface
	elector *Elector
}

func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	e := l.elector
	e.mu.Lock()
	defer e.mu.Unlock()
	e.trouble = err
	if err == nil {
		e.holder = r.HolderIdentity
		if !e.renewed.isZero() && r.HolderIdentity != e.opts.Identity {
			e.loseLocked(fmt.Errorf("%w: %q holds it", ErrLeaseLost, r.HolderIdentity))
		}
	}
	return r, raw, err
}

func (l *watchedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.refused(); err != nil {
		return err
	}
	sent := time.Now()
	return l.wrote(r, sent, l.Interface.Create(ctx, r))
}

func (l *watchedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.refused(); err != nil {
		return err
	}
	sent := time.Now()
	return l.wrote(r, sent, l.Interface.Update(ctx, r))
}

// refused keeps a process whose term is over from writing: client-go's release
// reads the Lease anew and gives it back whoever holds it, so that a leader that
// was frozen would take it from its successor. A lease that is lost and still names
// this process runs out by itself.
func (l *watchedLock) refused() error {
	e := l.elector
	if err := e.lostError(); err != nil {
		return err
	}
	e.mu.Lock()
	never := e.renewed.isZero()
	e.mu.Unlock()
	if never { // a candidate writes
		return nil
	}
	return e.Held()
}

func (l *watchedLock) wrote(r resourcelock.LeaderElectionRecord, sent time.Time, err error) error {
	e := l.elector
	e.mu.Lock()
	defer e.mu.Unlock()
	e.trouble = err
	switch {
	case err != nil:
	case r.HolderIdentity != e.opts.Identity: // given back
		e.holder = r.HolderIdentity
		e.loseLocked(fmt.Errorf("%w: given back", ErrLeaseLost))
	case e.lost == nil:
		e.holder = r.HolderIdentity
		e.renewedLocked(sent)
	}
	return err
}
