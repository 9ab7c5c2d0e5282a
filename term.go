package tether

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/queue"
)

// A new leader never acts on less than the old one had written when the lease was
// taken. What version that was, one consistent list of a single object tells. Until
// the store has got that far, each key that is popped is read consistently first.

// latest is the newest version of the informer's resource.
func (in *Informer[T]) latest(ctx context.Context) (string, error) {
	ns := ""
	if len(in.opts.Namespaces) > 0 {
		ns = in.opts.Namespaces[0] // the version is that of all namespaces
	}
	return in.live.Load().client.Version(ctx, ns)
}

// behind tells whether the store may lack what was there at a version, which was
// asked for in a term that began then. A consistent list of that term lacks nothing.
func (l *liveInformer[T]) behind(version string, term time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for namespace, reached := range l.reached {
		if at, ok := l.listed[namespace]; ok && !at.Before(term) {
			continue
		}
		if n, err := resourceversion.CompareResourceVersion(reached, version); err != nil || n < 0 {
			return true
		}
	}
	return len(l.reached) == 0
}

// learnVersions asks for what the store must have got to.
func (r *running) learnVersions(ctx context.Context) bool {
	for _, e := range r.engines {
		for wait := 250 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			err := e.beginTerm(ctx)
			if err == nil {
				break
			}
			r.note(fmt.Sprintf("waiting for the newest version of %s: %v", e.resource(), err), true)
			select {
			case <-ctx.Done():
				return false
			case <-time.After(wait):
			}
		}
	}
	return true
}

func (c *controller[T]) beginTerm(ctx context.Context) error {
	version, err := c.in.latest(ctx)
	if err != nil {
		return err
	}
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	c.caughtUp.Store(!c.live.behind(version, c.env.term))
	c.since, c.fresh = version, map[Key]bool{}
	return nil
}

// freshen reads a key consistently if the store may be behind for it. gone says
// that the object is not there any more, which the watch will tell as well.
func (c *controller[T]) freshen(ctx context.Context, item queue.Item[Key], obj T) (fresh T, gone bool, err error) {
	if c.caughtUp.Load() {
		return obj, false, nil
	}
	c.memoryMu.Lock()
	read := c.fresh[item.Key]
	c.memoryMu.Unlock()
	switch {
	case read:
		return obj, false, nil
	case !c.live.behind(c.since, c.env.term):
		c.caughtUp.Store(true)
		c.memoryMu.Lock()
		c.fresh = nil
		c.memoryMu.Unlock()
		return obj, false, nil
	}
	fresh, err = c.live.client.Get(ctx, item.Key)
	switch {
	case kube.IsGone(err):
		return obj, true, nil
	case err != nil:
		return obj, false, err
	}
	c.live.store.Refresh(fresh)
	if newest, ok := c.live.store.Get(item.Key); ok {
		fresh = newest
	}
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	if c.fresh != nil {
		c.fresh[item.Key] = true
	}
	return fresh, false, nil
}
