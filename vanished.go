package tether

import (
	"context"
	"errors"
	"time"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

// gone notes that an object went away although this controller had not released
// it: somebody took the finalizer off one that was being deleted. Only the event of
// a deletion tells that. A list that lacks an object tells nothing, and neither does
// one that left the selector: nothing is cancelled for it. That the finalizer is still
// on the object as which it went away says nothing either: the API server tells how it
// stood before the write that took off the last one.
func (c *controller[T]) gone(ch store.Change[T]) {
	if c.external == nil || ch.HasNew || !ch.Deleted || ch.Final.GetDeletionTimestamp() == nil {
		return
	}
	obj, key := ch.Final, store.KeyOf(ch.Final)
	if c.orphans(obj) {
		return
	}
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	if m := c.memory[key]; m != nil && m.uid == string(obj.GetUID()) && m.held.Load() {
		c.vanished[key] = obj
	}
}

// takeVanished tells whether a key that is not there any more vanished.
func (c *controller[T]) takeVanished(key Key) (obj T, ok bool) {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	obj, ok = c.vanished[key]
	delete(c.vanished, key)
	return obj, ok
}

// endVanished ends what stood outside for an object that vanished: once, and as
// well as that can be done without a place to remember how far it came. It tells
// whether that has to wait for the budget.
func (c *controller[T]) endVanished(ctx context.Context, item queue.Item[Key], obj T) (deferred bool) {
	p := c.newPass(item, obj)
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	start := time.Now()
	outcome, err := "not tried", error(nil)
	_, perr := p.protect(ctx, func() (Result, error) { outcome, err = p.endThing(ctx); return Done, nil })
	if perr != nil {
		err = perr
	}
	if errors.As(err, new(*deferredError)) {
		c.memoryMu.Lock()
		defer c.memoryMu.Unlock()
		c.vanished[p.key] = obj
		return true
	}
	p.log.Info("the finalizer was taken off an object that was being deleted", "outside", outcome, "error", err)
	c.env.hooks.Pass(PassInfo{Controller: c.name(), Key: p.key, Lane: item.Lane.String(), Waited: item.Waited, Duration: time.Since(start), Outcome: "vanished", Reason: outcome})
	return false
}

func (p *pass[T]) endThing(ctx context.Context) (string, error) {
	c := p.c
	if _, err := c.live.client.Get(ctx, p.key); !kube.IsGone(err) {
		return "not tried: the name is in use, or cannot be read", err
	}
	if p.item.Refuse {
		return "not tried", c.opts.Budget.away()
	}
	p.copy()
	r := &managing[T]{pass: p, m: c.external, full: map[string]Observation{}, memory: c.remember(p.key, string(p.seen.GetUID())), vanished: true}
	if err := r.begin(ctx); err != nil {
		return "not tried", err
	}
	if r.policy().Retain {
		return "left, as the policy says", nil
	}
	r.memory.learnt.Read = true
	for range longestPass {
		switch s := r.decide(); s.Do {
		case protocol.Release:
			return "ended", nil
		case protocol.LookUp:
			if e, ends := r.look(ctx, s); ends {
				return "not tried", e.err
			}
		case protocol.Delete, protocol.Fence:
			if e, ends := r.effect(ctx, s); ends {
				return "perhaps left: " + e.verdict.reason, e.err
			}
		default:
			return "perhaps left: " + orElse(s.End.Reason, s.Do.String()), nil
		}
	}
	return "perhaps left", nil
}
