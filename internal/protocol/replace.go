package protocol

// replace is rule 15 for CreateFirst: the claim records next and the old id; the
// old one goes only when next stands and status says so.
func (v *View) replace() Step {
	c := v.Claim
	if v.blank() {
		return v.create(c.Next)
	}
	next, first := v.sightOf(c.Next)
	if next == nil {
		return first
	}
	switch {
	case next.State == Pending:
		s := finish(Working, ReasonReplacing, "the replacement is on its way: "+next.Message)
		s.End.Live = true
		return s
	case next.State == Present && !(v.Status.Recorded && v.Status.ID == next.ID):
		return Step{Do: Record, ID: next.ID}
	case next.State == Present:
		return v.dropOld()
	case (next.State == Failed || next.State == Ended) && (v.Status.ObservedGeneration == v.Object.Generation || v.Memory.Sent == v.Object.Generation):
		s := stalled(orReason(next.Reason, next.State.String()), "the replacement did not come about, the old one stays: "+next.Message)
		s.End.Live = true
		return s
	}
	return v.replaceAnew(*next)
}

// replaceAnew goes on when next does not stand: again, as another one, or not at
// all where spec was changed back.
func (v *View) replaceAnew(next Sight) Step {
	c := v.Claim
	old, first := v.oldSight()
	if old == nil {
		return first
	}
	back := old.State == Present && !old.Differs
	gone := next.State == Failed || next.State == Ended || next.State == Closed || v.Memory.fenced(c.Next)
	switch {
	case v.Invalid != "":
		s := stalled("", v.Invalid)
		s.End.Live = old.State.Live()
		return s
	case (back || gone || v.spent()) && next.State != Closed && !v.Memory.fenced(c.Next) && !v.closed(c.Next):
		return v.close(c.Next)
	case back:
		return v.write(v.dropped(c.Incarnation))
	case gone || v.spent():
		c.Next, c.Attempt, c.Time = c.Next+1, 1, 0
		return v.write(c)
	}
	return v.create(c.Next)
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
	old, first := v.oldSight()
	if old == nil {
		return first
	}
	switch {
	case old.State.Live() && v.answered(Delete):
		s := finish(Working, ReasonReplacing, "the old one is being ended: "+old.Message)
		s.End.Live = true
		return s
	case old.State.Live():
		return v.effect(Step{Do: Delete, Incarnation: c.Incarnation, ID: old.ID, Sight: *old})
	case !v.closed(c.Incarnation):
		return v.close(c.Incarnation)
	}
	return v.write(v.dropped(c.Next))
}

// sightOf finds the thing of one incarnation, by the id in status where that is
// recorded as something other than the old one, else by its reference.
func (v *View) sightOf(n int) (*Sight, Step) {
	if l := v.byIncarnation(n); l != nil {
		return v.read(l)
	}
	if id := v.Status.ID; id != "" && id != v.Claim.ID {
		l := v.byID(id)
		switch {
		case l == nil:
			return nil, Step{Do: LookUp, ID: id}
		case l.Failed || l.Own == n:
			return v.read(l)
		}
	}
	return nil, v.ask(n)
}

// oldSight finds the one that is replaced, by the id that the claim keeps.
func (v *View) oldSight() (*Sight, Step) {
	if l := v.byIncarnation(v.Claim.Incarnation); l != nil {
		return v.read(l)
	}
	if v.Claim.ID == "" {
		return nil, v.ask(v.Claim.Incarnation)
	}
	l := v.byID(v.Claim.ID)
	switch {
	case l == nil:
		return nil, Step{Do: LookUp, ID: v.Claim.ID}
	case !l.Failed && !l.State.missing() && l.Own != v.Claim.Incarnation:
		return nil, Step{Do: LookUp, Incarnation: v.Claim.Incarnation} // not own: the id counts for nothing
	}
	return v.read(l)
}

func (v *View) read(l *Look) (*Sight, Step) {
	switch {
	case l.Failed:
		return nil, finish(CannotSay, "", "")
	case l.State == Ambiguous:
		return nil, stalled(ReasonAmbiguous, "several live things carry the reference of this object: "+l.Message)
	case !l.State.missing() && l.Own == 0 && v.Outside.Guarantee != None:
		return nil, v.takenOver(l.Sight)
	}
	return &l.Sight, Step{}
}
