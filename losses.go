package tether

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tetherkube/tether/internal/protocol"
)

// lost counts an object whose thing outside is over though nobody here ended it.
// Each loss counts once, for a while: where much is lost at once, it is more
// likely that the outside cannot be seen than that all of it is gone.
func (r *managing[T]) lost(is bool) {
	c := r.c
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	if is && !r.memory.lost {
		c.losses[r.key] = time.Now()
	}
	r.memory.lost = is
}

// tellLoss records an Event when a loss is first seen, and not for each look at it.
func (r *managing[T]) tellLoss(e protocol.End) {
	if !e.Lost || r.memory.lost {
		return
	}
	if told := findCondition(r.c.status.getConditions(r.have), conditionStalled); told == nil || told.Reason != e.Reason {
		r.event(corev1.EventTypeWarning, e.Reason, e.Message)
	}
}

// lossesNow is how many objects were lost lately: within a window, or in the time
// in which each is looked at once, if that is longer.
func (c *controller[T]) lossesNow() int {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	for key, at := range c.losses {
		if time.Since(at) > max(c.external.opts.Settle, c.opts.Poll+c.opts.Poll/10) {
			delete(c.losses, key)
		}
	}
	return len(c.losses)
}
