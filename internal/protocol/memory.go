package protocol

import "time"

// Memory is what this process has learned of one object in its term, beyond what
// claim and status say. The zero Memory is that of a process that just started.
// It is a plain value: the methods return the next one.
type Memory struct {
	Claim    Claim // the last one written, or the first one read
	HasClaim bool
	Tried    Claim     // one that was sent, and whose answer was lost: it may land yet
	Read     bool      // there was a consistent read in this term; a guarded PATCH is one
	Patched  bool      // … a guarded PATCH: no write of a term before may land any more
	Met      time.Time // when the object came into view with a claim of someone else's
	Changed  time.Time // when someone else last changed the claim
	Took     time.Time // when the claim was last taken from another holder

	Fresh  bool // the claim was written on a newborn, or for a next incarnation, and no call was made with it
	Unsent bool // this attempt was written here, and no call was made with it
	Known  bool // born here, every claim on it written here, each call answered: nothing is in the air

	Attempted  bool      // whether this attempt's key is spent is known here
	Spent      bool      // … and it is
	Unanswered time.Time // when the last call without a definite answer returned
	Created    time.Time // when the last create was sent, or what brings a thing here otherwise
	Sent       int64     // generation of the last create
	Refused    int       // changes that were refused
	Corrected  int       // drift corrections in a row
	Often      bool      // it was lost with too much else, or too often: it stays so

	Rejected        string // a Terminal rejection, by reason; "" for none
	RejectedMessage string
	RejectedGen     int64
	RejectedAt      string // the reconcile-at annotation at that time

	Stood  bool // it was found as wanted once
	Walked bool // no later incarnation was live, when all were looked up

	Absent  time.Time // when a seen thing was first not found
	Missing int       // … of which incarnation

	fences [4]int     // incarnations that were fenced, the newest last
	ids    [4]learned // ids from answers and look-ups, the newest last
}

// learned is what is known of an incarnation beyond its being recorded: look-ups
// by reference lag, look-ups by id do not.
type learned struct {
	incarnation int
	id          string
}

// Learn notes the id of an incarnation's thing, as an answer or a look-up told it.
func (m Memory) Learn(incarnation int, id string) Memory {
	if incarnation == 0 || id == "" || m.id(incarnation) == id {
		return m
	}
	copy(m.ids[:], m.ids[1:])
	m.ids[len(m.ids)-1] = learned{incarnation, id}
	return m
}

// id is the newest id that was learned of an incarnation.
func (m *Memory) id(incarnation int) string {
	for i := len(m.ids) - 1; i >= 0; i-- {
		if m.ids[i].incarnation == incarnation {
			return m.ids[i].id
		}
	}
	return ""
}

func (m *Memory) fenced(incarnation int) bool {
	for _, f := range m.fences {
		if f == incarnation && f != 0 {
			return true
		}
	}
	return false
}

// Meet notes a claim that was there before this process wrote one. A rejection in
// status says that the attempt's key is spent, also when status says something
// else by the time it matters.
func (m Memory) Meet(c Claim, s Status, now time.Time) Memory {
	m.Claim, m.HasClaim, m.Met, m.Stood, m.Walked = c, true, now, false, false
	if s.Rejected != "" {
		m.Attempted, m.Spent = true, true
		m.Rejected, m.RejectedMessage, m.RejectedGen, m.RejectedAt = s.Rejected, s.RejectedMessage, s.RejectedGeneration, c.Answered.ReconcileAt
	}
	return m
}

// Trying notes a claim right before it is sent.
func (m Memory) Trying(c Claim) Memory {
	m.Tried = c
	return m
}

// Heard notes a claim that was read. One that this process sent, and took for lost,
// is its own, and nobody's hand.
func (m Memory) Heard(c Claim) Memory {
	if m.HasClaim && c != m.Claim && c == m.Tried {
		m.Claim, m.Tried, m.Fresh, m.Unsent, m.Known = c, Claim{}, false, false, false
	}
	return m
}

// Wrote notes a claim that this process wrote. before is the one it replaced, if
// there was one.
func (m Memory) Wrote(s Step, had bool, before Claim, now time.Time) Memory {
	after := s.Claim
	switch {
	case s.Birth:
		m.Fresh, m.Unsent, m.Known, m.Walked = true, true, true, true
	case had && !after.Seen && (after.Next > max(before.Next, before.Incarnation) || after.Next == 0 && before.Next == 0 && after.Incarnation > before.Incarnation):
		m.Fresh = true // the incarnation after one that was never rebuilt
	case had && before.Incarnation == after.Incarnation && before.Attempt == after.Attempt && before.Next == after.Next:
		// nothing of the life changed
	default:
		m.Fresh = false
	}
	if s.Warning == WarningClaimChanged {
		m.Changed, m.Known, m.Fresh, m.Unsent = now, false, false, false
	}
	if s.Warning == WarningHolderChanged {
		m.Took, m.Changed, m.Known, m.Fresh, m.Unsent = now, now, false, false, false
	}
	if !had || before.Attempt != after.Attempt || before.Incarnation != after.Incarnation || before.Next != after.Next {
		m.Attempted, m.Spent, m.Unsent = true, false, had || s.Birth
		m.Rejected = ""
	}
	m.Claim, m.HasClaim, m.Read, m.Patched, m.Tried = after, true, true, true, Claim{}
	return m
}

// Sending notes an effect right before it is sent.
func (m Memory) Sending(s Step, generation int64, now time.Time) Memory {
	if s.Do != Fence || s.ID == "" { // a fence of what is to be adopted is none of this incarnation
		m.Fresh = false
	}
	m.Unanswered = now // until it is answered
	switch {
	case s.Do == Create:
		m.Created, m.Sent, m.Unsent = now, generation, false
	case s.Do == Rebind && s.Incarnation != 0: // it comes to this object, as what is made does
		m.Created = now
	}
	return m
}

// Outcome is how a call ended.
type Outcome uint8

// The outcomes.
const (
	OutcomeDone     Outcome = iota
	OutcomeRejected         // Terminal: nothing took effect, and only a change of the object can help
	OutcomeNoEffect         // nothing took effect; it may be tried again
	OutcomeLater            // nothing took effect, and the server asked to come back: the key stands
	OutcomeUnknown
)

// Ended notes how the effect ended. before is the Memory as it was before Sending.
func (m Memory) Ended(s Step, o Outcome, before Memory, now time.Time) Memory {
	if o == OutcomeUnknown {
		m.Unanswered, m.Known = now, false
		return m
	}
	m.Unanswered = before.Unanswered
	if s.Do == Create && (o == OutcomeRejected || o == OutcomeNoEffect) {
		m.Attempted, m.Spent = true, true
	}
	switch {
	case o == OutcomeRejected || o == OutcomeNoEffect:
		if s.Do == Update || s.Do == Delete {
			m.Refused++
		}
	case s.Do == Fence && s.ID == "":
		if !m.fenced(s.Incarnation) {
			copy(m.fences[:], m.fences[1:])
			m.fences[len(m.fences)-1] = s.Incarnation
		}
	case s.Do == Update && o == OutcomeDone:
		m.Refused = 0
		if s.Drift {
			m.Corrected++
		} else {
			m.Corrected = 0
		}
	}
	return m
}

// Reject notes a Terminal rejection.
func (m Memory) Reject(reason, message string, generation int64, reconcileAt string) Memory {
	m.Rejected, m.RejectedMessage, m.RejectedGen, m.RejectedAt = reason, message, generation, reconcileAt
	return m
}

// Finished notes how a pass ended.
func (m Memory) Finished(e End, now time.Time) Memory {
	m.Walked = m.Walked || e.Walked
	m.Stood = m.Stood || e.Verdict == AsWanted
	switch {
	case e.Missing != 0 && (m.Absent.IsZero() || m.Missing != e.Missing):
		m.Absent, m.Missing = now, e.Missing
	case e.Missing != 0:
	case e.Verdict == AsWanted:
		m.Absent = time.Time{}
		if e.Looked {
			m.Corrected, m.Often = 0, false
		}
	case e.Live:
		m.Absent = time.Time{}
	case e.Often:
		m.Often = true
	}
	return m
}
