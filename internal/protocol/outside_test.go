package protocol

// land lets a call take effect, as the outside's guarantee says, and answers it.
func (m *model) land(s state, c call, claim Claim) (state, Sight, Outcome) {
	o := &s.out
	switch c.do {
	case Create:
		return m.book(s, c, claim)
	case Update:
		t := &o.things[c.thing-1]
		if t.state != Present || t.content != c.seen {
			return s, Sight{}, OutcomeNoEffect
		}
		t.content = c.content
		return s, m.sight(&s, claim, int(c.thing-1)), OutcomeDone
	case Delete:
		t := &o.things[c.thing-1]
		if t.state.Live() {
			t.state = Ended
		}
		return s, m.sight(&s, claim, int(c.thing-1)), OutcomeDone
	case Rebind:
		t := &o.things[c.thing-1]
		if !t.state.Live() || t.content != c.seen || o.shut[c.to.inc] {
			return s, Sight{}, OutcomeNoEffect
		}
		t.ref, t.age = c.to, c.age
		return s, m.sight(&s, claim, int(c.thing-1)), OutcomeDone
	}
	if c.ref.uid != 0 && int(c.ref.inc) < mostIncs {
		o.shut[c.ref.inc] = true
	}
	if i := m.under(&s, c.ref, true); i >= 0 {
		return s, m.sight(&s, claim, i), OutcomeDone
	}
	return s, Sight{State: Closed}, OutcomeDone
}

// under finds the thing with a reference: a live one, else the newest.
func (m *model) under(s *state, ref reference, all bool) int {
	found := -1
	for i, t := range s.out.things {
		if t.state == Unknown || t.ref != ref || !all && m.lag && t.age < settled {
			continue
		}
		if found < 0 || t.state.Live() || !s.out.things[found].state.Live() {
			found = i
		}
	}
	return found
}

func (m *model) book(s state, c call, claim Claim) (state, Sight, Outcome) {
	o := &s.out
	slot := &o.kept[c.ref.inc][c.attempt]
	keyed := m.outside.Guarantee == IdempotencyKeys && !c.loose
	if keyed && *slot != (kept{}) {
		switch {
		case slot.rejected, slot.content != c.content:
			return s, Sight{}, OutcomeNoEffect
		}
		sight := m.sight(&s, claim, int(slot.thing-1))
		sight.Replay = true
		return s, sight, OutcomeDone
	}
	if o.shut[c.ref.inc] {
		return s, Sight{State: Closed}, OutcomeDone
	}
	if m.outside.Guarantee.unique() && !c.loose {
		for i, t := range o.things {
			if t.state != Unknown && t.ref == c.ref && (t.state.Live() || m.outside.Guarantee == UniqueReference) {
				sight := m.sight(&s, claim, i)
				sight.Replay = true
				return s, sight, OutcomeDone
			}
		}
	}
	if o.soldOut {
		if keyed && !m.forgets {
			*slot = kept{rejected: true, content: c.content}
		}
		return s, Sight{}, OutcomeRejected
	}
	for i := range o.things {
		if t := &o.things[i]; t.state == Unknown {
			*t = thing{ref: c.ref, state: Present, content: c.content, age: c.age}
			if m.slow {
				t.state = Pending
			}
			if keyed {
				*slot = kept{thing: uint8(i + 1), content: c.content}
			}
			return s, m.sight(&s, claim, i), OutcomeDone
		}
	}
	return s, Sight{}, OutcomeNoEffect // beyond what is explored
}

// sight is what the outside tells of a thing, and whose the process takes it for.
func (m *model) sight(s *state, claim Claim, place int) Sight {
	t := s.out.things[place]
	sight := Sight{State: t.state, ID: idOf(place)}
	if t.ref.uid != 0 && t.ref.uid == uidOf(claim.UID) && int(t.ref.inc) <= max(claim.Incarnation, claim.Next, mostIncs) && m.outside.Guarantee != None {
		sight.Own = int(t.ref.inc)
	}
	if t.state == Present && t.content != s.pass.have.want {
		sight.Differs, sight.Replace = true, t.content.passenger != s.pass.have.want.passenger
	}
	return sight
}

// see answers a look-up.
func (m *model) see(s *state, claim Claim, step *Step) Sight {
	if step.ID != "" {
		if p := placeOf(step.ID); p >= 0 && p < mostThings && s.out.things[p].state != Unknown {
			return m.sight(s, claim, p)
		}
		return Sight{State: Absent}
	}
	ref := reference{uidOf(claim.UID), uint8(step.Incarnation)}
	live := 0
	for _, t := range s.out.things {
		if t.ref == ref && t.state.Live() && !(m.lag && t.age < settled) {
			live++
		}
	}
	switch i := m.under(s, ref, false); {
	case live > 1:
		return Sight{State: Ambiguous}
	case i >= 0:
		return m.sight(s, claim, i)
	case int(ref.inc) < mostIncs && s.out.shut[ref.inc] && m.under(s, ref, true) < 0:
		return Sight{State: Closed}
	}
	return Sight{State: Absent}
}
