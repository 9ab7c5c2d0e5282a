package queue

// Lane says who waits for a key.
type Lane uint8

const (
	People     Lane = iota // what people changed, and what follows from it
	Retry                  // what failed, or asked to be seen again
	Background             // the initial list, drift polls, a status to put right
	Lanes                  // how many there are
)

// Two more rings, of keys that people wait for. Only where there is a budget.
const (
	free  = Lanes + iota // released, which calls nobody: handed out without the budget
	told                 // handed out once to tell that it waits for the endpoint
	rings = Lanes + iota
)

// lane is the one that a ring belongs to.
func (l Lane) lane() Lane {
	if l >= Lanes {
		return People
	}
	return l
}

// String is the lane's name in metrics and logs.
func (l Lane) String() string { return [...]string{"people", "retry", "background"}[l] }

// Cause says why a key is added. A stronger cause includes the weaker ones.
type Cause uint8

const (
	none    Cause = iota
	Initial       // seen in the first list: low lane
	Restore       // its status was changed by someone else: low lane, also of a stalled key
	Event         // something about it changed: waits out backoff and stall
	Related       // a watched secondary changed: waits out backoff, ends a stall
	Change        // spec changed, deletion, a person's request: ends backoff and stall
	Release       // as Change, and a hold does not stop it
)

func (c Cause) lane() Lane {
	if c >= Event {
		return People
	}
	return Background
}

func laneOf(c Cause) Lane {
	if c == none {
		return Background
	}
	return c.lane()
}
