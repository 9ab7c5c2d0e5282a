package protocol

import "time"

// emit takes a state that may come next, and says what happened.
type emit func(what string, next state)

// view is what the process decides from. What it learns of the claim by that is
// kept in s.
func (m *model) view(s *state) View {
	o := s.pass.have
	now := epoch
	v := View{
		Now: now, Looked: now.Add(-time.Duration(s.pass.since) * half), Identity: m.identity(), Holder: "ns/lease", Term: s.term.at(),
		Object: Object{
			Exists: o.exists, Namespace: "ns", Name: "n", UID: uidName(o.uid), Generation: int64(o.gen),
			Deleting: o.deleting, Finalizer: o.finalizer, Age: time.Duration(o.age) * half, OwnerLives: o.ownerLives,
		},
		Ask:     Ask{Orphan: o.orphan, Outcome: m.texts.at(o.askOutcome)},
		Status:  m.statuses.at(s.pass.status),
		Policy:  m.policy,
		Outside: m.outside,
		Looks:   m.lookList(s.pass.looks),
	}
	v.Outside.Guarantee = m.guarantee(&s.upgraded)
	if o.askNew != 0 {
		v.Ask.New = uidName(o.askNew)
	}
	if o.askAdopt != 0 {
		v.Ask.Adopt = idOf(int(o.askAdopt - 1))
	}
	v.Ask.ReconcileAt = reconcileAt(o)
	if s.out.losses {
		v.Outside.Losses = lossesAtOnce + 1
	}
	mem := m.memories.at(s.mem)
	if o.claim != 0 {
		v.Claim, v.Claimed = m.claims.at(o.claim), true
		mem = mem.Heard(v.Claim)
		s.mem = m.memories.of(mem)
		if !mem.HasClaim || !v.Own(mem.Claim) && v.Own(v.Claim) {
			mem = mem.Meet(v.Claim, v.Status, now)
			if s.term == 0 || !m.unclaims { // what counts is the later one of the two
				mem.Met, s.term, v.Term = time.Time{}, 0, now
			}
			s.mem = m.memories.of(mem)
		}
	}
	v.Memory = mem
	return v
}

func reconcileAt(o object) string {
	if o.reconcile == 0 {
		return ""
	}
	return uidName(o.reconcile)
}

// guarantee is what the program that runs says of the outside.
func (m *model) guarantee(upgraded *bool) Guarantee {
	if m.before != 0 && !*upgraded {
		return m.before
	}
	return m.outside.Guarantee
}

func (m *model) lookList(h handle) []Look {
	var list []Look
	for h != 0 {
		l := m.looks.at(h)
		list = append(list, l.look)
		h = l.before
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// process emits what the process may do next: one step of a pass, the first one
// included.
func (m *model) process(s state, to emit) {
	if !s.pass.on {
		if s.behind && !(m.mutant != nil && m.mutant.trusts) { // contract line 4: a consistent read
			s.behind, s.cache = false, s.api
		}
		if !s.cache.exists {
			return
		}
		s.pass = pass{on: true, have: s.cache, status: s.cache.status}
		if s.born != s.cache.uid { // another object: nothing is known of it
			s.mem, s.born = 0, s.cache.uid
		}
	}
	m.next = Finish
	if s.pass.end != 0 {
		m.finish(s, m.ends.at(s.pass.end), to)
		return
	}
	// Look-ups that follow one another are one step: each asks for another thing, so
	// that what lands between two of them may as well land before or after both.
	step, claim := m.decided(&s)
	for looks := 0; step.Do == LookUp && !m.blind || looks > 0; looks++ {
		if step.Do != LookUp {
			to("look", s)
			return
		}
		s = m.look(s, claim, step)
		step, claim = m.decided(&s)
		if looks == 40 {
			panic("it looks for ever")
		}
	}
	m.next = step.Do
	switch step.Do {
	case Finish:
		mem := m.memories.at(s.mem).Finished(step.End, epoch)
		s.mem = m.memories.of(mem)
		if step.End.Verdict == Nothing {
			s.pass = pass{}
			to("= nothing to do", s)
			return
		}
		m.finish(s, step.End, to)
	case Read:
		m.read(s, to)
	case WriteClaim:
		m.writeClaim(s, *step, to)
	case Record:
		m.record(s, step.ID, to)
	case Release:
		m.release(s, step.Warning == EventOrphaned, to)
	case LookUp:
		to("look", m.look(s, claim, step))
		if f, can := m.fault(s); can {
			f.pass.looks = m.looks.of(seenLook{f.pass.looks, Look{Incarnation: step.Incarnation, ID: step.ID, Failed: true}})
			to("look: cannot tell", f)
			f.pass.looks = m.looks.of(seenLook{s.pass.looks, Look{Incarnation: step.Incarnation, ID: step.ID, Sight: Sight{State: Absent}}})
			to("look: not found, though it may be there", f)
		}
	default:
		m.effect(s, claim, *step, to)
	}
}

// crash begins a new process: it knows nothing, and reads all that is stored.
func (m *model) crash(s state) state {
	s.mem, s.term, s.pass, s.cache, s.born, s.behind = 0, 0, pass{}, s.api, 0, false
	return s
}

// dies emits a crash, but for one that is assumed not to be: within a window of
// someone's hand on the claim.
func (m *model) dies(s state, what string, to emit) {
	if m.tampered(&s) {
		return
	}
	to(what, m.crash(s))
	if m.stale && s.old.exists {
		s = m.crash(s)
		s.cache, s.behind = s.old, true
		to(what+", and an old list", s)
	}
}

func (m *model) fault(s state) (state, bool) {
	if s.faults >= m.mostFaults {
		return s, false
	}
	s.faults++
	return s, true
}

// again ends a pass that has nothing to say.
func again(s state) state {
	s.pass = pass{}
	return s
}

func (m *model) read(s state, to emit) {
	s.cache, s.behind = s.api, false
	if !s.api.exists || s.api.uid != s.pass.have.uid || s.api.gen != s.pass.have.gen {
		to("read: it is another by now", again(s))
		return
	}
	mem := m.memories.at(s.mem)
	mem.Read = true
	s.mem, s.pass.have, s.pass.looks, s.pass.since = m.memories.of(mem), s.api, 0, 0
	to("read", s)
}

// put is a guarded write: it takes effect only on what the process has seen.
// lost says that it was sent, and that the process died or gave up before it came.
func (m *model) put(s state, next object, what string, to emit, done func(state) state) {
	if s.api != s.pass.have {
		to(what+": conflict", again(s))
		return
	}
	was := s.pass.have
	stored := s
	stored.api, stored.cache, stored.late, stored.behind = next, next, write{}, false
	if m.stale {
		stored.old = s.api
	}
	to(what, done(stored))
	f, ok := m.fault(s)
	if !ok {
		return
	}
	dead := stored
	dead.faults = f.faults
	m.dies(dead, what+", and a crash after it", to)
	if !f.late.on {
		f.late = write{true, was, next}
		m.dies(f, what+": in the air, and a crash", to)
		to(what+": in the air, taken for failed", again(f))
	}
}

func (m *model) writeClaim(s state, step Step, to emit) {
	if step.Claim.Incarnation >= mostIncs-1 || step.Claim.Next >= mostIncs-1 || step.Claim.Attempt >= mostTries {
		return // beyond what is explored
	}
	next := s.pass.have
	had, before := next.claim != 0, m.claims.at(next.claim)
	if step.Claim.Term != before.Term && step.Claim.Term == s.term.at().UnixNano() {
		step.Claim.Term = before.Term + 1 // a count stands for the time, which makes no difference
	}
	next.claim, next.finalizer, next.ownerLives = m.claims.of(step.Claim), true, false
	if s.mem != 0 && m.mutant != nil && m.mutant.unwritten {
		mem := m.memories.at(s.mem).Wrote(step, had, before, epoch)
		s.mem = m.memories.of(mem)
		s.pass.have.claim, s.pass.have.finalizer = next.claim, true
		to("claim: not written", s)
		return
	}
	s.mem = m.memories.of(m.memories.at(s.mem).Trying(step.Claim))
	m.put(s, next, "claim", to, func(s state) state {
		mem := m.memories.at(s.mem).Wrote(step, had, before, epoch)
		s.mem = m.memories.of(mem)
		s.pass.have, s.pass.looks, s.pass.since = next, 0, 0
		return s
	})
}

func (m *model) record(s state, id string, to emit) {
	st := m.statuses.at(s.pass.status)
	st.ID, st.Recorded = id, true
	m.putStatus(s, st, "record", to, func(s state) state { return s })
}

// putStatus writes the status. A conflict is settled in place: the same object,
// generation and claim take the same status.
func (m *model) putStatus(s state, st Status, what string, to emit, done func(state) state) {
	next := s.pass.have
	next.status = m.statuses.of(st)
	h := next.status
	a, b := s.api, s.pass.have
	if a != b && a.exists && a.uid == b.uid && a.gen == b.gen && a.claim == b.claim {
		s.pass.have, next = a, a
		next.status = h
	}
	m.put(s, next, what, to, func(s state) state {
		s.pass.have, s.pass.status = next, h
		return done(s)
	})
}

func (m *model) finish(s state, e End, to emit) {
	if m.last != nil {
		*m.last = e
	}
	st := m.statuses.at(s.pass.status)
	st.Recorded, st.ObservedGeneration, st.Done = true, int64(s.pass.have.gen), e.Verdict == AsWanted
	st.Rejected, st.RejectedMessage, st.RejectedGeneration = "", "", 0
	if e.Verdict == Stalled && !OwnReason(e.Reason) && e.Reason != "" {
		st.Rejected, st.RejectedGeneration = e.Reason, int64(s.pass.have.gen)
	}
	if m.statuses.of(st) == s.pass.have.status {
		to(m.endText(e), again(s))
		return
	}
	m.putStatus(s, st, m.endText(e), to, again)
}

func (m *model) endText(e End) string {
	text := "= " + [...]string{"nothing", "as wanted", "observed", "working", "waiting", "stalled", "cannot say"}[e.Verdict]
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

func (m *model) release(s state, orphan bool, to emit) {
	next := s.pass.have
	if next.deleting {
		next.finalizer = false
		next.exists = false
	}
	a, b := s.api, s.pass.have
	if a != b && a.exists && a.uid == b.uid && a.claim == b.claim && a.deleting {
		s.pass.have, next = a, a
		next.finalizer, next.exists = false, false
	}
	m.put(s, next, "release", func(what string, n state) {
		if !n.api.exists && !orphan {
			n.released = true
		}
		to(what, n)
	}, again)
}

func (m *model) look(s state, claim Claim, step *Step) state {
	l := Look{Incarnation: step.Incarnation, ID: step.ID, Sight: m.see(&s, claim, step)}
	s.mem = m.memories.of(m.memories.at(s.mem).Learn(l.Own, l.Sight.ID))
	if s.pass.looks == 0 {
		s.pass.since = 0
	}
	s.pass.looks = m.looks.of(seenLook{s.pass.looks, l})
	m.learn(&s, claim, l.Sight)
	return s
}

// local is all that a decision is made from: what is outside, and in the air, is
// nothing that the process knows.
type local struct {
	have, mem, status, looks handle
	since, term              age
	upgraded, losses         bool
}

// decision is what came of it.
type decision struct {
	mem   handle // what the process knows by then
	term  age    // since when, as far as it counts
	claim handle // the one that references derive from
	step  Step
}

// decided is the next step, and the claim that counts. Many states differ only in
// what the process does not know: each decision is made once.
func (m *model) decided(s *state) (*Step, Claim) {
	key := local{m.objects.of(s.pass.have), s.mem, s.pass.status, s.pass.looks, s.pass.since, s.term, s.upgraded, s.out.losses}
	d, ok := m.decisions[key]
	if !ok {
		v := m.view(s)
		decide := Decide
		if m.mutant != nil && m.mutant.decide != nil {
			decide = m.mutant.decide
		}
		d = &decision{s.mem, s.term, m.claims.of(Effective(v)), decide(v)}
		m.decisions[key] = d
	}
	s.mem, s.term = d.mem, d.term
	return &d.step, m.claims.at(d.claim)
}

func (m *model) learn(s *state, claim Claim, sight Sight) {
	v := View{Claim: claim, Outside: Outside{Guarantee: m.guarantee(&s.upgraded)}, Object: Object{Deleting: s.pass.have.deleting}}
	if v.Learns(sight) {
		st := m.statuses.at(s.pass.status)
		st.Recorded = st.Recorded && st.ID == sight.ID
		st.ID = sight.ID
		s.pass.status = m.statuses.of(st)
	}
}

// effect sends a call. It lands and is answered; or it lands and the answer is
// lost; or it stays in the air, as after a freeze right before it was sent. And the
// process may die of each.
func (m *model) effect(s state, claim Claim, step Step, to emit) {
	before := m.memories.at(s.mem)
	sending := before.Sending(step, int64(s.pass.have.gen), epoch)
	c := call{
		do: step.Do, ref: reference{uidOf(claim.UID), uint8(step.Incarnation)}, attempt: uint8(claim.Attempt),
		content: s.pass.have.want, deleting: s.pass.have.deleting, loose: m.before != 0 && !s.upgraded,
	}
	if m.mutant != nil && m.mutant.send != nil {
		m.mutant.send(&c, before, s)
	}
	if step.ID != "" {
		c.thing = uint8(placeOf(step.ID) + 1)
		c.seen = s.out.things[c.thing-1].content
	}
	if step.Do == Rebind {
		c.to = c.ref
	}
	if step.Do == Fence && step.ID != "" {
		c.ref = s.out.things[c.thing-1].ref
	}
	unknown := func(s state) state {
		s.mem = m.remember(sending.Ended(step, OutcomeUnknown, before, epoch))
		s.pass.looks, s.pass.since = 0, 0
		s.pass.end = m.ends.of(End{Verdict: Working, Reason: ReasonOutcomeUnknown})
		return s
	}
	name := step.Do.String()
	landed, sight, outcome := m.land(s, c, claim)
	to(name, m.answer(landed, claim, step, sight, outcome, before, sending))
	f, ok := m.fault(s)
	if !ok {
		return
	}
	landed.faults = f.faults
	to(name+": the answer is lost", unknown(landed))
	m.dies(landed, name+": landed, and a crash", to)
	for i := range f.air {
		if f.air[i].do == Finish {
			f.air[i] = c
			to(name+": in the air, taken for lost", unknown(f).sorted())
			m.dies(f.sorted(), name+": in the air, and a crash", to)
			return
		}
	}
}

// answer goes on with what an effect answered.
func (m *model) answer(s state, claim Claim, step Step, sight Sight, outcome Outcome, before, sending Memory) state {
	if sight.Replay && step.Do == Create {
		sight.Own, sight.State = step.Incarnation, Present
	}
	mem := sending.Ended(step, outcome, before, epoch).Learn(sight.Own, sight.ID)
	s.pass.looks, s.pass.since = 0, 0
	switch outcome {
	case OutcomeDone:
		m.learn(&s, claim, sight)
		if !sight.Replay {
			if step.Do != Create && sight.ID == "" {
				sight.ID = step.ID
			}
			s.pass.looks = m.looks.of(seenLook{0, Look{Incarnation: step.Incarnation, Answer: step.Do, Sight: sight}})
		}
	case OutcomeRejected:
		mem = mem.Reject("SoldOut", "", int64(s.pass.have.gen), reconcileAt(s.pass.have))
		s.pass.end = m.ends.of(End{Verdict: Stalled, Reason: "SoldOut"})
	default:
		s.pass.end = m.ends.of(End{Verdict: Working, Reason: "NoEffect"})
	}
	s.mem = m.remember(mem)
	return s
}
