package protocol

import (
	"fmt"
	"slices"
	"time"
)

// walkLimit bounds a walk, whatever the outside answers.
const walkLimit = 64

// byID is the newest sight of the thing with this id, by a look or by an effect's
// answer.
func (v *View) byID(id string) *Look {
	for i := len(v.Looks) - 1; i >= 0 && id != ""; i-- {
		if l := &v.Looks[i]; l.ID == id || l.Sight.ID == id && l.Answer != Finish {
			return l
		}
	}
	return nil
}

// about is what is known of an incarnation in this pass: its thing, found by
// whatever id or reference, or else that its reference leads to nothing.
func (v *View) about(n int) *Look {
	var best *Look
	for i := range v.Looks {
		l := &v.Looks[i]
		switch found := l.Own == n && !l.State.missing(); {
		case found && l.State.Live():
			return l
		case found && (best == nil || best.Own != n), l.Incarnation == n && best == nil:
			best = l
		}
	}
	return best
}

// answered is the answer of an effect of this kind on an incarnation, if there was
// one since the last write or read.
func (v *View) answered(a Action, n int) *Look {
	for i := range v.Looks {
		if l := &v.Looks[i]; l.Answer == a && l.Incarnation == n {
			return l
		}
	}
	return nil
}

// idsOf are the ids under which an incarnation may be found. Look-ups by id do not
// lag; whose the thing is, its reference tells.
func (v *View) idsOf(n int) []string {
	c, s := v.Claim, v.Status
	ids := []string{v.Memory.id(n)}
	switch newest := max(c.Incarnation, c.Next); {
	case n == newest && s.ID != c.ID:
		ids = append(ids, s.ID)
	case n == c.Incarnation && n != newest:
		ids = append(ids, c.ID)
	}
	return ids
}

// find tells how an incarnation stands: by an id of it, else by its reference.
// Where that is not known yet, or cannot be said, v.first is the step that comes
// first.
func (v *View) find(n int) (Sight, bool) {
	if l := v.about(n); l != nil && (!l.State.missing() || l.Failed) {
		if !l.State.Live() && !l.Failed && v.mayHaveAnother(n) {
			return v.needs(Step{Do: LookUp, Incarnation: n})
		}
		return v.judge(l, n)
	}
	for _, id := range v.idsOf(n) {
		switch l := v.byID(id); {
		case id == "":
		case l == nil:
			return v.needs(Step{Do: LookUp, ID: id})
		case l.Failed || l.State == Ambiguous:
			return v.judge(l, n)
		case v.Outside.Guarantee == None && !l.State.missing():
			return l.Sight, true // ids are believed
		}
	}
	switch l := v.about(n); {
	case l != nil && l.State == Closed && l.Answer == Create && v.Outside.Fence: // which is no word on what stands: the fence's answer is
		return v.needs(v.effect(Step{Do: Fence, Incarnation: n}))
	case l != nil:
		return v.judge(l, n)
	case v.Outside.Guarantee == None: // nothing is found by reference
		return Sight{State: Absent}, true
	}
	return v.needs(Step{Do: LookUp, Incarnation: n})
}

// mayHaveAnother: what ended may not be all that carries the reference, and what it
// leads to was not looked at.
func (v *View) mayHaveAnother(n int) bool {
	g := v.guarantee()
	return !v.Memory.Known && g != UniqueReference && g != None &&
		!slices.ContainsFunc(v.Looks, func(l Look) bool { return l.Incarnation == n && l.ID == "" && l.Answer == Finish })
}

// byReference tells whether an incarnation was found by its reference alone.
func (v *View) byReference(n int) bool {
	l := v.about(n)
	return l != nil && l.ID == "" && l.Answer == Finish
}

// judge is rule 11: what cannot be told, or is several, or is not own, decides
// nothing.
func (v *View) judge(l *Look, n int) (Sight, bool) {
	switch {
	case l.Failed:
		return v.needs(finish(CannotSay, "", ""))
	case l.State == Ambiguous:
		return v.needs(stalled(ReasonAmbiguous, "several live things carry the reference of this object: "+l.Message))
	case l.State.missing() || l.Own == n || v.Outside.Guarantee == None:
		return l.Sight, true
	}
	return v.needs(v.takenOver(l.Sight))
}

func (v *View) needs(s Step) (Sight, bool) {
	v.first = s
	return Sight{}, false
}

// takenOver leaves alone what is not own. The claim that says so may be one that
// somebody has changed: a person may drop it.
func (v *View) takenOver(s Sight) Step {
	c, o := v.Claim, v.Object
	wrong := c.UID != o.UID && c.Owner == o.UID // a restored one as well, or one that somebody has changed
	switch asked := v.Ask.New == c.UID && v.Ask.New != c.Answered.New; {
	case asked && !o.Deleting && c.Next == 0:
		if first, needed := v.close(c.Incarnation, c.Incarnation); needed {
			return first
		}
		if !wrong {
			c = v.following(v.Status.ID, c.Incarnation+1)
			c.Recreated, c.Answered.New = 0, v.Ask.New
			return v.write(c)
		}
		answered := c.Answered
		c = v.birth()
		c.Seen, c.Answered = true, answered
		c.Answered.New = v.Ask.New
		step := v.write(c)
		step.Warning, step.Note = WarningClaimRebuilt, "the claim was dropped, as a person asked; what stands under this object's own UID counts"
		return step
	}
	remedy := "to have another one made"
	if wrong {
		remedy = fmt.Sprintf("the claim's uid %q is not this object's: to drop the claim, and look for what is this object's own", c.UID)
	}
	return stalled(ReasonTakenOver, fmt.Sprintf("what stands outside as %q carries a reference that is not this object's; it was left alone; %s, annotate the object with %s=%s",
		clipped(s.ID), remedy, v.annotation("new"), c.UID))
}

// clipped is a text that people have written, in a message.
func clipped(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// walked is what a walk has found.
type walked struct {
	found []Sight // oldest first, ended ones included
	live  []Sight
	last  int // the highest incarnation that was found; 0 for none
}

// walk looks up incarnations upwards, ended ones included, until two in a row that
// the outside does not know.
func (v *View) walk(from int) (walked, bool) {
	var w walked
	for n, missing := from, 0; missing < 2 && n < from+walkLimit; n++ {
		s, ok := v.find(n)
		if !ok {
			return w, false
		}
		if missing++; s.State.missing() {
			continue
		}
		s.Own, w.last, missing = n, n, 0
		w.found = append(w.found, s)
		if s.State.Live() {
			w.live = append(w.live, s)
		}
	}
	return w, true
}

// close makes sure that no create of the incarnations can take effect any more;
// false says that they are closed.
func (v *View) close(from, to int) (Step, bool) {
	for n := from; n <= to; n++ {
		if v.closed(n) {
			continue
		}
		if v.Outside.Fence {
			return v.effect(Step{Do: Fence, Incarnation: n}), true
		}
		since, _ := v.flying()
		return v.waiting(ReasonSettling, fmt.Sprintf("a create of incarnation %d may still land", n), since), true
	}
	return Step{}, false
}

// proof is that of an incarnation's absence (rule 21): looked at twice, a window
// apart. False says that it is given.
func (v *View) proof(n int) (Step, bool) {
	const message = "it is not found outside; absence is looked at twice, a window apart"
	at := v.Memory.Absent
	if v.Memory.Missing != n {
		at = time.Time{}
	}
	if !at.IsZero() && v.passed(at) {
		return Step{}, false
	}
	s := v.waiting(ReasonVerifyingAbsence, message, later(at, v.Now.Add(-v.window())))
	if at.IsZero() {
		s.End.After = v.window()
	}
	s.End.Missing = n
	return s, true
}
