package protocol

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// How far is explored. The race detector makes it ten times slower, and finds
// nothing in code that has one goroutine: it goes less far.
var (
	depthFaults = flag.Int("faults", raceless(2, 1), "faults in a history that is explored")
	depthActs   = flag.Int("acts", 1, "acts of people in a history that is explored")
	depthDeep   = flag.Bool("deep", false, "explore two acts of people in one setting of each kind")
	depthAll    = flag.Bool("all", false, "explore every setting, and not a choice of them")
)

// explorer walks every state that can be reached, in the order of their distance
// from the first, so that what it finds wrong is found at its shortest.
type explorer struct {
	*model
	seen   map[packed]int32
	all    []packed
	parent []int32
	what   []string
	quiet  []quiet
	moves  int
	calmed map[packed]bool // by stuck
}

// quiet is what may come next of a state where nothing goes wrong, as places in all.
type quiet struct {
	step  int32 // the process goes on; nowhere where it has nothing to do
	world int32 // the watch tells, what is pending is confirmed, or time passes
	first bool  // the world comes first
	rests bool  // it is known to come to rest as it should
}

const nowhere = -1

// wrong is a promise that a history breaks.
type wrong struct {
	invariant string
	history   string
	states    int
}

func (w *wrong) Error() string { return w.invariant + "\n" + w.history }

func explore(s setting, faults, acts uint8) (*explorer, *wrong) {
	x := &explorer{model: newModel(s), seen: map[packed]int32{}, calmed: map[packed]bool{}}
	x.mostFaults, x.mostActs = faults, acts
	if _, bad := x.add(nowhere, "the object is made", x.first()); bad != nil {
		return x, bad
	}
	checked := 1
	for i := int32(0); int(i) < len(x.all); i++ {
		if bad := x.visit(i); bad != nil {
			return x, bad
		}
		if int(i) == 2*checked || int(i) == len(x.all)-1 {
			checked = int(i)
			if bad := x.stuckAmong(i); bad != nil {
				return x, bad
			}
		}
	}
	return x, nil
}

// add notes a state, unless it is known, and tells its place, and whether a promise
// is broken.
func (x *explorer) add(from int32, what string, n state) (int32, *wrong) {
	x.moves++
	p := x.pack(&n)
	if at, ok := x.seen[p]; ok {
		return at, nil
	}
	at := int32(len(x.all))
	x.seen[p] = at
	x.all, x.parent, x.what = append(x.all, p), append(x.parent, from), append(x.what, what)
	before := n
	if from >= 0 {
		before = x.unpack(x.all[from])
	}
	if broken := x.broken(before, what, n); broken != "" {
		return at, &wrong{broken, x.history(at), len(x.all)}
	}
	return at, nil
}

// visit adds what comes after a state.
func (x *explorer) visit(i int32) (bad *wrong) {
	s := x.unpack(x.all[i])
	q := quiet{step: nowhere, world: nowhere}
	to := func(what string, n state) (at int32) {
		if bad == nil {
			at, bad = x.add(i, what, n)
		}
		return at
	}
	x.process(s, func(what string, n state) {
		if at := to(what, n); q.step == nowhere {
			q.step = at
		}
	})
	x.environment(s, func(what string, n state) {
		at := to(what, n)
		switch {
		case what == toldByWatch, what == confirmed && !q.first:
			q.world, q.first = at, true
		case what == timePassed && !q.first:
			q.world = at
		}
	})
	x.quiet = append(x.quiet, q)
	return bad
}

// stuckAmong looks for a state, up to one of those that were visited, from which
// what should come does not come although nothing goes wrong. What leads to a state
// that was not visited is left for later.
func (x *explorer) stuckAmong(last int32) *wrong {
	for i := range last + 1 {
		if x.comesToRest(i) {
			continue
		}
		for j := range i + 1 { // the first one is told
			s := x.unpack(x.all[j])
			if x.quiet[j].rests {
				continue
			}
			if stuck := x.stuck(s); stuck != "" {
				return &wrong{stuck, x.history(j) + "\n  and from here on, without a fault:" + x.calmly(s), len(x.all)}
			}
		}
	}
	return nil
}

// comesToRest follows a state to where it rests. True where that is as it should
// be, or not known yet.
func (x *explorer) comesToRest(i int32) bool {
	var path []int32
	for at := i; !x.quiet[at].rests; {
		path = append(path, at)
		next := x.follows(at)
		if int(next) >= len(x.quiet) {
			return true
		}
		if len(path) == 400 || next == nowhere && x.wrongEnd(x.unpack(x.all[at])) != "" {
			return false
		}
		if next == nowhere {
			break
		}
		at = next
	}
	for _, at := range path {
		x.quiet[at].rests = true
	}
	return true
}

// follows is what comes after a state where nothing more goes wrong: calm, by what
// was explored. A place that was not visited says that it is not known.
func (x *explorer) follows(at int32) int32 {
	q := x.quiet[at]
	switch {
	case x.all[at].on && q.step == nowhere:
		return at
	case x.all[at].on:
		return q.step
	case q.first:
		return q.world
	}
	ends := q.step // of the pass that begins
	for ends != nowhere && int(ends) < len(x.quiet) && x.all[ends].on {
		ends = x.quiet[ends].step
	}
	switch {
	case int(ends) >= len(x.quiet):
		return ends
	case ends != nowhere && ends != at:
		return q.step
	}
	return q.world
}

// history is how a state is reached.
func (x *explorer) history(i int32) string {
	var lines []string
	for ; i >= 0; i = x.parent[i] {
		s := x.unpack(x.all[i])
		lines = append(lines, fmt.Sprintf("  %s\n    %s", x.what[i], x.describe(&s)))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// broken names the promise that a step breaks.
func (x *explorer) broken(before state, what string, s state) string {
	n, which := s.live()
	was, _ := before.live()
	if n > 1 && n > was {
		stored, known := x.claims.at(s.api.claim), x.memories.at(s.mem).Claim
		if x.promises(noDouble, &s) && !x.replaces(stored, &s, n, which) && !x.replaces(known, &s, n, which) {
			return "two live ones"
		}
	}
	if s.released && n > 0 && !x.policy.Retain && x.promises(noLeak, &s) {
		return "a leak: released, and one is live"
	}
	if s.out.things[0] != before.out.things[0] && s.did&didAdopt == 0 {
		return "another's thing was touched"
	}
	if strings.HasPrefix(what, "delete") && !before.api.deleting && before.present() > 0 && s.present() == 0 &&
		!x.policy.DeleteFirst && s.did&(didCancel|didDelete) == 0 {
		return "none, by an act of the library"
	}
	return ""
}

// replaces tells whether a claim records that those which are live replace one
// another. One that somebody took off is put back by the process that knows it.
func (x *explorer) replaces(c Claim, s *state, n int, which [mostThings]bool) bool {
	if n > 2 || c.Next == 0 || x.policy.DeleteFirst {
		return false
	}
	for i := range which {
		if inc := int(s.out.things[i].ref.inc); which[i] && inc != c.Incarnation && inc != c.Next {
			return false
		}
	}
	return true
}

type promise uint8

const (
	noDouble promise = iota
	noLeak
)

// promises is PROTOCOL's table: what holds of which guarantee, and when. A person who
// asks for a new one asks once for what Recreate asks always; and who changes the
// object again while it is replaced gives a replacement up, as Recreate does. An
// outside that forgets what stood under a reference accepts it again.
func (m *model) promises(p promise, s *state) bool {
	within, anew := !m.anytime, m.policy.Recreate || s.did&(didNew|didMidway|didVanish) != 0
	switch g := m.outside.Guarantee; {
	case g == UniqueReference && p == noDouble:
		return within || m.outside.Fence || !anew
	case g == UniqueReference, g == UniqueLiveReference, g == IdempotencyKeys:
		return within || m.outside.Fence
	case g == LookupOnly:
		return within
	}
	return p == noDouble
}

// calm is what comes next where nothing more goes wrong.
func (x *explorer) calm(s state) (state, bool) {
	if s.pass.on {
		return x.step(s), true
	}
	if s.cache != s.api {
		s.cache, s.behind = s.api, false
		return s, true
	}
	for i, t := range s.out.things {
		if t.state == Pending {
			s.out.things[i].state = Present
			return s, true
		}
	}
	after := s
	for range 100 {
		after = x.step(after)
		if !after.pass.on {
			break
		}
	}
	if after != s {
		return after, true
	}
	if next := x.tick(s); next != s {
		return next, true
	}
	return s, false
}

// calmly tells what calm does from a state on.
func (x *explorer) calmly(s state) string {
	var lines strings.Builder
	for range 40 {
		for range 30 { // a pass, step by step
			what := ""
			next := s
			x.process(s, func(w string, n state) {
				if what == "" {
					what, next = w, n
				}
			})
			if what != "" && x.pack(&next) != x.pack(&s) {
				fmt.Fprintf(&lines, "\n  %s\n    %s", what, x.describe(&next))
			}
			if s = next; !s.pass.on {
				break
			}
		}
		next, moved := x.calm(s)
		if !moved {
			break
		}
		s = next
	}
	return lines.String()
}

// step is the first thing that the process emits: the one without a fault.
func (x *explorer) step(s state) state {
	most := x.mostFaults
	x.mostFaults = 0
	defer func() { x.mostFaults = most }()
	next, first := s, true
	x.process(s, func(_ string, n state) {
		if first {
			next, first = n, false
		}
	})
	return next
}

// stuck tells what a state comes to when nothing more goes wrong, where that is
// not as it should be.
func (x *explorer) stuck(s state) string {
	var path []packed
	for range 400 {
		p := x.pack(&s)
		if x.calmed[p] {
			break
		}
		path = append(path, p)
		next, moved := x.calm(s)
		if !moved {
			if bad := x.wrongEnd(s); bad != "" {
				return bad
			}
			break
		}
		if len(path) == 400 {
			return "it never comes to rest"
		}
		s = next
	}
	for _, p := range path {
		x.calmed[p] = true
	}
	return ""
}

// wrongEnd says what is wrong with a state of rest.
func (x *explorer) wrongEnd(s state) string {
	n, which := s.live()
	if !s.api.exists {
		if n > 0 && s.did&(didOrphan|didMeddle) == 0 && !x.policy.Retain && x.promises(noLeak, &s) {
			return "a leak: gone, and one is live"
		}
		return ""
	}
	st := x.statuses.at(s.api.status)
	var end End
	x.last = &end
	for next := x.step(s); next.pass.on; {
		next = x.step(next)
	}
	x.last = nil
	if end.Verdict == Stalled {
		if x.explained(s, end.Reason) {
			return ""
		}
		return "stalled for no reason: " + end.Reason
	}
	if s.api.deleting {
		return "the deletion is stuck: " + x.endText(end)
	}
	if end.Verdict != AsWanted {
		return "not as wanted: " + x.endText(end)
	}
	c := x.claims.at(s.api.claim)
	for i, live := range which {
		t := s.out.things[i]
		if live && t.state == Present && t.content == s.api.want && st.ID == idOf(i) && n == 1 && c.Next == 0 {
			return ""
		}
	}
	if n > 1 && !x.promises(noDouble, &s) {
		return ""
	}
	return fmt.Sprintf("at rest, and not as wanted: %d live, status %q", n, st.ID)
}

// explained tells whether what people did, or the world, is reason enough.
func (x *explorer) explained(s state, reason string) bool {
	switch reason {
	case "SoldOut":
		return s.did&didSellOut != 0
	case "Failed":
		return s.did&didFail != 0
	case ReasonEnded, ReasonLost:
		n, _ := s.live()
		if n > 0 && x.claims.at(s.api.claim).Next == 0 && x.promises(noLeak, &s) { // the old one stays where its replacement ended
			return false
		}
		return n == 0 && x.anytime && x.policy.DeleteFirst || // a cancellation that landed after spec was changed back
			s.did&(didCancel|didMeddle|didRollback|didRestore|didFail) != 0
	case ReasonClaimLost:
		n, _ := s.live()
		return n == 0 && s.did&(didMeddle|didCancel|didFail|didSellOut) != 0
	case ReasonTakenOver:
		return s.did&(didForeign|didCancel) != 0
	case ReasonOutcomeUnknown:
		return x.outside.Guarantee == None
	case ReasonForeignClaim, ReasonInvalidAnnotation:
		return s.did&(didMeddle|didRestore|didNew|didAdopt|didOutcome) != 0 || x.copied
	case ReasonCannotAdopt:
		return s.did&didAdopt != 0
	case ReasonAmbiguous:
		return !x.promises(noDouble, &s)
	}
	return false
}

func TestNoInterleavingOfFaultsAndPeopleBreaksAPromise(t *testing.T) {
	t.Parallel()
	for _, s := range settings() {
		if !s.quick && !*depthAll {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			faults, acts := s.depth(uint8(*depthFaults), uint8(*depthActs))
			x, bad := explore(s, faults, acts)
			t.Logf("%s: %d states, %d transitions (%d faults, %d acts)", s.name, len(x.all), x.moves, faults, acts)
			if bad != nil {
				t.Fatal(bad)
			}
		})
	}
}
