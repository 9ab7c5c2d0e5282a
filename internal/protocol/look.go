package protocol

import "fmt"

// walkLimit bounds a walk, whatever the outside answers.
const walkLimit = 64

func (v *View) byID(id string) *Look {
	for i := range v.Looks {
		if l := &v.Looks[i]; id != "" && (l.ID == id || l.Sight.ID == id && l.Answer != 0) {
			return l
		}
	}
	return nil
}

func (v *View) byIncarnation(n int) *Look {
	for i := range v.Looks {
		if l := &v.Looks[i]; l.Incarnation == n || l.Own == n && !l.State.missing() {
			return l
		}
	}
	return nil
}

// ask looks for an incarnation: by the id that was learned of it, and where that
// is not known, or not found, by its reference.
func (v *View) ask(n int) Step {
	if id := v.Memory.id(n); id != "" && v.byID(id) == nil {
		return Step{Do: LookUp, ID: id}
	}
	return Step{Do: LookUp, Incarnation: n}
}

// walked is what a walk has found: next is the look-up that it still needs.
type walked struct {
	next *Step
	live []Sight // own ones, oldest first
	last int     // the highest incarnation that was found, ended ones included; 0 for none
	ends map[int]Sight
}

// walk looks up incarnations upwards, ended ones included, until two in a row that
// the outside does not know.
func (v *View) walk(from int) walked {
	w := walked{ends: map[int]Sight{}}
	missing := 0
	for n := max(from, 1); missing < 2 && n < from+walkLimit; n++ {
		l := v.byIncarnation(n)
		switch {
		case l == nil:
			w.next = new(v.ask(n))
			return w
		case l.Failed:
			s := finish(CannotSay, "", "")
			w.next = &s
			return w
		case l.State == Ambiguous:
			s := stalled(ReasonAmbiguous, "several live things carry the reference of this object: "+l.Message)
			w.next = &s
			return w
		case l.State.missing():
			missing++
			continue
		}
		missing = 0
		sight := l.Sight
		if v.Outside.Guarantee == None {
			sight.Own = n // ids are believed
		}
		if sight.Own == 0 {
			s := v.takenOver(sight)
			w.next = &s
			return w
		}
		w.last = n
		w.ends[n] = sight
		if sight.State.Live() {
			w.live = append(w.live, sight)
		}
	}
	return w
}

func (v *View) takenOver(s Sight) Step {
	return stalled(ReasonTakenOver, fmt.Sprintf("what stands outside as %q carries a reference that is not this object's; it was left alone", s.ID))
}

// current finds the thing of the claim's incarnation: by the id in status if that
// is one, else by a walk. A nil sight comes with the step that is needed first.
func (v *View) current() (*Sight, Step) {
	n, foreign := v.Claim.Incarnation, (*Sight)(nil)
	if id := v.Status.ID; id != "" && id != v.Claim.ID {
		l := v.byID(id)
		switch {
		case l == nil:
			return nil, Step{Do: LookUp, ID: id}
		case l.Failed:
			return nil, finish(CannotSay, "", "")
		case l.State == Ambiguous:
			return nil, stalled(ReasonAmbiguous, "several live things answer to "+id+": "+l.Message)
		case !l.State.missing() && (l.Own == n || v.Outside.Guarantee == None):
			return &l.Sight, Step{}
		case !l.State.missing() && l.Own == 0:
			foreign = &l.Sight
		}
	}
	w := v.walk(n)
	switch {
	case w.next != nil:
		return nil, *w.next
	case len(w.live) > 0 && w.live[0].Own != n: // 17
		return nil, stalled(ReasonLaterIncarnation, fmt.Sprintf("outside stands %q, which is incarnation %d, while the claim is at %d: an older version of the object was restored", w.live[0].ID, w.live[0].Own, n))
	case foreign != nil && len(w.live) == 0: // 11
		return nil, v.takenOver(*foreign)
	}
	if s, ok := w.ends[n]; ok {
		return &s, Step{}
	}
	return &v.byIncarnation(n).Sight, Step{}
}
