package protocol

import "fmt"

// leave is rule 13: the object is being deleted.
func (v *View) leave() Step {
	c, m := v.Claim, v.Memory
	switch {
	case v.Policy.Retain && c.Next == 0:
		return v.release(EventRetained, "released; what stands outside stays, as the policy says")
	case v.Outside.Guarantee == None && v.Status.ID == "" && v.Claimed && !m.Known: // 12
		return stalled(ReasonOutcomeUnknown, "a create may have been sent, and nobody can tell what came of it: look at the outside, then release the object with the orphan annotation")
	case !m.Changed.IsZero() && !v.passed(m.Changed):
		return v.waiting(ReasonDeleting, "the claim was changed by someone else: a call made under it may still land", m.Changed)
	case m.Known && m.Created.IsZero():
		return v.release("", "") // nothing was ever sent
	}
	live, ends, first := v.standing()
	if first != nil {
		return *first
	}
	if s, ends := v.end(live); ends {
		return s
	}
	if v.seen() && len(ends) == 0 && !v.answered(Delete) && (m.Absent.IsZero() || !v.passed(m.Absent)) {
		return v.vanishing()
	}
	for n := c.Incarnation; n <= max(c.Incarnation, c.Next); n++ {
		if !v.closed(n) {
			return v.close(n)
		}
	}
	return v.release("", "")
}

// standing is what is found of this object: where all is known, by the ids and
// references of the claim alone, and the cancel's own answer is the last look.
func (v *View) standing() ([]Sight, map[int]Sight, *Step) {
	c := v.Claim
	if !v.Memory.Known {
		if v.cancelled() && v.Outside.Fence && !v.closed(c.Incarnation) {
			return nil, map[int]Sight{c.Incarnation: {}}, nil // to the fence; all is looked at again after it
		}
		w := v.walk(c.Incarnation)
		if w.next == nil && len(w.ends) == 0 && v.Status.ID != "" {
			return v.standingByID(w)
		}
		return w.live, w.ends, w.next
	}
	var live []Sight
	ends := map[int]Sight{}
	for n := c.Incarnation; n <= max(c.Incarnation, c.Next); n++ {
		find := v.sightOf
		if n == c.Incarnation && c.Next != 0 {
			find = func(int) (*Sight, Step) { return v.oldSight() }
		}
		s, first := find(n)
		if s == nil {
			return nil, nil, &first
		}
		if !s.State.missing() {
			ends[n] = *s
		}
		if s.State.Live() {
			live = append(live, *s)
		}
	}
	return live, ends, nil
}

// standingByID looks by the id in status when the walk found nothing: look-ups by
// reference may lag, look-ups by id do not.
func (v *View) standingByID(w walked) ([]Sight, map[int]Sight, *Step) {
	l := v.byID(v.Status.ID)
	switch {
	case l == nil:
		return nil, nil, &Step{Do: LookUp, ID: v.Status.ID}
	case l.Failed:
		s := finish(CannotSay, "", "")
		return nil, nil, &s
	case l.Own == 0 || l.State.missing():
		return w.live, w.ends, nil
	case l.State.Live():
		w.live = append(w.live, l.Sight)
	}
	w.ends[l.Own] = l.Sight
	return w.live, w.ends, nil
}

// cancelled: a delete was answered in this pass, and what it ended is not live.
func (v *View) cancelled() bool {
	for _, l := range v.Looks {
		if l.Answer == Delete {
			return !l.Failed && !l.State.Live()
		}
	}
	return false
}

// end cancels what is live, one at a time. With Retain the one that rule 15 would
// keep stays.
func (v *View) end(live []Sight) (Step, bool) {
	keep := 0
	if v.Policy.Retain {
		keep = v.Claim.Incarnation
		for _, s := range live {
			if s.Own == v.Claim.Next && s.State == Present {
				keep = s.Own
			}
		}
	}
	for _, s := range live {
		if s.Own == keep && keep != 0 {
			continue
		}
		for _, l := range v.Looks {
			if l.Answer == Delete && l.Incarnation == s.Own {
				return finish(Working, ReasonDeleting, "the cancellation is under way: "+s.Message), true
			}
		}
		return v.effect(Step{Do: Delete, Incarnation: s.Own, ID: s.ID, Sight: s}), true
	}
	return Step{}, false
}

// vanishing: status has an id that is not found. Absence is looked at twice.
func (v *View) vanishing() Step {
	message := fmt.Sprintf("%q is not found outside; absence is looked at twice, a window apart", v.Status.ID)
	if v.Memory.Absent.IsZero() {
		s := finish(Waiting, ReasonVerifyingAbsence, message)
		s.End.After = v.window()
		return s
	}
	return v.waiting(ReasonVerifyingAbsence, message, v.Memory.Absent)
}

func (v *View) release(event, note string) Step {
	return Step{Do: Release, Claim: v.Claim, Warning: event, Note: note}
}
