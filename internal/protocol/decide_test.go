package protocol

import (
	"strings"
	"testing"
	"time"
)

// look answers for a look-up by incarnation; missing ones are Absent.
func seeing(sights map[int]Sight) func(Step) Sight {
	return func(s Step) Sight {
		if sight, ok := sights[s.Incarnation]; ok && s.ID == "" {
			return sight
		}
		for _, sight := range sights {
			if s.ID != "" && sight.ID == s.ID {
				return sight
			}
		}
		return Sight{State: Absent}
	}
}

// decide answers look-ups and reads until there is something else to do.
func decide(t *testing.T, v View, see func(Step) Sight) (Step, int) {
	t.Helper()
	looks := 0
	for range 20 {
		s := Decide(v)
		switch s.Do {
		case LookUp:
			looks++
			v.Looks, v.Looked = append(v.Looks, Look{Incarnation: s.Incarnation, ID: s.ID, Sight: see(s)}), v.Now
		case Read:
			v.Memory.Read, v.Looks = true, nil
		default:
			return s, looks
		}
	}
	t.Fatal("it looks for ever")
	return Step{}, 0
}

// standing is a view of an object with a claim that this process has met, long
// after its term began.
func standing() View {
	v := View{
		Now: epoch, Term: epoch.Add(-time.Hour), Holder: "ns/lease",
		Identity: Identity{Controller: "d/c", Cluster: "here", Group: "g", Kind: "K"},
		Object:   Object{Exists: true, Namespace: "ns", Name: "n", UID: "u", Generation: 3, Finalizer: true, Age: time.Hour},
		Outside:  Outside{Guarantee: UniqueReference, Fence: true, Settle: time.Minute},
		Claimed:  true,
		Claim:    Claim{V: 1, Controller: "d/c", Cluster: "here", Namespace: "ns", Name: "n", UID: "u", Owner: "u", Holder: "ns/lease", Incarnation: 1, Attempt: 1},
	}
	v.Memory = Memory{}.Meet(v.Claim, v.Status, epoch.Add(-time.Hour))
	v.Memory.Patched = true
	return v
}

func newborn() View {
	v := standing()
	v.Claimed, v.Claim, v.Memory = false, Claim{}, Memory{}
	v.Object.Generation, v.Object.Finalizer, v.Object.Age = 1, false, time.Second
	return v
}

var booked = Sight{State: Present, ID: "b1", Own: 1}

// An answer to a create that says closed is no word on what stands: a late one may,
// which look-ups do not show yet.
func TestAClosedReferenceIsFencedAgainBeforeItIsGivenUp(t *testing.T) {
	t.Parallel()
	v := standing()
	v.Looks, v.Looked = []Look{{Incarnation: 1, Answer: Create, Sight: Sight{State: Closed}}}, v.Now
	v.Memory.Read = true
	if s, _ := decide(t, v, seeing(nil)); s.Do != Fence || s.Incarnation != 1 {
		t.Fatalf("after a create that is answered closed: %+v", s)
	}
	v.Looks = []Look{{Incarnation: 1, Answer: Fence, Sight: Sight{State: Closed}}}
	if s, _ := decide(t, v, seeing(nil)); s.Do != WriteClaim || s.Claim.Incarnation != 2 {
		t.Errorf("after the fence: %+v", s)
	}
}

// Status may still tell of the replacement before this one: the present one was
// never there, and is made, under its key.
func TestAReplacementIsNotGivenUpForTheEndOfOneBefore(t *testing.T) {
	t.Parallel()
	v := standing()
	v.Claim.Next, v.Claim.ID, v.Status.ID, v.Status.Recorded = 3, "b1", "b2", true
	v.Memory = v.Memory.Meet(v.Claim, v.Status, v.Now.Add(-time.Hour))
	v.Memory.Read, v.Memory.Patched = true, true
	s, _ := decide(t, v, seeing(map[int]Sight{1: {State: Ended, ID: "b1", Own: 1}, 2: {State: Ended, ID: "b2", Own: 2}}))
	if s.Do != Create || s.Incarnation != 3 {
		t.Errorf("%+v", s)
	}
}

// The value of new is always the object's own UID: it acts once each time that it
// is set.
func TestNewActsAgainWhenItWasTakenOff(t *testing.T) {
	t.Parallel()
	lost := func() View {
		v := standing()
		v.Status.ID, v.Claim.Incarnation, v.Claim.Answered.New = "b2", 2, "u"
		v.Memory = v.Memory.Meet(v.Claim, v.Status, v.Now.Add(-time.Hour))
		v.Memory.Read, v.Memory.Patched = true, true
		return v
	}
	ended := seeing(map[int]Sight{2: {State: Ended, ID: "b2", Own: 2}})
	v := lost()
	v.Ask.New = "u"
	if s, _ := decide(t, v, ended); s.Do != Finish || !s.End.Lost || !strings.Contains(s.End.Message, "take the annotation off") {
		t.Errorf("while the old answer stands: %+v", s.End)
	}
	v = lost()
	s, _ := decide(t, v, ended)
	if s.Do != WriteClaim || s.Claim.Answered.New != "" || s.Claim.Incarnation != 2 {
		t.Fatalf("when it is taken off: %+v", s)
	}
	v.Claim, v.Memory.Claim, v.Ask.New = s.Claim, s.Claim, "u"
	if s, _ := decide(t, v, ended); s.Do != Fence {
		t.Errorf("when it is set again, it closes and goes on: %+v", s)
	}
}

func TestAnObjectThatIsLostAgainAndAgainIsNotMadeAnewWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stood time.Duration // after each time that it was made
		most  int
	}{{2 * time.Minute, recreatedInARow}, {time.Hour, 20}} {
		v := standing()
		v.Policy.Recreate, v.Outside.Fence = true, false
		v.Memory.Read = true
		made := 0
		for range 20 {
			ends := seeing(map[int]Sight{v.Claim.Incarnation: {State: Ended, ID: "b", Own: v.Claim.Incarnation}})
			s, _ := decide(t, v, ends)
			if s.Do != WriteClaim || !s.Recreate {
				break
			}
			made++
			v.Memory = v.Memory.Wrote(s, true, v.Claim, v.Now)
			v.Claim, v.Looks = s.Claim, nil
			v.Memory = Memory{}.Meet(v.Claim, v.Status, v.Now) // a process after another
			v.Memory.Read, v.Memory.Patched = true, true
			v.Now = v.Now.Add(c.stood)
			v.Term = v.Now.Add(-time.Hour)
			stands := seeing(map[int]Sight{v.Claim.Incarnation: {State: Present, ID: "b", Own: v.Claim.Incarnation}})
			v.Memory.Fresh = false
			s, _ = decide(t, v, stands)
			v.Memory = v.Memory.Finished(s.End, v.Now)
			v.Looks = nil
		}
		if made != c.most {
			t.Errorf("lost each %v: made anew %d times, want %d", c.stood, made, c.most)
		}
	}
}

// Who puts the claim ahead while nobody looks loses nothing by it.
func TestAClaimAheadOfWhatStandsIsPutBackToIt(t *testing.T) {
	t.Parallel()
	v := standing()
	v.Claim.Incarnation, v.Status.ID = 7, "b1"
	v.Memory = v.Memory.Meet(v.Claim, v.Status, v.Now.Add(-time.Hour))
	v.Memory.Read = true
	if s, _ := decide(t, v, seeing(map[int]Sight{1: booked})); s.Do != WriteClaim || s.Claim.Incarnation != 1 || !s.Claim.Seen || s.Warning != WarningClaimRebuilt {
		t.Errorf("%+v", s)
	}
	v.Object.Deleting = true
	if s, _ := decide(t, v, seeing(map[int]Sight{1: booked})); s.Do != Delete || s.ID != "b1" {
		t.Errorf("being deleted: %+v", s)
	}
}

func TestWhatIsLeftAtAReleaseIsTold(t *testing.T) {
	t.Parallel()
	v := standing()
	v.Status.ID, v.Object.Deleting = "b1", true
	v.Memory = v.Memory.Meet(v.Claim, v.Status, v.Now.Add(-time.Hour))
	v.Memory.Read, v.Outside.Fence = true, false
	v.Memory.Absent, v.Memory.Missing = v.Now.Add(-time.Hour), 1
	anothers := func(s Step) Sight {
		if s.ID == "b1" {
			return Sight{State: Present, ID: "b1"}
		}
		return Sight{State: Absent}
	}
	if s, _ := decide(t, v, anothers); s.Do != Release || s.Warning != EventLeftBehind || !strings.Contains(s.Note, "b1") {
		t.Errorf("%+v", s)
	}
}

func TestASpecThatIsChangedBackWaitsForACancellation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*View)
		waits  bool
	}{
		{"a cancellation without an answer", func(v *View) { v.Memory.Unanswered = v.Now.Add(-time.Second) }, true},
		{"a process that just began", func(v *View) { v.Term = v.Now.Add(-time.Second) }, true},
		{"a window later", func(v *View) { v.Memory.Unanswered = v.Now.Add(-time.Hour) }, false},
	} {
		v := standing()
		v.Policy.DeleteFirst = true
		v.Claim.Next, v.Claim.ID = 2, "b1"
		v.Memory = v.Memory.Meet(v.Claim, v.Status, v.Now.Add(-time.Hour))
		c.change(&v)
		s, _ := decide(t, v, seeing(map[int]Sight{1: booked}))
		if waits := s.Do == Finish && s.End.Verdict == Waiting && s.End.Live; waits != c.waits {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

func TestEachRuleDecidesWhatItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		view   View
		change func(*View)
		sights map[int]Sight
		do     Action
		reason string // of the End, or the warning of a step
		check  func(Step) bool
	}{
		{name: "1 not there", view: standing(), change: func(v *View) { v.Object.Exists = false }, do: Finish},
		{name: "1 released", view: standing(), change: func(v *View) { v.Object.Deleting, v.Object.Finalizer, v.Claim.Released = true, false, true }, do: Finish},
		{name: "1 released, says someone", view: standing(), change: func(v *View) { v.Object.Deleting, v.Claim.Released = true, true }, sights: map[int]Sight{1: booked}, do: Delete},
		{name: "1 deleted and nothing of ours", view: newborn(), change: func(v *View) { v.Object.Deleting = true }, do: Finish},
		{name: "2 orphan", view: standing(), change: func(v *View) { v.Object.Deleting, v.Ask.Orphan = true, true }, do: Release, reason: EventOrphaned},
		{name: "2 orphan of a claim that cannot be read", view: standing(), change: func(v *View) { v.Object.Deleting, v.Ask.Orphan, v.BadClaim = true, true, "x" }, do: Release, reason: EventOrphaned},
		{name: "2 observe only", view: standing(), change: func(v *View) { v.Object.Deleting, v.Policy.ObserveOnly = true, true }, do: Release, reason: EventOrphaned},
		{name: "2 orphan while it lives is nothing", view: newborn(), change: func(v *View) { v.Ask.Orphan = true }, do: WriteClaim},
		{name: "2 invalid annotation", view: newborn(), change: func(v *View) { v.Ask.Invalid = "x" }, do: Finish, reason: ReasonInvalidAnnotation},
		{name: "3 paused", view: newborn(), change: func(v *View) { v.Ask.Paused = true }, do: Finish, reason: ReasonPaused},
		{name: "3 paused and deleted waits", view: standing(), change: func(v *View) { v.Ask.Paused, v.Object.Deleting = true, true }, do: Finish, reason: ReasonPaused},
		{name: "3 invalid and unclaimed", view: newborn(), change: func(v *View) { v.Invalid = "bad spec" }, do: Finish, check: func(s Step) bool { return s.End.Verdict == Stalled && s.End.Message == "bad spec" }},
		{name: "5 unreadable", view: standing(), change: func(v *View) { v.BadClaim = "x" }, do: Finish, reason: ReasonInvalidClaim},
		{name: "5 newer", view: standing(), change: func(v *View) { v.BadClaim, v.Newer = "x", true }, do: Finish, reason: ReasonNewerClaim},
		{name: "6 another cluster's, of this very object", view: standing(), change: func(v *View) { v.Claim.Cluster = "there" }, do: Finish, reason: ReasonClusterIDChanged},
		{name: "6 a former id of this cluster", view: standing(), change: func(v *View) { v.Claim.Cluster, v.Former = "there", []string{"there"}; v.Memory = Memory{} }, sights: map[int]Sight{1: booked}, do: Finish, check: func(s Step) bool { return s.End.Verdict == AsWanted }},
		{name: "6 a cluster restored elsewhere", view: standing(), change: func(v *View) { v.Claim.Cluster, v.Claim.Owner = "there", "other" }, do: Finish, reason: ReasonForeignClaim},
		{name: "6 another name's", view: standing(), change: func(v *View) { v.Claim.Name = "other" }, do: Finish, reason: ReasonForeignClaim},
		{name: "6 another namespace's", view: standing(), change: func(v *View) { v.Claim.Namespace = "other" }, do: Finish, reason: ReasonForeignClaim},
		{name: "6 another controller's", view: standing(), change: func(v *View) { v.Claim.Controller = "d/other" }, do: Finish, reason: ReasonForeignClaim},
		{name: "6 … and a person says new", view: standing(), change: func(v *View) { v.Claim.Name, v.Claim.UID, v.Ask.New = "other", "w", "w"; v.Object.Finalizer = false }, do: WriteClaim, check: func(s Step) bool { return s.Claim.Name == "n" && s.Claim.UID == "u" && s.Claim.Answered.New == "w" }},
		{name: "6 … or something else", view: standing(), change: func(v *View) { v.Claim.Name, v.Claim.UID, v.Ask.New = "other", "w", "x" }, do: Finish, reason: ReasonForeignClaim},
		{name: "6 a copy", view: standing(), change: func(v *View) {
			v.Claim.Owner, v.Claim.UID, v.Claim.Name, v.Object.OwnerLives, v.Object.Finalizer = "other", "other", "other", true, false
		}, do: WriteClaim, check: func(s Step) bool {
			return s.Claim.UID == "u" && s.Claim.Owner == "u" && s.Claim.Name == "n" && !s.Birth
		}},
		{name: "7 a restore", view: standing(), change: func(v *View) { v.Claim.Owner, v.Claim.UID = "old", "old"; v.Memory = Memory{} }, do: WriteClaim, reason: WarningRestored, check: func(s Step) bool { return s.Claim.Owner == "u" && s.Claim.UID == "old" && s.Claim.Seen }},
		{name: "7 another holder", view: standing(), change: func(v *View) { v.Claim.Holder = "ns/old"; v.Memory = Memory{} }, do: WriteClaim, reason: WarningHolderChanged, check: func(s Step) bool { return s.Claim.Holder == "ns/lease" }},
		{name: "7 … again within a window", view: standing(), change: func(v *View) { v.Claim.Holder, v.Memory.Took = "ns/old", epoch.Add(-time.Second) }, do: Finish, reason: ReasonTwoControllers},
		{name: "8 newborn", view: newborn(), do: WriteClaim, check: func(s Step) bool { return s.Birth && s.Claim.Incarnation == 1 && s.Claim.UID == "u" }},
		{name: "8 changed: put back", view: standing(), change: func(v *View) { v.Claim.Attempt = 7 }, do: WriteClaim, reason: WarningClaimChanged, check: func(s Step) bool { return s.Claim.Attempt == 1 }},
		{name: "8 removed: put back", view: standing(), change: func(v *View) { v.Claimed, v.Claim = false, Claim{} }, do: WriteClaim, reason: WarningClaimChanged},
		{name: "8 none, not newborn, before a window", view: newborn(), change: func(v *View) { v.Object.Age, v.Term = time.Hour, epoch.Add(-time.Second) }, do: Finish, reason: ReasonSettling, check: func(s Step) bool { return s.End.After == 59*time.Second }},
		{name: "8 none, not newborn, settled", view: newborn(), change: func(v *View) { v.Object.Age = time.Hour }, do: WriteClaim, check: func(s Step) bool { return !s.Birth && !s.Claim.Seen }},
		{name: "8 … and something stands", view: newborn(), change: func(v *View) { v.Object.Age = time.Hour }, sights: map[int]Sight{2: {State: Present, ID: "b2", Own: 2}}, do: WriteClaim, reason: WarningClaimRebuilt, check: func(s Step) bool { return s.Claim.Incarnation == 2 && s.Claim.Seen }},
		{name: "8 … and two stand", view: newborn(), change: func(v *View) { v.Object.Age = time.Hour }, sights: map[int]Sight{1: booked, 2: {State: Present, ID: "b2", Own: 2}}, do: WriteClaim, reason: WarningClaimRebuilt, check: func(s Step) bool { return s.Claim.Incarnation == 1 && s.Claim.Next == 2 && s.Claim.ID == "b1" }},
		{name: "8 finalizer removed", view: standing(), change: func(v *View) { v.Object.Finalizer = false }, do: WriteClaim, check: func(s Step) bool { return s.Claim == standing().Claim && s.Warning == WarningFinalizerRemoved }},
		{name: "8 lost", view: newborn(), change: func(v *View) { v.Object.Age, v.Object.Finalizer = time.Hour, true }, do: Finish, reason: ReasonClaimLost},
		{name: "9 adopt", view: standing(), change: func(v *View) { v.Ask.Adopt = "b9" }, do: Finish, reason: ReasonCannotAdopt},
		{name: "11 another's thing", view: standing(), change: func(v *View) { v.Status.ID = "b9" }, sights: map[int]Sight{99: {State: Present, ID: "b9"}}, do: Finish, reason: ReasonTakenOver},
		{name: "11 … and a person has another one made", view: standing(), change: func(v *View) { v.Status.ID, v.Ask.New, v.Memory.Known = "b9", "u", true }, sights: map[int]Sight{99: {State: Present, ID: "b9"}}, do: WriteClaim, check: func(s Step) bool {
			return s.Claim.Incarnation == 2 && s.Claim.ID == "b9" && s.Claim.Answered.New == "u"
		}},
		{name: "11 … not before this one is closed", view: standing(), change: func(v *View) { v.Status.ID, v.Ask.New, v.Term = "b9", "u", epoch }, sights: map[int]Sight{99: {State: Present, ID: "b9"}}, do: Fence},
		{name: "11 somebody has changed the claim's uid", view: standing(), change: func(v *View) { v.Status.ID, v.Claim.UID = "b9", "x"; v.Memory.Claim = v.Claim }, sights: map[int]Sight{99: {State: Present, ID: "b9"}}, do: Finish, reason: ReasonTakenOver, check: func(s Step) bool {
			return strings.Contains(s.End.Message, `d/c.new=x`) && strings.Contains(s.End.Message, "drop the claim")
		}},
		{name: "11 … and a person drops it", view: standing(), change: func(v *View) {
			v.Status.ID, v.Claim.UID, v.Ask.New, v.Memory.Known = "b9", "x", "x", true
			v.Memory.Claim = v.Claim
		}, sights: map[int]Sight{99: {State: Present, ID: "b9"}}, do: WriteClaim, reason: WarningClaimRebuilt, check: func(s Step) bool {
			return s.Claim.UID == "u" && s.Claim.Incarnation == 1 && s.Claim.Seen && s.Claim.Answered.New == "x"
		}},
		{name: "11 … beside the own one", view: standing(), change: func(v *View) { v.Status.ID = "b9" }, sights: map[int]Sight{1: booked, 99: {State: Present, ID: "b9"}}, do: Finish, check: func(s Step) bool { return s.End.Verdict == AsWanted }},
		{name: "11 several", view: standing(), sights: map[int]Sight{1: {State: Ambiguous, Own: 1}}, do: Finish, reason: ReasonAmbiguous},
		{name: "12 no guarantee", view: standing(), change: func(v *View) { v.Outside.Guarantee = None }, do: Finish, reason: ReasonOutcomeUnknown},
		{name: "13 known and nothing sent", view: standing(), change: func(v *View) { v.Object.Deleting, v.Memory.Known = true, true }, do: Release},
		{name: "13 retain", view: standing(), change: func(v *View) { v.Object.Deleting, v.Policy.Retain = true, true }, do: Release, reason: EventRetained},
		{name: "13 retain, and nothing stands", view: standing(), change: func(v *View) {
			v.Object.Deleting, v.Policy.Retain, v.Outside.Rebind, v.Memory.Known, v.Memory.Created = true, true, true, true, epoch
		}, sights: map[int]Sight{1: {State: Ended, ID: "b1", Own: 1}}, do: Release, check: func(s Step) bool { return s.Warning == "" }},
		{name: "13 live", view: standing(), change: func(v *View) { v.Object.Deleting = true }, sights: map[int]Sight{1: booked}, do: Delete},
		{name: "13 ended, and not closed", view: standing(), change: func(v *View) { v.Object.Deleting, v.Term = true, epoch }, sights: map[int]Sight{1: {State: Ended, ID: "b1", Own: 1}}, do: Fence},
		{name: "13 ended, not closed, no fence", view: standing(), change: func(v *View) { v.Object.Deleting, v.Outside.Fence, v.Term = true, false, epoch }, sights: map[int]Sight{1: {State: Ended, ID: "b1", Own: 1}}, do: Finish, reason: ReasonSettling},
		{name: "13 the old one is cancelled, and next is known and not looked at again", view: standing(), change: func(v *View) {
			v.Object.Deleting, v.Claim.Next, v.Claim.ID, v.Term = true, 2, "b1", epoch
			v.Memory = v.Memory.Learn(1, "b1").Learn(2, "b2")
			v.Memory.Claim, v.Memory.Read = v.Claim, true
			v.Looks, v.Looked = []Look{{Incarnation: 1, Answer: Delete, Sight: Sight{State: Ended, ID: "b1", Own: 1}}}, v.Now
		}, sights: map[int]Sight{2: {State: Present, ID: "b2", Own: 2}}, do: Fence, check: func(s Step) bool { return s.Incarnation == 1 }},
		{name: "13 seen and not found", view: standing(), change: func(v *View) { v.Object.Deleting, v.Status.ID = true, "b1" }, do: Finish, reason: ReasonVerifyingAbsence},
		{name: "14 rejected", view: standing(), change: func(v *View) { v.Status.Rejected, v.Status.RejectedGeneration = "SoldOut", 3 }, do: Finish, reason: "SoldOut"},
		{name: "14 of another generation", view: standing(), change: func(v *View) { v.Status.Rejected, v.Status.RejectedGeneration = "SoldOut", 2 }, do: WriteClaim, check: func(s Step) bool { return s.Claim.Attempt == 2 }},
		{name: "14 a secondary changed", view: standing(), change: func(v *View) {
			v.Status.Rejected, v.Status.RejectedGeneration, v.Ask.Woken = "SoldOut", 3, true
		}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Attempt == 2 }},
		{name: "14 reconcile-at", view: standing(), change: func(v *View) {
			v.Status.Rejected, v.Status.RejectedGeneration, v.Ask.ReconcileAt = "SoldOut", 3, "now"
		}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Answered.ReconcileAt == "now" }},
		{name: "15 two for one: replace", view: standing(), sights: map[int]Sight{1: {State: Present, ID: "b1", Own: 1, Differs: true, Replace: true}}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Next == 2 && s.Claim.ID == "b1" && s.Claim.Incarnation == 1 }},
		{name: "16 fresh", view: standing(), change: func(v *View) { v.Memory.Fresh, v.Memory.Read = true, true }, do: Create},
		{name: "17 later", view: standing(), change: func(v *View) { v.Outside.Fence = false }, sights: map[int]Sight{2: {State: Present, ID: "b2", Own: 2}}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Incarnation == 2 && s.Claim.Next == 0 && s.Claim.Seen }},
		{name: "17 … beside this one", view: standing(), sights: map[int]Sight{1: booked, 2: {State: Present, ID: "b2", Own: 2}}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Incarnation == 1 && s.Claim.Next == 2 && s.Claim.ID == "b1" }},
		{name: "17 … and this one not closed", view: standing(), change: func(v *View) { v.Term = epoch }, sights: map[int]Sight{2: {State: Present, ID: "b2", Own: 2}}, do: Fence},
		{name: "18 pending", view: standing(), sights: map[int]Sight{1: {State: Pending, ID: "b1", Own: 1}}, do: Finish, reason: ReasonPending},
		{name: "18 differs", view: standing(), sights: map[int]Sight{1: {State: Present, ID: "b1", Own: 1, Differs: true}}, do: Update},
		{name: "18 drift to report", view: standing(), change: func(v *View) {
			v.Policy.ReportDrift, v.Status.Done, v.Status.ObservedGeneration = true, true, 3
		}, sights: map[int]Sight{1: {State: Present, ID: "b1", Own: 1, Differs: true}}, do: Finish, reason: ReasonDiffers},
		{name: "18 … not for a new generation", view: standing(), change: func(v *View) {
			v.Policy.ReportDrift, v.Status.Done, v.Status.ObservedGeneration = true, true, 2
		}, sights: map[int]Sight{1: {State: Present, ID: "b1", Own: 1, Differs: true}}, do: Update},
		{name: "18 corrections that do not stick", view: standing(), change: func(v *View) {
			v.Memory.Corrected, v.Status.Done, v.Status.ObservedGeneration = 3, true, 3
		}, sights: map[int]Sight{1: {State: Present, ID: "b1", Own: 1, Differs: true}}, do: Finish, reason: ReasonPerpetualDiff},
		{name: "19 closed", view: standing(), sights: map[int]Sight{1: {State: Closed}}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Incarnation == 2 && s.Claim.Attempt == 1 }},
		{name: "20 absent, never seen", view: standing(), do: Create},
		{name: "20 … by a guarded PATCH first", view: standing(), change: func(v *View) { v.Memory.Patched = false }, do: WriteClaim, check: func(s Step) bool { return s.Claim.Term == epoch.Add(-time.Hour).UnixNano() }},
		{name: "20 … look-ups only, before a window", view: standing(), change: func(v *View) { v.Outside.Guarantee, v.Term = LookupOnly, epoch }, do: Finish, reason: ReasonSettling},
		{name: "20 … the claim was just changed", view: standing(), change: func(v *View) { v.Memory.Changed = epoch.Add(-time.Second) }, do: Finish, reason: ReasonSettling},
		{name: "21 failed now", view: standing(), change: func(v *View) { v.Status.ObservedGeneration = 3 }, sights: map[int]Sight{1: {State: Failed, ID: "b1", Own: 1}}, do: Finish, reason: "Failed"},
		{name: "21 failed before", view: standing(), change: func(v *View) { v.Status.ObservedGeneration, v.Memory.Known = 2, true }, sights: map[int]Sight{1: {State: Failed, ID: "b1", Own: 1}}, do: WriteClaim, check: func(s Step) bool { return s.Claim.Incarnation == 2 && s.Claim.ID == "b1" }},
		{name: "21 ended", view: standing(), sights: map[int]Sight{1: {State: Ended, ID: "b1", Own: 1}}, do: Finish, reason: ReasonEnded},
		{name: "21 gone", view: standing(), change: func(v *View) { v.Status.ID = "b1" }, do: Finish, reason: ReasonVerifyingAbsence},
		{name: "21 gone for a window", view: standing(), change: func(v *View) { v.Status.ID, v.Memory.Absent, v.Memory.Missing = "b1", epoch.Add(-2*time.Minute), 1 }, do: Finish, reason: ReasonLost},
	} {
		v := c.view
		if c.change != nil {
			c.change(&v)
		}
		if v.Status.Rejected != "" {
			v.Memory = Memory{}.Meet(v.Claim, v.Status, v.Now.Add(-time.Hour))
		}
		s, _ := decide(t, v, seeing(c.sights))
		reason := s.End.Reason
		if s.Do != Finish {
			reason = s.Warning
		}
		if s.Do != c.do || reason != c.reason && c.reason != "" || c.check != nil && !c.check(s) {
			t.Errorf("%s: got %s %q %+v", c.name, s.Do, reason, s)
		}
	}
}

func TestARuleThatCannotTellEndsThePassWhateverFollows(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*View){
		"wanted": func(*View) {}, "being deleted": func(v *View) { v.Object.Deleting = true },
		"by id": func(v *View) { v.Status.ID = "b1" }, "replacing": func(v *View) { v.Claim.Next = 2; v.Memory.Claim.Next = 2 },
	} {
		v := standing()
		change(&v)
		s := Decide(v)
		if s.Do != LookUp {
			t.Errorf("%s: %s before a look", name, s.Do)
			continue
		}
		v.Looks = []Look{{Incarnation: s.Incarnation, ID: s.ID, Failed: true}}
		if s = Decide(v); s.Do != Finish || s.End.Verdict != CannotSay {
			t.Errorf("%s: %s %+v", name, s.Do, s.End)
		}
	}
}

func TestTheConsistentReadComesBeforeTheFirstEffectOfATerm(t *testing.T) {
	t.Parallel()
	v := standing()
	v.Looks = []Look{{Incarnation: 1, Sight: Sight{State: Present, ID: "b1", Own: 1, Differs: true}}, {Incarnation: 2, Sight: Sight{State: Absent}}, {Incarnation: 3, Sight: Sight{State: Absent}}}
	if s := Decide(v); s.Do != Read {
		t.Fatalf("%s before a read", s.Do)
	}
	v.Memory.Read = true
	if s := Decide(v); s.Do != Update {
		t.Fatalf("%s after it", s.Do)
	}
}

func TestAClaimThatIsNoneIsNamed(t *testing.T) {
	t.Parallel()
	const good = `{"v":1,"controller":"d/c","cluster":"x","name":"n","uid":"u","owner":"u","incarnation":1,"attempt":1,"guarantee":"","window":"1m0s"}`
	if _, err := ParseClaim(good); err != nil {
		t.Fatal(err)
	}
	for replace, want := range map[[2]string]string{
		{good, ""}:                                   "not a JSON object",
		{good, "nonsense"}:                           "not a JSON object",
		{`"v":1`, `"v":0`}:                           `"v"`,
		{`"v":1`, `"v":9`}:                           "newer",
		{`"incarnation":1`, `"incarnation":0`}:       `"incarnation"`,
		{`"incarnation":1`, `"incarnation":100001`}:  `"incarnation"`,
		{`"attempt":1`, `"attempt":-1`}:              `"attempt"`,
		{`"attempt":1`, `"attempt":1,"next":900000`}: `"next"`,
		{`"attempt":1`, `"attempt":1,"next":1`}:      `"next"`,
		{`"uid":"u"`, `"uid":""`}:                    `"uid"`,
		{`"window":"1m0s"`, `"window":"long"`}:       `"window"`,
		{`"window":"1m0s"`, `"window":"-1s"`}:        `"window"`,
		{`"window":"1m0s"`, `"window":"168h0m1s"`}:   `at most 168h0m0s`,
		{`"window":"1m0s"`, `"time":"yesterday"`}:    `"time"`,
		{`"incarnation":1`, `"incarnation":"many"`}:  "incarnation",
	} {
		_, err := ParseClaim(strings.Replace(good, replace[0], replace[1], 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s → %s: %v, want %q in it", replace[0], replace[1], err, want)
		}
	}
}

func TestAClaimThatIsNotOwnIsNeverPutBack(t *testing.T) {
	t.Parallel()
	v := standing()
	right := v.Claim
	v.Claim.Name = "another"
	v.Memory = Memory{}.Meet(v.Claim, v.Status, v.Term) // it was first read so
	if s, _ := decide(t, v, seeing(nil)); s.Do != Finish || s.End.Reason != ReasonForeignClaim {
		t.Fatalf("a foreign claim: %s, %q", s.Do, s.End.Reason)
	}
	// A person puts it right, or takes it off.
	v.Claim = right
	if s, _ := decide(t, v, seeing(map[int]Sight{1: booked})); s.Do != Finish || s.End.Verdict != AsWanted {
		t.Errorf("put right: %s, %q", s.Do, s.End.Reason)
	}
	v.Claimed, v.Claim = false, Claim{}
	if s, _ := decide(t, v, seeing(map[int]Sight{1: booked})); s.Do != WriteClaim || s.Claim.Name != "n" || s.Warning != WarningClaimRebuilt {
		t.Errorf("taken off: %s %+v, %q", s.Do, s.Claim, s.Warning)
	}
}

func TestADeletionOfWhatIsKnownLooksOnce(t *testing.T) {
	t.Parallel()
	v := standing()
	v.Object.Deleting, v.Status.ID = true, "b1"
	v.Memory.Known, v.Memory.Created, v.Memory.Read = true, epoch.Add(-time.Minute), true
	if s, looks := decide(t, v, seeing(map[int]Sight{1: booked})); s.Do != Delete || looks != 1 {
		t.Errorf("%s after %d looks", s.Do, looks)
	}
}
