package protocol

// replace is rule 15. The claim records next and the old id. CreateFirst: the old
// one goes only when next stands and status says so. DeleteFirst: next is made only
// when the old one is gone and closed.
func (v *View) replace() Step {
	c := v.Claim
	if v.Policy.DeleteFirst {
		if s, first := v.oldFirst(); first {
			return s
		}
	} else if v.blank() {
		return v.create(c.Next)
	}
	next, ok := v.find(c.Next)
	switch {
	case !ok:
		return v.first
	case next.State == Pending:
		return v.live(Working, ReasonReplacing, "the replacement is on its way: "+next.Message)
	case next.State == Present && !(v.Status.Recorded && v.Status.ID == next.ID):
		return Step{Do: Record, ID: next.ID}
	case next.State == Present:
		return v.dropOld()
	}
	return v.replaceAnew(next)
}

// oldFirst ends the old one, unless spec was changed back to what it is.
func (v *View) oldFirst() (Step, bool) {
	old, ok := v.find(v.Claim.Incarnation)
	switch {
	case !ok:
		return v.first, true
	case v.wantedBack(old):
		since, flying := v.flying() // a cancellation may be
		if flying {
			s := v.waiting(ReasonSettling, "spec is changed back, and a cancellation of what stood before may still land", since)
			s.End.Live = true
			return s, true
		}
		return Step{}, false
	case old.State.Live():
		return v.end(old, ReasonReplacing), true
	}
	return v.closeOld(old)
}

// closeOld makes sure that the old one is over: what is not found, though its id is
// known, wants proof; and no create of it may land any more.
func (v *View) closeOld(old Sight) (Step, bool) {
	n := v.Claim.Incarnation
	if old.State.missing() && (v.Claim.ID != "" || v.Memory.id(n) != "") {
		if s, needed := v.proof(n); needed {
			return s, true
		}
	}
	return v.close(n, n)
}

func (v *View) wantedBack(old Sight) bool { return old.State == Present && !old.Differs }

// end cancels what is live, once in a pass.
func (v *View) end(s Sight, reason string) Step {
	if v.answered(Delete, s.Own) != nil {
		return v.live(Working, reason, "the cancellation is under way: "+s.Message)
	}
	return v.effect(Step{Do: Delete, Incarnation: s.Own, ID: s.ID, Sight: s})
}

// replaceAnew goes on when next does not stand: again, as another one, or not at
// all where spec was changed back.
func (v *View) replaceAnew(next Sight) Step {
	c := v.Claim
	old, ok := v.find(c.Incarnation)
	if !ok {
		return v.first
	}
	w, ok := v.walk(c.Next)
	if !ok {
		return v.first
	}
	if len(w.live) > 0 { // 17: the claim is older than what stands
		return v.replacedBy(old, w.live[0])
	}
	over := next.State == Failed || next.State == Ended
	back := v.wantedBack(old)
	switch {
	case over && !back && (v.Status.ObservedGeneration == v.Object.Generation || v.Memory.Sent == v.Object.Generation):
		s := stalled(orReason(next.Reason, next.State.String()), "the replacement did not come about: "+next.Message)
		s.End.Live = old.State.Live()
		return s
	case v.Invalid != "":
		s := stalled("", v.Invalid)
		s.End.Live = old.State.Live()
		return s
	case next.State.missing() && v.hadNext():
		if s, needed := v.proof(c.Next); needed {
			s.End.Live = old.State.Live()
			return s
		}
		over = true
	}
	closed := next.State == Closed || v.Memory.fenced(c.Next)
	if !(over || closed || back || v.spent()) {
		return v.create(c.Next)
	}
	if !closed {
		if s, needed := v.close(c.Next, c.Next); needed {
			return s
		}
	}
	if back {
		return v.write(v.dropped(c.Incarnation))
	}
	c.Next, c.Attempt, c.Time = c.Next+1, 1, 0
	return v.write(c)
}

// replacedBy takes up a later replacement than the claim knows of.
func (v *View) replacedBy(old, later Sight) Step {
	c := v.Claim
	if !old.State.Live() {
		return v.moveTo(old, later)
	}
	if s, needed := v.close(c.Next, later.Own-1); needed {
		s.End.Live = true
		return s
	}
	c.Next, c.Attempt, c.Time = later.Own, 1, 0
	return v.write(c)
}

// hadNext: next was there once, as an answer or a look-up told. An id in status may
// be of a next before this one, or another's.
func (v *View) hadNext() bool {
	id := v.Status.ID
	if v.Memory.Unsent || id == "" || id == v.Claim.ID {
		return v.Memory.id(v.Claim.Next) != ""
	}
	l := v.byID(id)
	return l == nil || l.State.missing() || l.Own == v.Claim.Next
}

// dropped is the claim without its replacement. id stays that of the one before.
func (v *View) dropped(incarnation int) Claim {
	c := v.Claim
	if incarnation == c.Incarnation {
		c.ID = ""
	}
	c.Incarnation, c.Next, c.Attempt, c.Time, c.Seen = incarnation, 0, 1, 0, false
	return c
}

// dropOld ends the old one: cancelled, closed, looked at again, dropped.
func (v *View) dropOld() Step {
	c := v.Claim
	old, ok := v.find(c.Incarnation)
	switch {
	case !ok:
		return v.first
	case old.State.Live():
		return v.end(old, ReasonReplacing)
	}
	if s, needed := v.closeOld(old); needed {
		s.End.Live = true
		return s
	}
	return v.write(v.dropped(c.Next))
}
