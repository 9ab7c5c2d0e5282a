package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// leave is rule 13: the object is being deleted. What is live is cancelled, every
// incarnation closed, and all looked at again; nothing is made in order to be
// cancelled.
func (v *View) leave() Step {
	c, m := v.Claim, v.Memory
	switch {
	case !m.Changed.IsZero() && !v.passed(m.Changed):
		return v.waiting(ReasonDeleting, "the claim was changed by someone else: a call made under it may still land", m.Changed)
	case m.Known && m.Created.IsZero():
		return v.release("", "") // nothing was ever sent
	case v.guarantee() == None && v.Claimed && !m.Known && !v.told(): // 12
		asked := fmt.Sprintf("%d.%d=", max(c.Incarnation, c.Next), c.Attempt)
		return stalled(ReasonOutcomeUnknown, fmt.Sprintf("a create may have been sent, and nobody can tell what came of it: look at the outside, and annotate the object with %s=%shappened:<id>, or …%sdid-not-happen, or release it with the orphan annotation",
			v.annotation("outcome"), asked, asked))
	case v.Policy.Retain && c.Next == 0 && (!v.Outside.Rebind || v.answered(Rebind, 0) != nil):
		return v.retain()
	}
	if l := v.answered(Delete, c.Incarnation); l != nil && !l.State.Live() && v.Outside.Fence && !v.closed(c.Incarnation) {
		return v.effect(Step{Do: Fence, Incarnation: c.Incarnation}) // all is looked at again after it
	}
	found, ok := v.standing()
	if !ok {
		return v.first
	}
	keep := v.keeps(found)
	for _, s := range found {
		if s.State.Live() && s.Own != keep {
			return v.end(s, ReasonDeleting)
		}
	}
	if n := v.missed(found); n != 0 {
		if s, needed := v.proof(n); needed {
			s.End.Message = fmt.Sprintf("%q: %s", v.Status.ID, s.End.Message)
			return s
		}
	}
	first, last := c.Incarnation, max(c.Incarnation, c.Next)
	for _, s := range found {
		first, last = min(first, s.Own), max(last, s.Own)
	}
	if s, needed := v.close(first, last); needed {
		return s
	}
	if !v.Policy.Retain {
		return v.letGo()
	}
	for _, s := range found { // what stays gets a reference that no later object derives
		if s.Own == keep && s.State.Live() && v.Outside.Rebind && v.answered(Rebind, 0) == nil {
			return v.effect(Step{Do: Rebind, ID: s.ID, Sight: s})
		}
	}
	if !slices.ContainsFunc(found, func(s Sight) bool { return s.State.Live() }) {
		return v.letGo()
	}
	return v.retain()
}

// letGo releases, and says so where what status tells of is left: it lives, and is
// not this object's by its reference.
func (v *View) letGo() Step {
	if l := v.byID(v.Status.ID); l != nil && l.State.Live() && l.Own == 0 && v.Outside.Guarantee != None {
		return v.release(EventLeftBehind, fmt.Sprintf("released; what stands outside as %q carries a reference that is not this object's, and was left alone", l.ID))
	}
	return v.release("", "")
}

// missed is an incarnation that was there once and is not found; 0 for none. Its
// absence wants proof.
func (v *View) missed(found []Sight) int {
	c := v.Claim
	if v.seen() && len(found) == 0 {
		return c.Incarnation
	}
	for _, n := range []int{c.Incarnation, c.Next} {
		has := func(s Sight) bool { return s.Own == n }
		if n != 0 && v.Memory.id(n) != "" && !slices.ContainsFunc(found, has) {
			return n
		}
	}
	return 0
}

func (v *View) retain() Step {
	return v.release(EventRetained, "released; what stands outside stays, as the policy says")
}

// told: where nothing can be looked up, the id is known, or a person has said what
// came of the create.
func (v *View) told() bool {
	c := v.Claim
	asked := fmt.Sprintf("%d.%d=", max(c.Incarnation, c.Next), c.Attempt)
	answer, ok := strings.CutPrefix(v.Ask.Outcome, asked)
	if id, happened := strings.CutPrefix(answer, "happened:"); ok && happened && v.Status.ID == "" {
		v.Status.ID = id
	}
	return ok || v.Status.ID != "" && (v.Status.ID != c.ID || v.Memory.Unsent) || v.Memory.Attempted && v.Memory.Spent
}

// standing is what is found of this object, oldest first: where all is known, the
// claim's incarnations alone, and the cancel's own answer is the last look.
func (v *View) standing() ([]Sight, bool) {
	c := v.Claim
	if !v.Memory.Known {
		w, ok := v.walk(c.Incarnation)
		if l := v.behind(); ok && l != nil {
			w, ok = v.walk(l.Own)
		}
		return w.found, ok
	}
	var found []Sight
	for _, n := range []int{c.Incarnation, c.Next} {
		if n == 0 {
			continue
		}
		s, ok := v.find(n)
		if !ok {
			return nil, false
		}
		if s.Own = n; !s.State.missing() {
			found = append(found, s)
		}
	}
	return found, true
}

// keeps is the incarnation that stays where the policy retains: the one that rule
// 15 would keep. Zero for none.
func (v *View) keeps(found []Sight) int {
	if !v.Policy.Retain {
		return 0
	}
	for _, s := range found {
		if s.Own == v.Claim.Next && s.State == Present {
			return s.Own
		}
	}
	return v.Claim.Incarnation
}

func (v *View) release(event, note string) Step {
	return Step{Do: Release, Claim: v.Claim, Warning: event, Note: note}
}
