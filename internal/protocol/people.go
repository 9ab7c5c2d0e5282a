package protocol

import (
	"fmt"
	"strings"
)

// stray is an answer to a question that nobody asked.
func (v *View) stray() string {
	done := v.Claim.Answered
	switch {
	case v.Ask.New != "" && v.Ask.New != done.New:
		return "new"
	case v.Ask.Outcome != "" && v.Ask.Outcome != done.Outcome:
		return "outcome"
	}
	return ""
}

// adopt is rule 9: what stands outside under another reference becomes this
// object's.
func (v *View) adopt() Step {
	c, id := v.Claim, v.Ask.Adopt
	cannot := func(why string) Step {
		return stalled(ReasonCannotAdopt, fmt.Sprintf("%q is not adopted: %s", clipped(id), why))
	}
	thing := v.byID(id)
	switch {
	case !v.Outside.Adopt: // not even a look: whether an id is there is nobody's to ask this way
		return cannot("this controller does not allow it; take the annotation off")
	case !v.Outside.Rebind:
		return cannot("what stands outside cannot be put under another reference here; take the annotation off")
	case thing == nil:
		return Step{Do: LookUp, ID: id}
	case thing.Failed:
		return finish(CannotSay, "", "")
	case thing.Own != 0 && thing.Own == c.Incarnation && c.Next == 0: // done, perhaps by a pass that did not live to say so
		c.Answered.Adopt, c.Seen = id, true
		if v.rejection() != "" { // of a create, which is not wanted any more
			c.Attempt, c.Time = c.Attempt+1, 0
		}
		return v.write(c)
	case !thing.State.Live() || thing.State == Ambiguous:
		return cannot("nothing live is found outside under that id; name another, or take the annotation off")
	case thing.Refused != "":
		return cannot(thing.Refused + "; name another, or take the annotation off")
	}
	w, ok := v.walk(c.Incarnation)
	if !ok {
		return v.first
	}
	if len(w.live) > 0 {
		return cannot(fmt.Sprintf("%q stands for this object already", w.live[0].ID))
	}
	if !v.Memory.Fresh { // nothing may land under the reference that it takes
		if s, needed := v.close(c.Incarnation, max(c.Next, w.last, c.Incarnation)); needed {
			return s
		}
	}
	if w.last >= c.Incarnation || c.Next != 0 || v.Memory.fenced(c.Incarnation) { // its reference is spent
		return v.write(v.following("", max(w.last, c.Next, c.Incarnation)+1))
	}
	if v.Outside.Fence && v.answered(Fence, 0) == nil { // … nor under the one that it leaves
		return v.effect(Step{Do: Fence, ID: id})
	}
	return v.effect(Step{Do: Rebind, Incarnation: c.Incarnation, ID: id, Sight: thing.Sight})
}

// outcome is rule 12: nobody but a person can tell what came of a create.
func (v *View) outcome() (Step, bool) {
	c, m := v.Claim, v.Memory
	if m.Unsent || v.Status.ID != "" && v.Status.ID != c.ID || m.Attempted && m.Spent {
		return v.keepOutcome()
	}
	asked := fmt.Sprintf("%d.%d=", max(c.Incarnation, c.Next), c.Attempt)
	answer, ok := strings.CutPrefix(v.Ask.Outcome, asked)
	switch id, happened := strings.CutPrefix(answer, "happened:"); {
	case !ok || v.Ask.Outcome == c.Answered.Outcome:
		return stalled(ReasonOutcomeUnknown, fmt.Sprintf("a create may have been sent, and nobody can tell what came of it: look at the outside, and annotate the object with %s=%shappened:<id>, or …%sdid-not-happen",
			v.annotation("outcome"), asked, asked)), true
	case happened:
		return Step{Do: Record, ID: id}, true
	}
	c.Answered.Outcome = v.Ask.Outcome
	c.Attempt, c.Time = c.Attempt+1, 0
	return v.write(c), true
}

// keepOutcome notes an answer that was acted on, so that it acts once.
func (v *View) keepOutcome() (Step, bool) {
	c := v.Claim
	if _, id, ok := strings.Cut(v.Ask.Outcome, "=happened:"); ok && id == v.Status.ID && v.Ask.Outcome != c.Answered.Outcome {
		c.Answered.Outcome = v.Ask.Outcome
		return v.write(c), true
	}
	return Step{}, false
}
