package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// world is an API server with one object, an outside, and one process that runs
// the real decision. One goroutine drives it, so that a history is exactly
// repeatable. Faults strike at numbered steps.
type world struct {
	now     time.Time
	started time.Time // of the term

	// The object, as the API server has it.
	exists, deleting, finalizer bool
	generation                  int64
	born                        time.Time
	claim                       Claim
	claimed                     bool
	status                      Status
	spec                        spec
	policy                      Policy
	ask                         Ask

	// The outside.
	outside  Outside
	things   []thing
	shut     map[int]bool // fenced incarnations
	answers  map[string]reply
	soldOut  bool
	lag      time.Duration // look-ups by reference show what is older than this
	confirms time.Duration // a thing is Pending for so long
	sent     int           // creates that took effect
	calls    int
	released bool

	memory Memory
	faults map[int]fault // by step
	step   int
	trace  []line
}

// line of a transcript; it is only written out when a history fails.
type line struct {
	format string
	args   []any
}

func (w *world) transcript() []string {
	var out []string
	for _, l := range w.trace {
		out = append(out, fmt.Sprintf(l.format, l.args...))
	}
	return out
}

type spec struct{ date, passenger int }

type thing struct {
	own   int
	id    string
	state State
	spec  spec
	made  time.Time
}

type reply struct {
	sight   Sight
	outcome Outcome
	spec    spec // what was asked for
}

type fault uint8

const (
	crashBefore fault = iota + 1
	crashAfter
	lostBefore // the request never arrives
	lostAfter  // the answer never arrives
	faultKinds
)

func (f fault) String() string {
	return [...]string{"", ": crash before", ": crash after", ": request lost", ": answer lost"}[f]
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(faults map[int]fault) *world {
	w := &world{
		now: epoch, started: epoch.Add(-time.Hour), faults: faults, answers: map[string]reply{}, shut: map[int]bool{},
		exists: true, generation: 1, born: epoch, spec: spec{date: 1, passenger: 1},
		outside: Outside{Guarantee: UniqueReference, Fence: true, Settle: time.Minute},
	}
	return w
}

func (w *world) say(format string, args ...any) {
	w.trace = append(w.trace, line{format, args})
}

// failure ends a history; it carries the transcript.
type failure struct{ text string }

func (w *world) fail(format string, args ...any) {
	panic(failure{fmt.Sprintf(format, args...) + "\n  " + strings.Join(w.transcript(), "\n  ")})
}

func (w *world) view(looks []Look, status Status) View {
	v := View{
		Now: w.now, Identity: Identity{Controller: "d/c", Cluster: "cluster", Group: "g", Kind: "K"}, Term: w.started,
		Object: Object{Exists: w.exists, Namespace: "ns", Name: "n", UID: "u", Generation: w.generation, Deleting: w.deleting, Finalizer: w.finalizer, Age: w.now.Sub(w.born)},
		Claim:  w.claim, Claimed: w.claimed, Ask: w.ask, Status: status, Policy: w.policy, Outside: w.outside, Looks: looks, Looked: w.now,
	}
	if w.claimed && !w.memory.HasClaim {
		w.memory = w.memory.Meet(w.claim, w.status, w.now)
	}
	v.Memory = w.memory
	return v
}

type crashed struct{}

// strike returns the fault of this step.
func (w *world) strike(format string, args ...any) fault {
	w.step++
	f := w.faults[w.step]
	w.say("%d "+format+"%s", append(append([]any{w.step}, args...), f)...)
	if f == crashBefore {
		panic(crashed{})
	}
	return f
}

func (w *world) after(f fault) {
	if f == crashAfter {
		panic(crashed{})
	}
}

// pass runs one pass. again tells when the next is due; rests says that nothing is.
func (w *world) pass() (after time.Duration, rests bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crashed); !ok {
				panic(r)
			}
			w.memory, w.started = Memory{}, w.now
			w.say("restarted")
			after, rests = 0, false
		}
	}()
	status, looks := w.status, []Look(nil)
	for range 60 {
		s := Decide(w.view(looks, status))
		w.check()
		switch s.Do {
		case Finish:
			return w.finish(s.End, status)
		case Read:
			w.after(w.strike("read"))
			w.memory.Read, looks = true, nil
		case WriteClaim:
			f := w.strike("claim inc %d att %d next %d id %q", s.Claim.Incarnation, s.Claim.Attempt, s.Claim.Next, s.Claim.ID)
			if f == lostBefore {
				return time.Second, false
			}
			before, had := w.claim, w.claimed
			w.claim, w.claimed, w.finalizer = s.Claim, true, true
			w.after(f) // a lost answer is read again, and found
			w.memory, looks = w.memory.Wrote(s, had, before, w.now), nil
		case Record:
			f := w.strike("record %s", s.ID)
			if f == lostBefore || f == lostAfter {
				return time.Second, false
			}
			w.status.ID, status.ID, status.Recorded = s.ID, s.ID, true
			w.after(f)
		case Release:
			f := w.strike("release")
			if f == lostBefore {
				return time.Second, false
			}
			w.exists, w.released = false, true
			w.after(f)
			return 0, true
		case LookUp:
			f := w.strike("look %d%s", s.Incarnation, s.ID)
			w.after(f)
			l := Look{Incarnation: s.Incarnation, ID: s.ID, Sight: w.see(s)}
			if f == lostBefore || f == lostAfter {
				l.Failed = true
			}
			looks = append(looks, l)
			w.memory = w.memory.Learn(l.Own, l.Sight.ID)
			w.learn(&status, l.Sight)
		default:
			var done bool
			if looks, done = w.effect(s, &status); done {
				return time.Second, w.memory.Rejected != "" && w.memory.RejectedGen == w.generation
			}
		}
	}
	w.fail("the pass does not end")
	return 0, true
}

func (w *world) learn(status *Status, s Sight) {
	if s.ID != "" && !s.State.missing() && w.claim.Next == 0 && s.Own == w.claim.Incarnation && !w.deleting {
		status.ID, status.Recorded = s.ID, w.status.ID == s.ID
	}
}

func (w *world) finish(e End, status Status) (time.Duration, bool) {
	w.memory = w.memory.Finished(e, w.now)
	w.say("= %d %s %s", e.Verdict, e.Reason, e.Message)
	if e.Verdict == Nothing {
		return 0, true
	}
	f := w.strike("status")
	if f == lostBefore {
		return time.Second, false
	}
	status.Recorded, status.ObservedGeneration, status.Done = true, w.generation, e.Verdict == AsWanted
	if e.Verdict != Stalled || OwnReason(e.Reason) {
		status.Rejected = ""
	} else {
		status.Rejected, status.RejectedMessage, status.RejectedGeneration = e.Reason, e.Message, w.generation
	}
	w.status = status
	w.after(f)
	switch e.Verdict {
	case AsWanted, Stalled:
		return 0, true
	case Waiting:
		return e.After, false
	}
	return time.Second, false
}

func (w *world) sight(t thing) Sight {
	s := Sight{State: t.state, ID: t.id, Own: t.own}
	if t.state == Present && w.now.Sub(t.made) < w.confirms {
		s.State = Pending
		return s
	}
	if t.state == Present && t.spec != w.spec {
		s.Differs, s.Replace = true, t.spec.passenger != w.spec.passenger
	}
	return s
}

func (w *world) see(s Step) Sight {
	w.calls++
	for _, t := range w.things {
		if s.ID != "" && t.id == s.ID || s.ID == "" && t.own == s.Incarnation && w.now.Sub(t.made) >= w.lag {
			return w.sight(t)
		}
	}
	there := slices.ContainsFunc(w.things, func(t thing) bool { return t.own == s.Incarnation })
	if s.ID == "" && w.shut[s.Incarnation] && !there {
		return Sight{State: Closed}
	}
	return Sight{State: Absent}
}

// effect sends, and takes effect, as the fault lets it.
func (w *world) effect(s Step, status *Status) ([]Look, bool) {
	before := w.memory
	w.memory = w.memory.Sending(s, w.generation, w.now)
	f := w.strike("%s %d %s", s.Do, s.Incarnation, s.ID)
	var r reply
	if f != lostBefore {
		r = w.carryOut(s)
	}
	w.check()
	w.after(f)
	if f == lostBefore || f == lostAfter {
		r.outcome = OutcomeUnknown
	}
	w.memory = w.memory.Ended(s, r.outcome, before, w.now).Learn(r.sight.Own, r.sight.ID)
	switch r.outcome {
	case OutcomeDone:
		w.learn(status, r.sight)
		if r.sight.Replay {
			return nil, false
		}
		return []Look{{Incarnation: s.Incarnation, Answer: s.Do, Sight: r.sight}}, false
	case OutcomeRejected:
		w.memory = w.memory.Reject("SoldOut", "sold out", w.generation, w.ask.ReconcileAt)
		w.finish(End{Verdict: Stalled, Reason: "SoldOut"}, *status)
		return nil, true
	}
	w.finish(End{Verdict: Working, Reason: ReasonOutcomeUnknown}, *status)
	return nil, true
}

func (w *world) carryOut(s Step) reply {
	w.calls++
	find := func() *thing {
		for i := range w.things {
			if w.things[i].own == s.Incarnation {
				return &w.things[i]
			}
		}
		return nil
	}
	t := find()
	switch s.Do {
	case Create:
		key := CreateKey(fmt.Sprint(s.Incarnation), w.claim.Attempt)
		if old, ok := w.answers[key]; ok {
			if old.spec != w.spec {
				return reply{outcome: OutcomeNoEffect} // the key was used with other content
			}
			old.sight.Replay = old.outcome == OutcomeDone
			if old.outcome == OutcomeRejected { // of what was asked then, not of what is asked now
				old.outcome = OutcomeNoEffect
			}
			return old
		}
		r := w.book(s, t)
		r.spec = w.spec
		w.answers[key] = r
		return r
	case Update:
		if t == nil || t.state != Present {
			return reply{outcome: OutcomeNoEffect}
		}
		t.spec = w.spec
		return reply{sight: w.sight(*t)}
	case Delete:
		if t == nil {
			return reply{sight: Sight{State: Absent}}
		}
		t.state = Ended
		return reply{sight: w.sight(*t)}
	}
	w.shut[s.Incarnation] = true
	if t == nil {
		return reply{sight: Sight{State: Closed}}
	}
	return reply{sight: w.sight(*t)}
}

func (w *world) book(s Step, t *thing) reply {
	switch {
	case w.shut[s.Incarnation]:
		return reply{sight: Sight{State: Closed}}
	case t != nil:
		sight := w.sight(*t)
		sight.Replay = true
		return reply{sight: sight}
	case w.soldOut:
		return reply{outcome: OutcomeRejected}
	}
	made := thing{own: s.Incarnation, id: fmt.Sprintf("b%d", len(w.things)+1), state: Present, spec: w.spec, made: w.now}
	w.things = append(w.things, made)
	w.sent++
	return reply{sight: w.sight(made)}
}

func (w *world) live() []thing {
	return slices.DeleteFunc(slices.Clone(w.things), func(t thing) bool { return !t.state.Live() })
}

// check holds the world against the promises that hold at every moment.
func (w *world) check() {
	live := w.live()
	if len(live) > 1 && !(w.claim.Next != 0 && len(live) == 2) {
		w.fail("two are live: %v", live)
	}
	if w.released && len(live) > 0 && !w.policy.Retain {
		w.fail("released, and %v is live", live)
	}
}

// settle runs passes until nothing is due, in virtual time.
func (w *world) settle() {
	for range 80 {
		after, rests := w.pass()
		w.check()
		if rests {
			return
		}
		w.now = w.now.Add(max(after, time.Second))
	}
	w.fail("it does not settle")
}
