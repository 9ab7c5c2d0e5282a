package tether

import (
	"context"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/store"
)

// refuses says why this object may not adopt what was seen; "" where it may.
func (r *managing[T]) refuses(o Observation) (why string) {
	if r.m.opts.AllowAdopt == nil {
		return "this controller does not allow it; set ManageOptions.AllowAdopt"
	}
	_, err := r.protect(context.Background(), func() (Result, error) { return Done, r.m.opts.AllowAdopt(r.obj, o) })
	if err != nil {
		return err.Error()
	}
	if key, ok := r.c.holderOf(o.Reference); ok {
		return "it belongs to " + key.String()
	}
	return ""
}

// holderOf finds the living object that derives a reference.
func (c *controller[T]) holderOf(reference string) (Key, bool) {
	for _, obj := range c.live.store.List("") {
		for _, derived := range c.derived(obj) {
			if derived == reference {
				return store.KeyOf(obj), true
			}
		}
	}
	return Key{}, false
}

// derived are the references that an object derives, by its claim.
func (c *controller[T]) derived(obj T) []string {
	claim, err := protocol.ParseClaim(obj.GetAnnotations()[c.namesOn(obj).claim])
	if err != nil {
		return nil
	}
	return c.identity().Around(claim)
}
