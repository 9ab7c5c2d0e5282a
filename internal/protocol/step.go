package protocol

import "time"

// Action is what one step does.
type Action uint8

// The actions. Those from Create on are effects outside.
const (
	Finish     Action = iota // the pass ends, as End says
	Read                     // read the object consistently
	WriteClaim               // one guarded PATCH: Claim and finalizer
	Record                   // write the id into status now
	Release                  // one guarded PATCH: finalizer off, claim marked
	LookUp                   // by ID, or by the reference of Incarnation
	Create
	Update
	Delete
	Fence  // no create with the reference of Incarnation, or of the thing ID, any more
	Rebind // the thing ID gets the reference of Incarnation; 0: one that no object derives
)

// String is the action's name in logs and transcripts.
func (a Action) String() string {
	return [...]string{"finish", "read", "claim", "record", "release", "look", "create", "update", "delete", "fence", "rebind"}[a]
}

// Effect tells whether the step acts on the outside.
func (a Action) Effect() bool { return a >= Create }

// Step is one thing to do. The executor does it, adds what came of it to the View,
// and asks again, until a Finish.
type Step struct {
	Do          Action
	Claim       Claim  // WriteClaim, Release
	Birth       bool   // WriteClaim: on a newborn
	Incarnation int    // LookUp by reference, and the effects
	ID          string // LookUp by id, Record, and where known Update and Delete
	Sight       Sight  // Update, Delete: what was observed
	Drift       bool   // Update: nobody asked for it, the outside moved
	Recreate    bool   // WriteClaim: for what was lost
	Warning     string // an Event to emit when it is done, "" for none: reason
	Note        string // its text
	End         End
}

// Warnings that Memory acts on as well.
const (
	WarningClaimChanged     = "ClaimChanged"
	WarningClaimRebuilt     = "ClaimRebuilt"
	WarningHolderChanged    = "HolderChanged"
	WarningRecreated        = "Recreated"
	WarningRestored         = "Restored"
	WarningFinalizerRemoved = "FinalizerRemoved"
	EventOrphaned           = "Orphaned"
	EventRetained           = "Retained"
	EventLeftBehind         = "LeftBehind"
)

// Verdict is how a pass ends.
type Verdict uint8

// The verdicts.
const (
	Nothing Verdict = iota // the object is none of this controller's
	AsWanted
	Observed  // looked at and left alone: paused, or observe only
	Working   // on its way: look again, with backoff
	Waiting   // on its way: not before After
	Stalled   // until something changes
	CannotSay // the outside could not tell: the executor has the error
)

// End says how a pass ends, and what people are told.
type End struct {
	Verdict Verdict
	Reason  string
	Message string
	After   time.Duration // Waiting
	Live    bool          // something is live outside: polls go on
	Looked  bool          // AsWanted: by a look, not by the answer of an effect
	Walked  bool          // no later incarnation is live
	Missing int           // the incarnation whose absence is being proved
	Lost    bool          // what stood is over, though nobody here ended it
	Often   bool          // … with too much else, or too often: it stays so
}

func finish(verdict Verdict, reason, message string) Step {
	return Step{Do: Finish, End: End{Verdict: verdict, Reason: reason, Message: message}}
}

func stalled(reason, message string) Step { return finish(Stalled, reason, message) }

func (v *View) waiting(reason, message string, since time.Time) Step {
	s := finish(Waiting, reason, message)
	s.End.After = v.left(since)
	return s
}
