package tether

import (
	"time"

	"github.com/tetherkube/tether/internal/protocol"
)

// unknownSince notes that a call's outcome is not known, and tells since when.
func (r *managing[T]) unknownSince() time.Time {
	c := r.c
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	if _, ok := c.unknown[r.key]; !ok {
		c.unknown[r.key] = time.Now()
	}
	return c.unknown[r.key]
}

// resolved notes the end of a pass that knows how all stands.
func (r *managing[T]) resolved(e protocol.End) {
	switch {
	case e.Verdict == protocol.Stalled && e.Reason == protocol.ReasonOutcomeUnknown:
		r.unknownSince()
	case e.Verdict == protocol.AsWanted, e.Verdict == protocol.Stalled, e.Verdict == protocol.Nothing:
		r.memory.unanswered = ""
		r.c.memoryMu.Lock()
		defer r.c.memoryMu.Unlock()
		delete(r.c.unknown, r.key)
	}
}

func (c *controller[T]) managedState() ManagedState {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	return ManagedState{Controller: c.name(), OutcomeUnknown: len(c.unknown), Orphans: c.orphaned}
}
