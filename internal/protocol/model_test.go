package protocol

import (
	"fmt"
	"reflect"
	"slices"
	"time"
)

// The model: an API server with one object, an outside, and a process that runs
// the real decision, as one comparable value. Time has a grain of half a window;
// what is older than it matters is all the same age.

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// age is how long ago something was, in half windows.
type age uint8

const (
	settled age = 2          // a window
	half        = settle / 2 // of a window
	settle      = time.Minute
)

func (a age) older(most age) age { return min(a+1, most) }

// at is the moment of that age. The model's now never moves: everything else does.
func (a age) at() time.Time { return epoch.Add(-time.Duration(a) * half) }

// state is everything, at one moment.
type state struct {
	api   object // as the API server has it
	cache object // as the process knows it
	snap  object // a backup of etcd, or none

	mem  handle // Memory
	born uint8  // UID of the object that Memory is of
	old  object // where the setting wants it: the object before its last change

	upgraded bool // the process is of a program that offers more

	behind bool // the process has read an old list, and the watch has not caught up
	term   age  // of the process
	pass   pass // the one under way, if any

	out  outside
	air  [2]call // calls that were sent, and whose fate is open
	late write   // an own write in the air

	faults, acts uint8 // that happened
	did          deed  // what people did, and what explains an end
	released     bool  // by the library
}

// object is what the API server keeps.
type object struct {
	exists, deleting, finalizer bool
	uid, gen                    uint8
	want                        content
	age                         age
	claim                       handle // 0: none
	status                      handle
	orphan                      bool
	askNew                      uint8 // UID
	askAdopt                    uint8 // thing
	askOutcome                  handle
	reconcile                   uint8
	ownerLives                  bool // the claim is a copy of another object's, which lives
}

// content is what a thing is like, and what the object wants.
type content struct{ date, passenger uint8 }

// thing is one outside.
type thing struct {
	ref     reference
	state   State
	content content
	age     age // since it landed, counted from the call's return: look-ups by reference may lag
}

type reference struct {
	uid uint8 // of the claim from which it is derived; 0 where the thing is somebody else's
	inc uint8 // 0: no object derives it
}

const (
	mostThings = 8
	mostIncs   = 8
	mostTries  = 8
)

type outside struct {
	things  [mostThings]thing
	shut    [mostIncs]bool
	kept    [mostIncs][mostTries]kept // answers under create keys
	soldOut bool
	losses  bool
}

// kept is the answer that the outside keeps under a key.
type kept struct {
	thing    uint8 // its place plus one
	rejected bool
	content  content
	age      age
}

type call struct {
	do       Action // Finish: none
	ref      reference
	to       reference // of a Rebind
	attempt  uint8
	content  content
	seen     content
	thing    uint8 // its place plus one
	age      age
	deleting bool
	loose    bool // sent by a program under which the outside was told less
}

// write is one that the API server may still get. It is guarded by what was there.
type write struct {
	on       bool
	was, new object
}

// pass is one under way.
type pass struct {
	on     bool
	have   object
	status handle // as edited so far
	looks  handle
	since  age    // of the first look
	end    handle // what is to be written, where that is decided
}

// deed is a set of things that people, or the world, did.
type deed uint32

const (
	didDelete deed = 1 << iota
	didOrphan
	didCancel
	didSellOut
	didMeddle
	didRestore
	didRollback
	didForeign
	didNew
	didAdopt
	didOutcome
	didFail
	didCopy
	didUncertain // an outcome that nobody can tell
	didVanish    // what is gone outside has left no trace
	didMidway    // spec was changed while a replacement was on
)

// handle stands for an interned value.
type handle uint32

// intern gives equal values equal handles. Handle 0 is the zero value's.
type intern[T comparable] struct {
	handles map[T]handle
	values  []T
	aged    map[handle]handle
}

func newIntern[T comparable]() *intern[T] {
	return &intern[T]{handles: map[T]handle{}, aged: map[handle]handle{}, values: make([]T, 1)}
}

func (in *intern[T]) of(v T) handle {
	if v == *new(T) {
		return 0
	}
	h, ok := in.handles[v]
	if !ok {
		h = handle(len(in.values))
		in.handles[v] = h
		in.values = append(in.values, v)
	}
	return h
}

func (in *intern[T]) at(h handle) T { return in.values[h] }

// packed is a state as it is stored: the parts that many states share are interned.
type packed struct {
	api, cache, snap, have, was, new handle
	mem, status, looks, end, old     handle
	out, air                         handle
	did                              deed
	term, since                      age
	faults, acts, born               uint8
	on, late, released, behind       bool
	upgraded                         bool
}

func (m *model) pack(s *state) packed {
	first := m.grown(s.api)
	api := m.objects.of(first)
	object := func(o *object) handle {
		if g := m.grown(*o); g != first { // as few are
			return m.objects.of(g)
		}
		return api
	}
	return packed{
		api: api, cache: object(&s.cache), snap: object(&s.snap), have: object(&s.pass.have),
		was: object(&s.late.was), new: object(&s.late.new), mem: s.mem, status: m.current(s.pass.status, s.pass.have.gen), looks: s.pass.looks, end: s.pass.end,
		out: m.outs.of(s.out), air: m.airs.of(m.flying(s)), did: s.did, term: s.term, since: s.pass.since, faults: s.faults, acts: s.acts,
		on: s.pass.on, late: s.late.on, released: s.released,
		behind: s.behind, upgraded: s.upgraded, born: s.born, old: object(&s.old),
	}
}

// grown is an object without what makes no difference any more: its age, where it
// cannot be newborn; and which generation before this one its status is of.
func (m *model) grown(o object) object {
	if o.exists && (o.gen > 1 || o.finalizer && o.claim != 0 && (m.mostActs < 2 || !m.unclaims)) {
		o.age = settled
	}
	o.status = m.current(o.status, o.gen)
	return o
}

// current is a status as it counts for a generation.
func (m *model) current(status handle, gen uint8) handle {
	key := [2]handle{status, handle(gen)}
	h, ok := m.currents[key]
	if !ok {
		st := m.statuses.at(status)
		if st.ObservedGeneration != int64(gen) {
			st.ObservedGeneration, st.Done = 0, false
		}
		if st.RejectedGeneration != int64(gen) {
			st.RejectedGeneration = 0
		}
		h = m.statuses.of(st)
		m.currents[key] = h
	}
	return h
}

// flying are the calls in the air that may still take effect.
func (m *model) flying(s *state) [2]call {
	air := s.air
	for i, c := range air {
		var thing State
		if c.thing != 0 {
			thing = s.out.things[c.thing-1].state
		}
		shut := c.ref.uid != 0 && int(c.ref.inc) < mostIncs && s.out.shut[c.ref.inc]
		if (c.do == Create || c.do == Fence) && shut || (c.do == Delete || c.do == Update) && !thing.Live() {
			air[i] = call{}
		}
	}
	if air[0].do == Finish {
		air[0], air[1] = air[1], call{}
	}
	return air
}

// remember is the handle of a memory, without what makes no difference.
func (m *model) remember(mem Memory) handle {
	if m.outside.Fence && !m.policy.DeleteFirst { // what can be closed is not waited for
		mem.Unanswered = time.Time{}
	}
	return m.memories.of(mem)
}

func (m *model) unpack(p packed) state {
	return state{
		api: m.objects.at(p.api), cache: m.objects.at(p.cache), snap: m.objects.at(p.snap), mem: p.mem, term: p.term,
		pass: pass{on: p.on, have: m.objects.at(p.have), status: p.status, looks: p.looks, since: p.since, end: p.end},
		out:  m.outs.at(p.out), air: m.airs.at(p.air), late: write{p.late, m.objects.at(p.was), m.objects.at(p.new)},
		faults: p.faults, acts: p.acts, did: p.did, released: p.released, behind: p.behind, upgraded: p.upgraded, born: p.born, old: m.objects.at(p.old),
	}
}

// seenLook is one look of a pass, and those before it.
type seenLook struct {
	before handle
	look   Look
}

// model is a setting, and the values of its states.
type model struct {
	setting
	claims               *intern[Claim]
	statuses             *intern[Status]
	memories             *intern[Memory]
	looks                *intern[seenLook]
	ends                 *intern[End]
	texts                *intern[string]
	objects              *intern[object]
	outs                 *intern[outside]
	airs                 *intern[[2]call]
	decisions            map[local]*decision
	currents             map[[2]handle]handle
	unclaims             bool // one of the acts
	mostFaults, mostActs uint8
	next                 Action // what the process does next
	last                 *End   // where set: takes how a pass ends
}

// setting is what the outside is like, and what may happen.
type setting struct {
	name    string
	outside Outside
	policy  Policy
	anytime bool      // calls land whenever they like, not within a window alone
	lag     bool      // look-ups by reference show what is a window old
	slow    bool      // a thing is Pending first, and may fail
	blind   bool      // a look-up may fail
	stale   bool      // a process that starts may read what was before
	forgets bool      // no rejection is kept under a key
	before  Guarantee // what the program said that ran first; 0: the same
	quick   bool      // explored in each test run
	deep    bool      // explored with two acts where -deep is given
	deepIn  string    // the group of acts in which it is
	needs   uint8     // acts of people without which there is nothing to see
	copied  bool      // the object begins as a copy of another one, which lives
	acts    []act
	mutant  *mutant
}

func newModel(s setting) *model {
	m := &model{
		setting: s, claims: newIntern[Claim](), statuses: newIntern[Status](), memories: newIntern[Memory](),
		looks: newIntern[seenLook](), ends: newIntern[End](), texts: newIntern[string](),
		objects: newIntern[object](), outs: newIntern[outside](), airs: newIntern[[2]call](), decisions: map[local]*decision{}, currents: map[[2]handle]handle{},
	}
	m.unclaims = slices.ContainsFunc(s.acts, func(a act) bool { return a.name == actUnclaim.name })
	if m.outside.Settle == 0 {
		m.outside.Settle = settle
	}
	return m
}

func (m *model) first() state {
	s := state{api: object{exists: true, uid: 1, gen: 1, want: content{1, 1}}, term: settled}
	s.out.things[0] = thing{state: Present, content: content{9, 9}, age: settled} // somebody else's
	if m.copied {
		c := m.identity().copyOf()
		s.api.claim, s.api.ownerLives, s.api.finalizer = m.claims.of(c), true, true
	}
	s.cache = s.api
	return s
}

func (m *model) identity() Identity {
	return Identity{Controller: "d/c", Cluster: "here", Group: "g", Kind: "K"}
}

func (i Identity) copyOf() Claim {
	return Claim{
		V: 1, Controller: i.Controller, Cluster: i.Cluster, Namespace: "ns", Name: "other", UID: "u9", Owner: "u9",
		Incarnation: 1, Attempt: 1, Window: settle, Guarantee: UniqueReference.String(),
	}
}

func uidName(n uint8) string { return string([]byte{'u', '0' + n}) }

func uidOf(name string) uint8 {
	if len(name) != 2 {
		return 0
	}
	return name[1] - '0'
}

func idOf(place int) string { return string([]byte{'b', '0' + byte(place)}) }

func placeOf(id string) int {
	if len(id) != 2 || id[0] != 'b' {
		return -1
	}
	return int(id[1] - '0')
}

// tick lets half a window pass.
func (m *model) tick(s state) state {
	const oldest = settled
	for _, o := range []*object{&s.api, &s.cache, &s.snap, &s.pass.have, &s.late.was, &s.late.new, &s.old} {
		if o.exists {
			o.age = o.age.older(oldest)
			o.claim = m.ageClaim(o.claim)
		}
	}
	s.mem = m.ageMemory(s.mem)
	s.term = s.term.older(oldest)
	if s.pass.on && s.pass.looks != 0 {
		s.pass.since = s.pass.since.older(oldest)
	}
	for i := range s.out.things {
		if t := &s.out.things[i]; t.state != Unknown {
			t.age = t.age.older(oldest)
		}
	}
	for i := range s.out.kept {
		for j := range s.out.kept[i] {
			if k := &s.out.kept[i][j]; *k != (kept{}) {
				if k.age = k.age.older(m.lifetime()); k.age == m.lifetime() && m.outside.KeyLifetime > 0 {
					*k = kept{}
				}
			}
		}
	}
	for i := range s.air {
		if c := &s.air[i]; c.do != Finish {
			if m.anytime {
				continue // it never ages
			}
			if c.age = c.age.older(oldest); c.age == oldest {
				*c = call{}
			}
		}
	}
	return s.sorted()
}

func (m *model) lifetime() age {
	if m.outside.KeyLifetime == 0 {
		return 0 // they do not age
	}
	return age(m.outside.KeyLifetime / half)
}

// sorted makes states alike that differ only in the order of what is in the air.
func (s state) sorted() state {
	if s.air[0].do == Finish {
		s.air[0], s.air[1] = s.air[1], call{}
	}
	return s
}

// ageMemory moves every moment half a window into the past, up to the age at which
// it makes no difference any more.
func (m *model) ageMemory(h handle) handle {
	if to, ok := m.memories.aged[h]; ok {
		return to
	}
	mem := m.memories.at(h)
	v := reflect.ValueOf(&mem).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if t, ok := v.Field(i).Addr().Interface().(*time.Time); ok && !t.IsZero() {
			if *t = t.Add(-half); t.After(settled.at()) {
				continue
			}
			switch *t = settled.at(); v.Type().Field(i).Name {
			case "Met", "Changed", "Took", "Unanswered": // as if it had never been
				*t = time.Time{}
			}
		}
	}
	mem.Claim = m.olderClaim(mem.Claim)
	to := m.memories.of(mem)
	m.memories.aged[h] = to
	return to
}

func (m *model) ageClaim(h handle) handle {
	if to, ok := m.claims.aged[h]; ok {
		return to
	}
	to := m.claims.of(m.olderClaim(m.claims.at(h)))
	m.claims.aged[h] = to
	return to
}

func (m *model) olderClaim(c Claim) Claim {
	if c.Time != 0 && m.outside.KeyLifetime > 0 {
		c.Time = max(c.Time-int64(half.Seconds()), epoch.Add(-m.outside.KeyLifetime).Unix())
	}
	return c
}

// live counts what this object's claim may have made and is not over.
func (s *state) live() (n int, which [mostThings]bool) {
	for i, t := range s.out.things {
		if t.state.Live() && t.ref.uid != 0 && t.ref.uid != 9 && t.ref.inc != 0 {
			n++
			which[i] = true
		}
	}
	return n, which
}

// present counts those that stand.
func (s *state) present() (n int) {
	for _, t := range s.out.things {
		if t.state == Present && t.ref.uid != 0 && t.ref.uid != 9 && t.ref.inc != 0 {
			n++
		}
	}
	return n
}

func (m *model) describe(s *state) string {
	c := m.claims.at(s.api.claim)
	st := m.statuses.at(s.api.status)
	text := fmt.Sprintf("object exists=%v deleting=%v finalizer=%v gen=%d want=%v; claim inc=%d att=%d next=%d id=%q seen=%v; status id=%q observed=%d rejected=%q\n    outside:",
		s.api.exists, s.api.deleting, s.api.finalizer, s.api.gen, s.api.want, c.Incarnation, c.Attempt, c.Next, c.ID, c.Seen, st.ID, st.ObservedGeneration, st.Rejected)
	for i, t := range s.out.things {
		if t.state != Unknown {
			text += fmt.Sprintf(" %s=%s of %d.%d %v", idOf(i), t.state, t.ref.uid, t.ref.inc, t.content)
		}
	}
	for _, a := range s.air {
		if a.do != Finish {
			text += fmt.Sprintf("; in the air: %s %d.%d", a.do, a.ref.uid, a.ref.inc)
		}
	}
	return text
}
