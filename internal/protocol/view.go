package protocol

import (
	"fmt"
	"time"
)

// Guarantee is what the outside offers.
type Guarantee uint8

// The guarantees, strongest first.
const (
	NoGuarantee Guarantee = iota // not given
	UniqueReference
	UniqueLiveReference
	IdempotencyKeys
	LookupOnly
	None
)

// String is the guarantee's name in the claim.
func (g Guarantee) String() string {
	return [...]string{"", "UniqueReference", "UniqueLiveReference", "IdempotencyKeys", "LookupOnly", "None"}[g]
}

func guaranteeNamed(name string) Guarantee {
	for g := UniqueReference; g <= None; g++ {
		if g.String() == name {
			return g
		}
	}
	return NoGuarantee
}

// protects tells whether a create that is sent twice takes effect once.
func (g Guarantee) protects() bool { return g >= UniqueReference && g <= IdempotencyKeys }

func (g Guarantee) unique() bool { return g == UniqueReference || g == UniqueLiveReference }

// State is how a thing outside stands.
type State uint8

// The states.
const (
	Unknown   State = iota // not given: a mistake of the External
	Absent                 // not there
	Closed                 // not there, and no create with this reference can take effect any more
	Pending                // there, not yet as it will be
	Present                // there
	Ended                  // was there
	Failed                 // ended, and never was Present
	Ambiguous              // several live ones
)

// String is the state's name.
func (s State) String() string {
	names := [...]string{"Unknown", "Absent", "Closed", "Pending", "Present", "Ended", "Failed", "Ambiguous"}
	if int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return names[s]
}

// Live tells whether there is something that a deletion must end.
func (s State) Live() bool { return s == Pending || s == Present }

func (s State) missing() bool { return s == Absent || s == Closed }

// Sight is one observation, reduced to what decides.
type Sight struct {
	State   State
	ID      string
	Own     int // the incarnation whose derived reference the outside tells; 0: not own
	Version string
	Replay  bool   // proves that it happened, not how it stands
	Differs bool   // not as spec says
	Replace bool   // … and it cannot be changed in place
	Refused string // why it may not be adopted; asked only where an annotation asks for it
	Reason  string
	Message string
}

// Look is a sight with the question that it answers. A look by id has an ID and no
// Incarnation; the answer of an effect has the incarnation it was sent for.
type Look struct {
	Incarnation int
	ID          string
	Answer      Action // the effect that it answers; zero for a look
	Failed      bool   // the outside could not tell
	Sight
}

// Object is what the API server says of the object.
type Object struct {
	Exists     bool
	Namespace  string
	Name       string
	UID        string
	Generation int64
	Deleting   bool
	Finalizer  bool          // ours is on it
	Age        time.Duration // against the API server's clock; negative counts as old
	OwnerLives bool          // the claim's owner is another object, alive in this controller's view
	FormerName bool          // claim or finalizer stand under a former name of this controller
}

// Ask is what people ask by annotation.
type Ask struct {
	Invalid     string // which annotation is wrong, and the remedy; "" for none
	Paused      bool
	Orphan      bool
	Adopt       string
	New         string
	Outcome     string
	ReconcileAt string
	Woken       bool // a watched secondary changed: a rejection may not hold any more
}

// Status is what status says.
type Status struct {
	ID                 string
	Recorded           bool  // the id is stored by the API server, not only in this pass's copy
	ObservedGeneration int64 //
	Done               bool  // the last pass found all as wanted
	Rejected           string
	RejectedMessage    string
	RejectedGeneration int64 // of the rejection; Rejected is "" where there is none
}

// Policy is the author's wish for one object.
type Policy struct {
	Retain      bool // at deletion the thing outside stays
	ReportDrift bool
	IgnoreDrift bool
	ObserveOnly bool
	DeleteFirst bool
	Recreate    bool
}

// Outside is what the author said of it.
type Outside struct {
	Guarantee   Guarantee
	KeyLifetime time.Duration // 0: for ever
	Fence       bool          // the External is a Fencer
	Rebind      bool          // … a Rebinder
	Adopt       bool          // objects may adopt at all
	Scope       string        // what the credentials for this object reach; "" where no Scoper tells
	Settle      time.Duration
	Losses      int // of this controller's objects, within a window
}

// View is all that a decision is made from.
type View struct {
	Now         time.Time
	Identity    Identity
	Former      []string // cluster ids that were this cluster's
	FormerNames []string // what the controller was called before
	Holder      string
	Term        time.Time // when it began
	Object      Object
	Claim       Claim
	Claimed     bool   // there is a claim annotation
	BadClaim    string // why it is none that this program may use
	Newer       bool   // … because a newer program wrote it
	Ask         Ask
	Invalid     string // what the Validator says; "" for nothing
	Status      Status
	Policy      Policy
	Outside     Outside
	Memory      Memory
	Looks       []Look    // of this pass, since the last effect, wait or newer object
	Looked      time.Time // when the first of Looks began

	first     Step // what a find or a walk needs first
	walkedAll bool // a walk came to its end
}

func (v *View) window() time.Duration { return max(v.Outside.Settle, v.Claim.Window) }

// passed tells whether a window has passed since t, by the wall clock and by the
// monotonic one. What was seen counts as of when it was seen: a pass that is held up
// between a look and what follows must not take the look for newer than it is.
func (v *View) passed(t time.Time) bool {
	w, now := v.window(), v.Now
	if len(v.Looks) > 0 && v.Looked.Before(now) {
		now = v.Looked
	}
	return now.Sub(t) >= w && now.Round(0).Sub(t.Round(0)) >= w
}

// left is how long until passed.
func (v *View) left(t time.Time) time.Duration {
	return max(v.window()-v.Now.Sub(t), v.window()-v.Now.Round(0).Sub(t.Round(0)), time.Second)
}

// unsettled is the time that a window must still pass since; false when settled.
func (v *View) unsettled() (time.Time, bool) {
	at := later(v.Term, v.Memory.Met, v.Memory.Changed)
	return at, !v.passed(at)
}

func later(ts ...time.Time) time.Time {
	var last time.Time
	for _, t := range ts {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// newborn: nothing can have been made for it yet, by anyone.
func (v *View) newborn() bool {
	o := v.Object
	return o.Generation <= 1 && o.Age >= 0 && o.Age < v.window() && !v.Claimed && !o.Finalizer && v.Status.ID == "" && !o.Deleting
}

// birth is the claim of incarnation 1 of this object.
func (v *View) birth() Claim {
	return Claim{
		V: Version, Controller: v.Identity.Controller, Cluster: v.Identity.Cluster,
		Namespace: v.Object.Namespace, Name: v.Object.Name, UID: v.Object.UID, Owner: v.Object.UID,
		Holder: v.Holder, Incarnation: 1, Attempt: 1, Guarantee: v.Outside.Guarantee.String(), Window: v.Outside.Settle,
		Scope: v.Outside.Scope, Time: v.Now.Unix(),
	}
}

// seen: this incarnation was outside, as the claim, status or an answer says.
func (v *View) seen() bool {
	return v.Claim.Seen || v.Status.ID != "" && v.Status.ID != v.Claim.ID || v.Memory.id(v.Claim.Incarnation) != ""
}

// guarantee is what counts: the outside's, or the one under which the claim's
// incarnation was last sent, where that is weaker and not closed yet. Keys protect
// until their lifetime less a window is over.
func (v *View) guarantee() Guarantee {
	g := v.Outside.Guarantee
	if was := guaranteeNamed(v.Claim.Guarantee); was > g && !v.closed(v.Claim.Incarnation) {
		g = was
	}
	if o := v.Outside; g == IdempotencyKeys && o.KeyLifetime > 0 && v.Claim.Time != 0 &&
		v.Now.Unix()-v.Claim.Time >= int64((o.KeyLifetime-v.window()).Seconds()) {
		return LookupOnly
	}
	return g
}

// guaranteeToWrite is what a claim that goes on says.
func (v *View) guaranteeToWrite(c Claim) string {
	if was := guaranteeNamed(c.Guarantee); was > v.Outside.Guarantee && c.Incarnation == v.Claim.Incarnation && !v.closed(c.Incarnation) {
		return c.Guarantee
	}
	return v.Outside.Guarantee.String()
}

// Learns is rule 10: whether the id of what was seen belongs into status. That of
// a replacement is recorded by rule 15 alone.
func (v *View) Learns(s Sight) bool {
	return s.ID != "" && s.State >= Pending && s.State != Ambiguous && v.Claim.Next == 0 && !v.Object.Deleting &&
		(s.Own == v.Claim.Incarnation || v.Outside.Guarantee == None)
}

// closed: no create of this incarnation can take effect any more.
func (v *View) closed(incarnation int) bool {
	if m := v.Memory; m.Known || m.fenced(incarnation) || v.Outside.Fence {
		return m.Known || m.fenced(incarnation) // what can be closed is not waited for: a call may land ever so late
	}
	_, flying := v.flying()
	return !flying
}

// flying tells whether a call may still take effect that lands within a window, and
// since when that window must pass.
func (v *View) flying() (time.Time, bool) {
	at := v.Memory.Unanswered
	switch since, unsettled := v.unsettled(); {
	case v.Memory.Known:
		return at, false
	case unsettled:
		return since, true
	}
	return at, !at.IsZero() && !v.passed(at)
}
