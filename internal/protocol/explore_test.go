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
	moves  int
	calmed map[packed]bool
}

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
	var found *wrong
	add := func(from int32, what string, n state) {
		x.moves++
		p := x.pack(&n)
		if _, ok := x.seen[p]; ok || found != nil {
			return
		}
		at := int32(len(x.all))
		x.seen[p] = at
		x.all, x.parent, x.what = append(x.all, p), append(x.parent, from), append(x.what, what)
		before := n
		if from >= 0 {
			before = x.unpack(x.all[from])
		}
		if broken := x.broken(before, what, n); broken != "" {
			found = &wrong{broken, x.history(at), len(x.all)}
		}
	}
	add(-1, "the object is made", x.first())
	for i := int32(0); int(i) < len(x.all) && found == nil; i++ {
		s := x.unpack(x.all[i])
		to := func(what string, n state) { add(i, what, n) }
		x.process(s, to)
		x.environment(s, to)
		if found == nil {
			if stuck := x.stuck(s); stuck != "" {
				found = &wrong{stuck, x.history(i) + "\n  and from here on, without a fault:" + x.calmly(s), len(x.all)}
			}
		}
	}
	return x, found
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
		if x.promises(noDouble) && !x.replaces(stored, &s, n, which) && !x.replaces(known, &s, n, which) {
			return "two live ones"
		}
	}
	if s.released && n > 0 && !x.policy.Retain && x.promises(noLeak) {
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

// promises is PROTOCOL's table: what holds of which guarantee, and when.
func (m *model) promises(p promise) bool {
	within := !m.anytime
	switch g := m.outside.Guarantee; {
	case g == UniqueReference && p == noDouble:
		return within || m.outside.Fence || !m.policy.Recreate
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
		if n > 0 && s.did&(didOrphan|didMeddle) == 0 && !x.policy.Retain && x.promises(noLeak) {
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
		if n, _ := s.live(); n > 0 && x.promises(noLeak) {
			return false
		}
		return s.did&(didCancel|didMeddle|didRollback|didRestore|didFail) != 0
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
		return !x.promises(noDouble)
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
