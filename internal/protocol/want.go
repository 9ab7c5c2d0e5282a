package protocol

import "fmt"

// want answers rules 9 to 21 for an object that is wanted.
func (v *View) want() Step {
	c, m := v.Claim, v.Memory
	switch {
	case v.Policy.DeleteFirst:
		return stalled(ReasonUnsupportedPolicy, "replacing by deleting first is not built yet; choose CreateFirst")
	case v.Policy.Recreate:
		return stalled(ReasonUnsupportedPolicy, "making anew what was lost is not built yet; choose ReportLoss")
	case v.Ask.Adopt != "" && v.Ask.Adopt != c.Answered.Adopt: // 9
		return stalled(ReasonCannotAdopt, "adopting is not built yet; take the adopt annotation off")
	case v.Ask.New != "" && v.Ask.New != c.Answered.New:
		return stalled(ReasonInvalidAnnotation, "the new annotation answers no open question; take it off")
	case v.Ask.Outcome != "" && v.Ask.Outcome != c.Answered.Outcome:
		return stalled(ReasonInvalidAnnotation, "the outcome annotation answers no open question; take it off")
	case v.Outside.Guarantee == None && v.Status.ID == "" && !m.Fresh && !(m.Attempted && m.Spent): // 12
		return stalled(ReasonOutcomeUnknown, "a create may have been sent, and nobody can tell what came of it: look at the outside, and delete the object with the orphan annotation")
	}
	if s, ends := v.rejected(); ends { // 14
		return s
	}
	if v.Ask.ReconcileAt != c.Answered.ReconcileAt && v.rejection() != "" {
		c.Answered.ReconcileAt = v.Ask.ReconcileAt // an answer acts once, also after a crash
		return v.write(c)
	}
	if c.Next != 0 { // 15
		return v.replace()
	}
	if v.blank() { // 16
		return v.create(c.Incarnation)
	}
	sight, first := v.current()
	if sight == nil {
		return first
	}
	switch {
	case sight.State == Pending: // 18
		s := finish(Working, ReasonPending, sight.Message)
		s.End.Live = true
		return s
	case sight.State == Present:
		return v.present(*sight)
	case sight.State.missing() && !v.seen(): // 19, 20
		return v.absent(*sight)
	}
	return v.over(*sight) // 21
}

// blank: the claim is fresh, and a create that is sent twice takes effect once.
func (v *View) blank() bool {
	return v.Memory.Fresh && v.Outside.Guarantee.protects() && len(v.Looks) == 0
}

// write is a WriteClaim that carries what every claim carries.
func (v *View) write(c Claim) Step {
	c.Guarantee, c.Window = v.Outside.Guarantee.String(), v.Outside.Settle
	if c.Time == 0 {
		c.Time = v.Now.Unix()
	}
	return Step{Do: WriteClaim, Claim: c}
}

// effect puts the consistent read before the first effect of a term (rule 4).
func (v *View) effect(s Step) Step {
	if !v.Memory.Read {
		return Step{Do: Read}
	}
	return s
}

// rejection is the reason of a rejection that is known, of whatever generation.
func (v *View) rejection() string {
	if v.Memory.Rejected != "" {
		return v.Memory.Rejected
	}
	if v.Memory.Attempted && !v.Memory.Spent {
		return "" // status tells of an attempt before this one
	}
	return v.Status.Rejected
}

// rejected is rule 14: a Terminal rejection for this generation holds, also after
// a restart. What is live is still looked at.
func (v *View) rejected() (Step, bool) {
	m, gen := v.Memory, v.Object.Generation
	reason, message, of, at := m.Rejected, m.RejectedMessage, m.RejectedGen, m.RejectedAt
	if reason == "" {
		reason, message, of, at = v.rejection(), v.Status.RejectedMessage, v.Status.RejectedGeneration, v.Claim.Answered.ReconcileAt
	}
	if reason == "" || of != gen || v.Ask.Woken || v.Ask.ReconcileAt != at {
		return Step{}, false
	}
	s := stalled(reason, message)
	if v.Status.ID == "" {
		return s, true
	}
	switch l := v.byID(v.Status.ID); {
	case l == nil:
		return Step{Do: LookUp, ID: v.Status.ID}, true
	case l.Failed:
		return finish(CannotSay, "", ""), true
	case l.State.Live():
		s.End.Live = true
		return s, true
	}
	return Step{}, false // it ended: rule 21 says so
}

// create is rule 20, with the conditions of the weaker guarantees.
func (v *View) create(incarnation int) Step {
	m := v.Memory
	if !m.Changed.IsZero() && !v.passed(m.Changed) {
		return v.waiting(ReasonSettling, "the claim was changed by someone else: a call made under it may still land", m.Changed)
	}
	if !v.protected() && !m.Fresh {
		if since, unsettled := v.unsettled(); unsettled {
			return v.waiting(ReasonSettling, "a create of before this controller's time may still land", since)
		}
		if !m.Created.IsZero() && !v.passed(m.Created) {
			return v.waiting(ReasonSettling, "the last create may still land", m.Created)
		}
	}
	return v.effect(Step{Do: Create, Incarnation: incarnation})
}

// protected: the outside itself makes a repeated create take effect once.
func (v *View) protected() bool {
	g, o := v.Outside.Guarantee, v.Outside
	if g == IdempotencyKeys && o.KeyLifetime > 0 && v.Claim.Time != 0 {
		return v.Now.Unix()-v.Claim.Time < int64((o.KeyLifetime - v.window()).Seconds())
	}
	return g.protects()
}

// present is rule 18 for what stands.
func (v *View) present(s Sight) Step {
	if !s.Differs {
		end := finish(AsWanted, s.Reason, s.Message)
		end.End.Live = true
		end.End.Looked = v.byID(s.ID) == nil || v.byID(s.ID).Answer == 0
		return end
	}
	drift := v.Status.ObservedGeneration == v.Object.Generation && v.Status.Done
	limit := v.Policy.DriftCorrect
	if limit == 0 {
		limit = 3
	}
	left := func(verdict Verdict, reason, message string) Step {
		end := finish(verdict, reason, message)
		end.End.Live = true
		return end
	}
	switch {
	case v.Invalid != "":
		return left(Stalled, "", v.Invalid)
	case drift && v.Policy.IgnoreDrift:
		return left(AsWanted, s.Reason, s.Message)
	case drift && v.Policy.ReportDrift:
		return left(Observed, ReasonDiffers, "outside is not as spec says: "+s.Message)
	case drift && v.Memory.Corrected >= limit:
		return left(Stalled, ReasonPerpetualDiff, fmt.Sprintf("%d corrections in a row did not stick: %s", v.Memory.Corrected, s.Message))
	case v.answered(Update):
		return left(Working, ReasonDiffers, "changed, and not yet as spec says: "+s.Message)
	case s.Replace:
		next := v.Claim
		next.Next, next.ID, next.Attempt, next.Time = v.Claim.Incarnation+1, s.ID, 1, 0
		return v.write(next)
	}
	return v.effect(Step{Do: Update, Incarnation: v.Claim.Incarnation, ID: s.ID, Sight: s, Drift: drift})
}

// answered tells whether an effect of this kind was answered since the last look.
func (v *View) answered(a Action) bool {
	for _, l := range v.Looks {
		if l.Answer == a {
			return true
		}
	}
	return false
}

// spent tells whether the create key had a definite answer.
func (v *View) spent() bool {
	if v.Memory.Attempted {
		return v.Memory.Spent
	}
	return v.Status.Rejected != ""
}

// absent is rules 19 and 20: not there, and never seen.
func (v *View) absent(s Sight) Step {
	c, n := v.Claim, v.Claim.Incarnation
	switch {
	case v.Invalid != "":
		return stalled("", v.Invalid)
	case s.State == Closed || v.Memory.fenced(n):
		return v.write(v.following("", n+1))
	case v.spent() && v.Outside.Guarantee.unique():
		c.Attempt, c.Time = c.Attempt+1, 0
		return v.write(c)
	case v.spent() && !v.closed(n):
		return v.close(n)
	case v.spent():
		c.Attempt, c.Time = c.Attempt+1, 0
		return v.write(c)
	}
	return v.create(n)
}

// following is the claim of a later incarnation; id is of the one before it.
func (v *View) following(id string, incarnation int) Claim {
	c := v.Claim
	c.Incarnation, c.Attempt, c.Next, c.ID, c.Time = incarnation, 1, 0, id, 0
	c.Seen = false
	return c
}

// close makes sure that no create of the incarnation can take effect any more.
func (v *View) close(n int) Step {
	if v.Outside.Fence {
		return v.effect(Step{Do: Fence, Incarnation: n})
	}
	since, unsettled := v.unsettled()
	if !unsettled {
		since = v.Memory.Unanswered
	}
	return v.waiting(ReasonSettling, fmt.Sprintf("a create of incarnation %d may still land", n), since)
}

// over is rule 21: it ended, it failed, or it was seen and is not found.
func (v *View) over(s Sight) Step {
	gen := v.Object.Generation
	switch {
	case s.State == Failed && (v.Status.ObservedGeneration == gen || v.Memory.Sent == gen):
		return stalled(orReason(s.Reason, "Failed"), s.Message)
	case s.State == Failed && !v.closed(v.Claim.Incarnation):
		return v.close(v.Claim.Incarnation)
	case s.State == Failed:
		return v.write(v.following(s.ID, v.Claim.Incarnation+1))
	case s.State == Ended:
		return stalled(orReason(s.Reason, ReasonEnded), orReason(s.Message, "what stood outside has ended"))
	case v.Memory.Absent.IsZero():
		end := finish(Waiting, ReasonVerifyingAbsence, "it is not found outside; absence is looked at twice, a window apart")
		end.End.After = v.window()
		return end
	case !v.passed(v.Memory.Absent):
		return v.waiting(ReasonVerifyingAbsence, "it is not found outside; absence is looked at twice, a window apart", v.Memory.Absent)
	}
	return stalled(ReasonLost, "what stood outside is gone, and nobody here ended it")
}

func orReason(given, otherwise string) string {
	if given != "" {
		return given
	}
	return otherwise
}
