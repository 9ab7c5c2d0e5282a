package tether

import (
	"github.com/tetherkube/tether/internal/queue"
)

// stalled is what a pass that ended in a Stall left: enough to put its status
// right without asking the author, whose calls have to wait for a change.
type stalled[T Object] struct {
	obj    T // shared, read-only
	ending ending
}

// keptEnding is the ending of a pass that only puts a stalled object's status right.
func (p *pass[T]) keptEnding() (ending, bool) {
	c := p.c
	if !p.item.Stalled || p.item.Cause != queue.Restore {
		return ending{}, false
	}
	c.memoryMu.Lock()
	kept, ok := c.stalled[p.key]
	c.memoryMu.Unlock()
	if !ok || kept.obj.GetUID() != p.seen.GetUID() || c.generation(kept.obj) != c.generation(p.seen) {
		return ending{}, false
	}
	p.copy()
	c.status.share(kept.obj.DeepCopyObject().(T), p.obj)
	p.restores = true
	return kept.ending, true
}

// keep notes what a Stall left, for as long as it lasts.
func (c *controller[T]) keep(p *pass[T], e ending) {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	kept, restore := p.have, e.outcome.Restore
	e.err, e.unwritten, e.outcome.Restore = nil, nil, false
	switch {
	case restore:
		c.stalled[p.key] = stalled[T]{p.obj, e}
	case e.outcome.Kind == queue.Stall && !p.overtaken: // what it has from others may be what is to be put right
		c.stalled[p.key] = stalled[T]{kept, e}
	default:
		delete(c.stalled, p.key)
	}
}

func (c *controller[T]) forget(key Key) {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	delete(c.memory, key)
	delete(c.stalled, key)
	delete(c.unknown, key)
}
