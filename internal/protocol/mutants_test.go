package protocol

import (
	"testing"
	"time"
)

// mutant is a fault that somebody may make in the decision, or in what carries it
// out. Each must be found: a proof that cannot fail proves nothing.
type mutant struct {
	name string
	// decide stands in the place of Decide.
	decide func(View) Step
	// unwritten: the claim is not written, and the process goes on as if it were.
	unwritten bool
	// trusts: an old list is believed (contract line 4).
	trusts bool
	// send changes a call right before it is sent.
	send func(c *call, mem Memory, s state)
}

// before changes what the decision is made from.
func before(change func(*View)) func(View) Step {
	return func(v View) Step {
		change(&v)
		return Decide(v)
	}
}

// after changes what was decided.
func after(change func(View, Step) Step) func(View) Step {
	return func(v View) Step { return change(v, Decide(v)) }
}

var long = epoch.Add(-time.Hour)

// seenAs changes how what was looked at stands.
func seenAs(v *View, change func(*Look)) {
	looks := append([]Look{}, v.Looks...)
	for i := range looks {
		change(&looks[i])
	}
	v.Looks = looks
}

func mutants() []struct {
	mutant
	in string // the setting in which it must be found
} {
	type m = struct {
		mutant
		in string
	}
	return []m{
		{mutant{name: "skip the claim", unwritten: true}, "UniqueReference: wishes"},
		{mutant{name: "a reference that is new after a restart", send: func(c *call, _ Memory, s state) {
			if c.do == Create && s.term < settled {
				c.ref.inc += 3
			}
		}}, "UniqueReference: wishes"},
		{mutant{name: "a key with content in it", send: func(c *call, _ Memory, _ state) {
			if c.do == Create {
				c.attempt += 3 * (c.content.date - 1)
			}
		}}, "IdempotencyKeys: wishes"},
		{mutant{name: "a new key after an unknown outcome", send: func(c *call, mem Memory, _ state) {
			if c.do == Create && !mem.Unanswered.IsZero() {
				c.attempt++
			}
		}}, "IdempotencyKeys: wishes"},
		{mutant{name: "release on not found", decide: after(func(v View, s Step) Step {
			if v.Object.Deleting && len(v.Looks) > 0 && v.Looks[0].State == Absent {
				return v.release("", "")
			}
			return s
		})}, "LookupOnly: wishes"},
		{mutant{name: "no window after a restart", decide: before(func(v *View) {
			v.Term, v.Memory.Met = long, time.Time{}
		})}, "LookupOnly: wishes"},
		{mutant{name: "no window after a call without an answer", decide: before(func(v *View) {
			v.Memory.Unanswered, v.Memory.Created = time.Time{}, later(time.Time{}, v.Memory.Created)
			if !v.Memory.Created.IsZero() {
				v.Memory.Created = long
			}
		})}, "LookupOnly: wishes"},
		{mutant{name: "adopt a copy", decide: before(func(v *View) {
			if v.Object.OwnerLives {
				v.Claim.Name, v.Object.OwnerLives = v.Object.Name, false
			}
		})}, "a copy"},
		{mutant{name: "drop the old one early", decide: before(func(v *View) {
			seenAs(v, func(l *Look) {
				if l.Own == v.Claim.Next && l.State == Pending {
					l.State = Present
				}
			})
		})}, "UniqueReference, slow: the passenger"},
		{mutant{name: "leave a rejected attempt open", decide: after(func(v View, s Step) Step {
			if (s.Do == Fence || s.End.Reason == ReasonSettling) && v.spent() && !v.Object.Deleting && v.Claimed && v.Claim.Next == 0 {
				c := v.Claim
				c.Attempt++
				return v.write(c)
			}
			return s
		})}, "IdempotencyKeys, fenced, any time, no rejection kept: sold out"},
		{mutant{name: "trust a stale read", trusts: true}, "LookupOnly, an old list: two wishes"},
		{mutant{name: "forget an id once recorded", decide: before(func(v *View) {
			v.Memory.ids = [4]learned{}
		})}, "UniqueReference: two wishes"},
		{mutant{name: "trust a claim that someone changed", decide: before(func(v *View) {
			if v.Claimed {
				v.Memory.Claim = v.Claim
			}
		})}, "UniqueReference: hands"},
		{mutant{name: "rebuild a lost claim at once", decide: after(func(v View, s Step) Step {
			if !v.Claimed && s.Do == WriteClaim && !s.Birth {
				s.Claim, s.Birth, s.Warning = v.birth(), true, ""
			}
			return s
		})}, "LookupOnly: hands"},
		{mutant{name: "fence without looking", decide: after(func(v View, s Step) Step {
			if v.Object.Deleting && s.Do == Release {
				return s
			}
			if v.Object.Deleting && s.Do == LookUp && v.Outside.Fence {
				if f, needed := v.close(v.Claim.Incarnation, v.Claim.Incarnation); needed {
					return f
				}
				return v.release("", "")
			}
			return s
		})}, "UniqueReference, fenced, any time: wishes"},
		{mutant{name: "no second proof of absence", decide: before(func(v *View) {
			v.Memory.Absent, v.Memory.Missing = long, v.Claim.Incarnation
		})}, "LookupOnly, recreate, blind"},
		{mutant{name: "cancel the old one though the new one failed", decide: before(func(v *View) {
			if v.Claim.Next != 0 {
				seenAs(v, func(l *Look) {
					if l.Own == v.Claim.Next && l.State == Failed {
						l.State, l.Sight.Differs = Present, false
					}
				})
			}
		})}, "UniqueReference, slow: the passenger"},
		{mutant{name: "create without looking", decide: after(func(v View, s Step) Step {
			if s.Do == LookUp && s.ID == "" && !v.Object.Deleting && v.Claimed && v.Claim.Next == 0 && v.Status.ID == "" && v.Memory.Patched {
				return Step{Do: Create, Incarnation: v.Claim.Incarnation}
			}
			return s
		})}, "LookupOnly: wishes"},
		{mutant{name: "act on what is not own", decide: before(func(v *View) {
			seenAs(v, func(l *Look) {
				if l.Own == 0 && l.State.Live() {
					l.Own = v.Claim.Incarnation
				}
			})
		})}, "UniqueReference: another's id"},
		{mutant{name: "take a call without an answer for one that had no effect", decide: before(func(v *View) {
			v.Memory.Unanswered, v.Memory.Known = time.Time{}, v.Claimed
		})}, "UniqueReference: wishes"},
		{mutant{name: "release with a replacement open", decide: before(func(v *View) {
			if v.Object.Deleting {
				v.Claim.Next = 0
				v.Memory.Claim.Next = 0
			}
		})}, "UniqueReference: two wishes"},
		{mutant{name: "count on what the outside offers since today", decide: before(func(v *View) {
			v.Claim.Guarantee = v.Outside.Guarantee.String()
			v.Memory.Claim.Guarantee = v.Claim.Guarantee
		})}, "UniqueReference, LookupOnly before: an upgrade"},
		{mutant{name: "begin a replacement that is not recorded", decide: after(func(v View, s Step) Step {
			if s.Do == WriteClaim && s.Claim.Next != 0 && v.Claim.Next == 0 && v.Claimed {
				return Step{Do: Create, Incarnation: s.Claim.Next}
			}
			return s
		})}, "UniqueReference: wishes"},
	}
}

func TestEachFaultInTheDecisionIsFound(t *testing.T) {
	t.Parallel()
	all := map[string]setting{}
	for _, s := range settings() {
		all[s.name] = s
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s, ok := all[m.in]
			if !ok {
				t.Fatalf("there is no setting %q", m.in)
			}
			s.mutant = &m.mutant
			faults, acts := s.depth(2, 1)
			x, bad := explore(s, faults, acts)
			if bad == nil {
				t.Fatalf("fault %s: not found in %d states", m.name, len(x.all))
			}
			t.Logf("fault %s: found by %s after %d states", m.name, bad.invariant, bad.states)
		})
	}
}
