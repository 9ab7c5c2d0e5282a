package protocol

// act is one thing that people, or the world, may do at any moment.
type act struct {
	name   string
	object bool // it touches the object alone
	do     func(m *model, s state) (state, bool)
}

// onObject is an act on a live object that is not being deleted.
func onObject(name string, did deed, f func(m *model, o *object) bool) act {
	return act{name, true, func(m *model, s state) (state, bool) {
		if !s.api.exists || s.api.deleting || !f(m, &s.api) {
			return s, false
		}
		s.did |= did
		return s, true
	}}
}

// edit is a change of spec.
func edit(name string, f func(o *object)) act {
	return act{name, true, func(m *model, s state) (state, bool) {
		o := &s.api
		if !o.exists || o.deleting || o.gen >= 4 {
			return s, false
		}
		f(o)
		if o.gen++; m.claims.at(o.claim).Next != 0 {
			s.did |= didMidway
		}
		return s, true
	}}
}

var (
	actDate = edit("the date is changed", func(o *object) {
		o.want.date = 3 - min(o.want.date, 2)
	})
	actPassenger = edit("the passenger is changed", func(o *object) {
		o.want.passenger = 3 - min(o.want.passenger, 2)
	})
	actDelete = act{"it is deleted", true, func(m *model, s state) (state, bool) {
		return m.deleted(s)
	}}
	actOrphan = act{"it is deleted, to be orphaned", true, func(m *model, s state) (state, bool) {
		s.api.orphan = true
		s.did |= didOrphan
		return m.deleted(s)
	}}
	actWipe = onObject("status is wiped", 0, func(_ *model, o *object) bool {
		wiped := o.status != 0
		o.status = 0
		return wiped
	})
	actStatusForeign = onObject("status names another's thing", didForeign, func(m *model, o *object) bool {
		st := m.statuses.at(o.status)
		if st.ID == idOf(0) {
			return false
		}
		st.ID = idOf(0)
		o.status = m.statuses.of(st)
		return true
	})
	actUnclaim    = tamper("the claim is taken off", func(c *Claim) { *c = Claim{} })
	actUnfinalize = onObject("the finalizer is taken off", didMeddle, func(_ *model, o *object) bool {
		had := o.finalizer
		o.finalizer = false
		return had
	})
	actClaimOn   = tamper("the claim names the next incarnation", func(c *Claim) { c.Incarnation++; c.Next = 0 })
	actClaimBack = tamper("the claim forgets its replacement", func(c *Claim) { c.Next, c.ID = 0, "" })
	actClaimTry  = tamper("the claim names another attempt", func(c *Claim) { c.Attempt++ })
	actReconcile = onObject("reconcile-at", 0, func(_ *model, o *object) bool {
		o.reconcile++
		return o.reconcile < 2
	})
	actNew = onObject("new is annotated", didNew, func(m *model, o *object) bool {
		o.askNew = o.uid
		if c := m.claims.at(o.claim); o.claim != 0 && c.Owner != uidName(o.uid) {
			o.askNew = uidOf(c.UID)
		}
		return true
	})
	actAdopt = onObject("adopt is annotated", didAdopt, func(_ *model, o *object) bool {
		was := o.askAdopt
		o.askAdopt = 1
		return was == 0
	})
	actCancel = act{"it is cancelled by hand", false, func(_ *model, s state) (state, bool) {
		for i := range s.out.things {
			if t := &s.out.things[i]; t.ref.inc != 0 && t.ref.uid != 0 && t.state.Live() {
				t.state = Ended
				s.did |= didCancel
				return s, true
			}
		}
		return s, false
	}}
	actVanish = act{"it vanishes outside", false, func(_ *model, s state) (state, bool) {
		for i := range s.out.things {
			if t := &s.out.things[i]; t.ref.inc != 0 && t.ref.uid != 0 && t.state.Live() {
				t.ref, t.state = reference{uid: 9}, Absent
				s.did |= didCancel | didVanish
				return s, true
			}
		}
		return s, false
	}}
	actSellOut = act{"it is sold out", false, func(_ *model, s state) (state, bool) {
		was := s.out.soldOut
		s.out.soldOut = true
		s.did |= didSellOut
		return s, !was
	}}
	actRestock = act{"there are seats again", false, func(_ *model, s state) (state, bool) {
		was := s.out.soldOut
		s.out.soldOut = false
		return s, was
	}}
	actRestore = act{"it is restored under a new UID", false, func(m *model, s state) (state, bool) {
		o := &s.api
		if !o.exists || o.deleting || o.uid != 1 || !m.claimed(o) { // without its claim it is just another object
			return s, false
		}
		// Deleted with its finalizer stripped, as a lost cluster is, and applied again.
		o.uid, o.gen, o.age, o.status = 2, 1, 0, 0
		s.did |= didRestore
		return s, true
	}}
	actUpgrade = act{"a program runs that offers more", false, func(m *model, s state) (state, bool) {
		if m.before == 0 || s.upgraded || m.tampered(&s) {
			return s, false
		}
		s = m.crash(s)
		s.upgraded = true
		return s, true
	}}
	actBackup = act{"a backup of etcd", false, func(_ *model, s state) (state, bool) {
		if s.snap.exists || !s.api.exists {
			return s, false
		}
		s.snap = s.api
		return s, true
	}}
	actRollback = act{"etcd is restored from the backup", false, func(m *model, s state) (state, bool) {
		if !s.snap.exists || s.snap == s.api || s.snap.uid != s.api.uid { // what was made for an object that the backup does not have is nobody's
			return s, false
		}
		s.api, s.snap, s.late = s.snap, object{}, write{}
		s.did |= didRollback
		s.released = false
		s = m.crash(m.tick(m.tick(s))) // controllers stand still for a window
		return s, true
	}}
	actHappened = outcomeAct("a person says that it happened", func(s *state, c Claim) (string, bool) {
		for i, t := range s.out.things {
			if t.state.Live() && t.ref == (reference{uidOf(c.UID), uint8(max(c.Incarnation, c.Next))}) {
				return "happened:" + idOf(i), true
			}
		}
		return "", false
	})
	actDidNot = outcomeAct("a person says that it did not happen", func(s *state, c Claim) (string, bool) {
		for _, t := range s.out.things {
			if t.state.Live() && t.ref.uid == uidOf(c.UID) {
				return "", false
			}
		}
		return "did-not-happen", s.air == [2]call{} // a person waits before he says so
	})
)

// claimed tells whether an object has a claim of its own.
func (m *model) claimed(o *object) bool {
	return o.claim != 0 && m.claims.at(o.claim).Name == "n"
}

func (m *model) deleted(s state) (state, bool) {
	if !s.api.exists || s.api.deleting {
		return s, false
	}
	if !m.claimed(&s.api) && s.did&didRollback != 0 {
		return s, false // an object of before its claim is not deleted before it has one again: that is assumed, and said
	}
	s.did |= didDelete
	if !s.api.finalizer {
		s.api.exists = false
		return s, true
	}
	s.api.deleting, s.api.gen = true, s.api.gen+1
	return s, true
}

// tamper changes the claim, or takes it off. Nobody does that within a window of a
// crash: that is assumed, and said.
func tamper(name string, f func(*Claim)) act {
	return act{name, true, func(m *model, s state) (state, bool) {
		o := &s.api
		c := m.claims.at(o.claim)
		was := c
		f(&c)
		if !o.exists || o.deleting || o.claim == 0 || s.term < settled || !m.memories.at(s.mem).HasClaim || c == was || c.Incarnation >= mostIncs-1 {
			return s, false
		}
		o.claim = m.claims.of(c)
		s.did |= didMeddle
		return s, true
	}}
}

// tampered: the claim that stands is not the one that the process knows.
func (m *model) tampered(s *state) bool {
	mem := m.memories.at(s.mem)
	return s.did&didMeddle != 0 && mem.HasClaim && s.api.claim != m.claims.of(mem.Claim)
}

func outcomeAct(name string, f func(*state, Claim) (string, bool)) act {
	return act{name, true, func(m *model, s state) (state, bool) {
		o := &s.api
		if !o.exists || o.claim == 0 || o.askOutcome != 0 || s.pass.on || m.memories.at(s.mem).Unsent { // nobody asked yet
			return s, false
		}
		c := m.claims.at(o.claim)
		said, ok := f(&s, c)
		if !ok {
			return s, false
		}
		o.askOutcome = m.texts.of(string([]byte{'0' + byte(max(c.Incarnation, c.Next)), '.', '0' + byte(c.Attempt), '='}) + said)
		s.did |= didOutcome
		return s, true
	}}
}

// What comes although nobody does anything.
const (
	toldByWatch = "the watch tells"
	confirmed   = "it is confirmed"
	timePassed  = "half a window passes"
)

// environment emits what may happen beside the process.
func (m *model) environment(s state, to emit) {
	for i, c := range s.air {
		if c.do != Finish {
			landed, _, _ := m.land(s, c, Claim{})
			landed.air[i] = call{}
			to("a call lands: "+c.do.String(), landed.sorted())
		}
	}
	if s.late.on {
		next := s
		next.late = write{}
		if s.api == s.late.was {
			next.api = s.late.new
			to("a write lands", next)
		}
	}
	if s.cache != s.api && !s.pass.on { // it is read where a pass begins
		next := s
		next.cache, next.behind = s.api, false
		to(toldByWatch, next)
	}
	for i, t := range s.out.things {
		if t.state == Pending {
			next := s
			next.out.things[i].state = Present
			to(confirmed, next)
			if f, ok := m.fault(s); ok {
				f.out.things[i].state = Failed
				f.did |= didFail
				to("it is not confirmed", f)
			}
		}
	}
	// Within a pass, time matters between a look and what follows from it.
	if next := m.tick(s); next != s && (!s.pass.on || s.pass.looks != 0 && s.pass.end == 0) {
		to(timePassed, next)
	}
	if f, ok := m.fault(s); ok {
		m.dies(f, "a crash", to)
	}
	if s.acts < m.mostActs {
		// Whether an object changes before or after a call is all the same.
		early := s.pass.on && (m.next == LookUp || m.next.Effect())
		for _, a := range m.acts {
			if early && a.object {
				continue
			}
			if next, ok := a.do(m, s); ok {
				if next.acts++; next.api != s.api {
					next.late = write{} // its guard is broken
					if m.stale {
						next.old = s.api
					}
				}
				to("— "+a.name, next)
			}
		}
	}
}
