package protocol

import (
	"fmt"
	"time"
)

// want answers rules 9 to 21 for an object that is wanted.
func (v *View) want() Step {
	s := v.wanted()
	s.End.Walked = v.walkedAll
	if stray := v.stray(); stray != "" && s.Do == Finish && s.End.Verdict == AsWanted {
		live := s.End.Live
		s = stalled(ReasonInvalidAnnotation, "the annotation "+v.annotation(stray)+" answers no open question; take it off")
		s.End.Live = live
	}
	return s
}

func (v *View) wanted() Step {
	c := v.Claim
	if v.Ask.Adopt != "" && v.Ask.Adopt != c.Answered.Adopt { // 9
		return v.adopt()
	}
	if v.guarantee() == None { // 12
		if s, ends := v.outcome(); ends {
			return s
		}
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
	sight, later, ok := v.current()
	switch {
	case !ok:
		return v.first
	case later != nil: // 17
		return v.moveTo(sight, *later)
	case sight.State == Pending: // 18
		return v.live(Working, ReasonPending, sight.Message)
	case sight.State == Present:
		return v.present(sight)
	case sight.State.missing() && !v.seen(): // 19, 20
		return v.absent(sight)
	}
	return v.over(sight) // 21
}

// live is an end while something is live outside: polls go on.
func (v *View) live(verdict Verdict, reason, message string) Step {
	s := finish(verdict, reason, message)
	s.End.Live = true
	return s
}

// current finds the thing of the claim's incarnation: by its id, or where that
// leads to nothing live by a walk, which may meet a later one that is. Where an
// older etcd came back in the middle of a replacement, the id leads to the old one,
// and only a walk meets the new: what this process has met with a claim is walked
// once, not when it is met but at the look after that.
func (v *View) current() (s Sight, later *Sight, ok bool) {
	n := v.Claim.Incarnation
	if s, ok = v.find(n); !ok || s.State.Live() && !v.byReference(n) && (v.Memory.Walked || !v.Memory.Stood) {
		return s, nil, ok
	}
	if l := v.behind(); l != nil {
		_, ok = v.needs(v.backTo(l.Sight))
		return s, nil, ok
	}
	w, ok := v.walk(n)
	if !ok {
		return s, nil, false
	}
	for _, l := range w.live { // the first one: what lives beyond it is looked for from there
		if l.Own > n {
			return s, &l, true
		}
	}
	v.walkedAll = true
	if l := v.byID(v.Status.ID); l != nil && v.Status.ID != v.Claim.ID && len(w.live) == 0 && !l.State.missing() && l.Own == 0 && v.Outside.Guarantee != None { // 11
		_, ok = v.needs(v.takenOver(l.Sight))
		return s, nil, ok
	}
	return s, nil, true
}

// behind is what status tells of, where it lives and is of an incarnation before the
// claim's: somebody has put the claim ahead of what stands.
func (v *View) behind() *Look {
	if l := v.byID(v.Status.ID); l != nil && v.Status.ID != v.Claim.ID && l.Own != 0 && l.Own < v.Claim.Incarnation && l.State.Live() {
		return l
	}
	return nil
}

// backTo claims what stands. What a later incarnation may have made, a walk from
// there on finds.
func (v *View) backTo(s Sight) Step {
	c := v.following("", s.Own)
	c.Seen = true
	step := v.write(c)
	step.Warning, step.Note = WarningClaimRebuilt, "the claim was ahead of what stands outside; it was put back to it"
	return step
}

// blank: the claim is fresh, and a create that is sent twice takes effect once.
func (v *View) blank() bool {
	return v.Memory.Fresh && v.guarantee().protects() && len(v.Looks) == 0
}

// write is a WriteClaim that carries what every claim carries.
func (v *View) write(c Claim) Step {
	c.Guarantee, c.Window, c.Scope = v.guaranteeToWrite(c), v.Outside.Settle, orReason(v.Outside.Scope, c.Scope)
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
	m := v.Memory
	reason, message, of, at := m.Rejected, m.RejectedMessage, m.RejectedGen, m.RejectedAt
	if reason == "" {
		reason, message, of, at = v.rejection(), v.Status.RejectedMessage, v.Status.RejectedGeneration, v.Claim.Answered.ReconcileAt
	}
	if reason == "" || of != v.Object.Generation || v.Ask.Woken || v.Ask.ReconcileAt != at {
		return Step{}, false
	}
	if c := v.Claim; v.Status.ID == "" || v.Status.ID == c.ID && c.Next == 0 { // nothing, or what stood before
		return stalled(reason, message), true
	}
	switch l := v.byID(v.Status.ID); {
	case l == nil:
		return Step{Do: LookUp, ID: v.Status.ID}, true
	case l.Failed:
		return finish(CannotSay, "", ""), true
	case l.State.Live():
		return v.live(Stalled, reason, message), true
	case v.Claim.Next != 0:
		return stalled(reason, message), true
	}
	return Step{}, false // it ended: rule 21 says so
}

// create is rule 20, with the conditions of the weaker guarantees. It comes after a
// guarded PATCH of this term: a consistent read does not keep a write of a term
// before from landing, and taking from the claim what this create is recorded by.
func (v *View) create(incarnation int) Step {
	m := v.Memory
	if !m.Changed.IsZero() && !v.passed(m.Changed) {
		return v.waiting(ReasonSettling, "the claim was changed by someone else: a call made under it may still land", m.Changed)
	}
	if !v.guarantee().protects() && !m.Fresh && v.guarantee() != None {
		if since, unsettled := v.unsettled(); unsettled {
			return v.waiting(ReasonSettling, "a create of before this controller's time may still land", since)
		}
		if !m.Created.IsZero() && !v.passed(m.Created) {
			return v.waiting(ReasonSettling, "the last create may still land", m.Created)
		}
	}
	if !m.Patched {
		c := v.Claim
		c.Term = v.Term.UnixNano()
		return v.write(c)
	}
	return v.effect(Step{Do: Create, Incarnation: incarnation})
}

// corrections is how many in a row may fail to stick.
const corrections = 3

// present is rule 18 for what stands.
func (v *View) present(s Sight) Step {
	drift := v.Status.ObservedGeneration == v.Object.Generation && v.Status.Done
	switch {
	case !s.Differs, drift && v.Policy.IgnoreDrift:
		end := v.live(AsWanted, s.Reason, s.Message)
		end.End.Looked = v.byID(s.ID) == nil || v.byID(s.ID).Answer == Finish
		return end
	case v.Invalid != "":
		return v.live(Stalled, "", v.Invalid)
	case drift && v.Policy.ReportDrift:
		return v.live(Observed, ReasonDiffers, "outside is not as spec says: "+s.Message)
	case drift && v.Memory.Corrected >= corrections:
		return v.live(Stalled, ReasonPerpetualDiff, fmt.Sprintf("%d corrections in a row did not stick: %s", v.Memory.Corrected, s.Message))
	case v.answered(Update, v.Claim.Incarnation) != nil:
		return v.live(Working, ReasonDiffers, "changed, and not yet as spec says: "+s.Message)
	case s.Replace:
		c := v.Claim
		c.Next, c.ID, c.Attempt, c.Time, c.Recreated = c.Incarnation+1, s.ID, 1, 0, v.recreated()
		return v.write(c)
	}
	return v.effect(Step{Do: Update, Incarnation: v.Claim.Incarnation, ID: s.ID, Sight: s, Drift: drift})
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
	c := v.Claim
	switch {
	case v.Invalid != "":
		return stalled("", v.Invalid)
	case s.State == Closed || v.Memory.fenced(c.Incarnation):
		return v.write(v.following("", c.Incarnation+1))
	case !v.spent():
		return v.create(c.Incarnation)
	case !v.guarantee().unique():
		if s, needed := v.close(c.Incarnation, c.Incarnation); needed {
			return s
		}
	}
	c.Attempt, c.Time = c.Attempt+1, 0
	return v.write(c)
}

// following is the claim of a later incarnation; id is of the one before it.
func (v *View) following(id string, incarnation int) Claim {
	c := v.Claim
	c.Incarnation, c.Attempt, c.Next, c.ID, c.Time = incarnation, 1, 0, id, 0
	c.Seen, c.Recreated = false, v.recreated()
	return c
}

// recreated is how often in a row it was lost and made anew. What has stood for long
// is not lost in a row with what was lost before it.
func (v *View) recreated() int {
	if v.Now.Sub(time.Unix(v.Claim.Time, 0)) >= steady*v.window() {
		return 0
	}
	return v.Claim.Recreated
}

// moveTo is rule 17: the claim is older than what stands outside.
func (v *View) moveTo(s, later Sight) Step {
	c := v.Claim
	if s.State.Live() {
		c.Next, c.ID, c.Attempt, c.Time = later.Own, s.ID, 1, 0
		return v.write(c)
	}
	if first, needed := v.close(c.Incarnation, later.Own-1); needed {
		return first
	}
	c = v.following("", later.Own)
	c.Seen = true
	return v.write(c)
}

// The bounds of what is made anew by itself.
const (
	lossesAtOnce    = 3  // losses of a controller's objects within a window
	recreatedInARow = 3  // of one object
	steady          = 10 // windows that it stands, and is not lost in a row with the last time
)

// over is rule 21: it ended, it failed, or it was seen and is not found.
func (v *View) over(s Sight) Step {
	c := v.Claim
	rejected := v.Status.ObservedGeneration == v.Object.Generation || v.Memory.Sent == v.Object.Generation
	if s.State == Failed && rejected {
		return stalled(orReason(s.Reason, "Failed"), s.Message)
	}
	if s.State.missing() {
		if s, needed := v.proof(c.Incarnation); needed {
			return s
		}
	}
	if v.Ask.New == "" && c.Answered.New != "" { // it was taken off, and may be said again
		c.Answered.New = ""
		return v.write(c)
	}
	asked := v.Ask.New != "" && v.Ask.New == v.Object.UID && v.Ask.New != c.Answered.New
	often := v.Outside.Losses > lossesAtOnce || v.Memory.Often || v.recreated() >= recreatedInARow
	if s.State != Failed && !asked && (!v.Policy.Recreate || often) {
		return v.lost(s, often)
	}
	if v.Invalid != "" {
		return stalled("", v.Invalid)
	}
	if s, needed := v.close(c.Incarnation, c.Incarnation); needed {
		return s
	}
	w, ok := v.walk(c.Incarnation)
	if !ok {
		return v.first
	}
	c = v.following(orReason(s.ID, v.Status.ID), max(w.last, c.Incarnation)+1)
	c.Recreated++
	if asked {
		c.Recreated, c.Answered.New = 0, v.Ask.New
	}
	step := v.write(c)
	if step.Recreate = s.State != Failed; step.Recreate {
		step.Warning, step.Note = WarningRecreated, orReason(s.Message, "what stood outside is gone, and nobody here ended it")+"; another one is made"
	}
	return step
}

// lost says what stands no more, and how to go on.
func (v *View) lost(s Sight, often bool) Step {
	reason, message := ReasonLost, "what stood outside is gone, and nobody here ended it"
	if s.State == Ended {
		reason, message = orReason(s.Reason, ReasonEnded), orReason(s.Message, "what stood outside has ended")
	}
	if often && v.Policy.Recreate {
		message += "; it is not made anew, since too much was lost at once, or too often"
	}
	remedy := "annotate the object with"
	if v.Ask.New == v.Object.UID { // it stands there from the last time, and acts once
		remedy = "take the annotation off that was answered before, and then set"
	}
	end := stalled(reason, fmt.Sprintf("%s; to make another one, %s %s=%s", message, remedy, v.annotation("new"), v.Object.UID))
	end.End.Lost, end.End.Often = true, often && v.Policy.Recreate
	return end
}

func orReason(given, otherwise string) string {
	if given != "" {
		return given
	}
	return otherwise
}
