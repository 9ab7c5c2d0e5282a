package tether

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tetherkube/tether/internal/protocol"
)

// How many polls apart the outside is listed, and how many orphans are named.
const (
	listEvery  = 6
	namedAtOne = 20
)

// lookForOrphans lists the outside now and then, where the External is a Lister,
// and reports what belongs to this cluster and to none of its objects. It ends
// none: an object may be restored any time.
func (c *controller[T]) lookForOrphans(ctx context.Context) {
	if c.external == nil || c.external.lister == nil {
		return
	}
	if o := c.in.opts; len(o.Namespaces) > 0 || o.LabelSelector != "" || o.FieldSelector != "" {
		return // others of this cluster are not in view
	}
	wait := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for wait(c.external.opts.Settle) {
		first, err := c.orphansNow(ctx)
		if err == nil && len(first) > 0 && !wait(c.external.opts.Settle) { // what is on its way gets the time to arrive
			return
		}
		var twice []string
		if err == nil && len(first) > 0 {
			var again []string
			if again, err = c.orphansNow(ctx); err == nil {
				twice = slices.DeleteFunc(again, func(id string) bool { return !slices.Contains(first, id) })
			}
		}
		if err != nil {
			c.env.log.Error(err, "the outside cannot be listed", "controller", c.name())
		} else {
			c.report(twice)
		}
		if !wait(listEvery * max(c.opts.Poll, time.Minute)) {
			return
		}
	}
}

func (c *controller[T]) report(orphans []string) {
	c.memoryMu.Lock()
	was := c.orphaned
	c.orphaned = len(orphans)
	c.memoryMu.Unlock()
	if len(orphans) > 0 || was > 0 {
		c.env.log.Info("things outside that no object derives", "controller", c.name(), "count", len(orphans), "ids", orphans[:min(len(orphans), namedAtOne)])
	}
}

// orphansNow are the ids of what is live outside, carries a reference of this
// cluster, and is derived by no object.
func (c *controller[T]) orphansNow(ctx context.Context) ([]string, error) {
	mine := protocol.ClusterPrefix(c.identity().Cluster)
	var listed []Listed
	_, err := (&pass[T]{c: c}).protect(ctx, func() (Result, error) {
		return Done, c.opts.Budget.Do(ctx, func(ctx context.Context) error {
			for l, err := range c.external.lister.List(ctx) {
				if err != nil {
					return err
				}
				if l.State.live() && strings.HasPrefix(l.Reference, mine) {
					listed = append(listed, l)
				}
			}
			return nil
		})
	})
	if err != nil || len(listed) == 0 {
		return nil, err
	}
	derived := map[string]bool{}
	for _, obj := range c.live.store.List("") { // after the list: what was made meanwhile is not on it
		for _, reference := range c.derived(obj) {
			derived[reference] = true
		}
	}
	var ids []string
	for _, l := range listed {
		if !derived[l.Reference] {
			ids = append(ids, l.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (s State) live() bool { return protocol.State(s).Live() }

// tellStrangers names finalizers of the controllers' Domains that none of them
// owns: whoever put them there has to take them off, or nobody will.
func (r *running) tellStrangers() {
	var known []string
	for _, e := range r.engines {
		if name, ok := e.finalizes(); ok {
			known = append(known, name)
		}
	}
	for _, e := range r.engines {
		for name, n := range e.strangers(known) {
			r.env.log.Info("objects carry a finalizer that no controller here owns; run the one that does, or list its name in ManageOptions.Formerly",
				"controller", e.name(), "finalizer", name, "objects", n)
		}
	}
}

func (c *controller[T]) strangers(known []string) map[string]int {
	found := map[string]int{}
	if _, ok := c.finalizes(); !ok {
		return found
	}
	known = append(c.formerly(), known...)
	for _, obj := range c.live.store.List("") {
		for _, f := range obj.GetFinalizers() {
			if strings.HasPrefix(f, c.opts.Domain+"/") && !slices.Contains(known, f) {
				found[f]++
			}
		}
	}
	return found
}
