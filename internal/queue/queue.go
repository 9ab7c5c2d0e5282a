package queue

import (
	"sync"
	"time"
)

// Options configure a queue. Zero values take the defaults in brackets.
type Options struct {
	MinBackoff time.Duration // the first wait after a failure [1 s]
	MaxBackoff time.Duration // the longest [5 min]
	Aging      int           // pops from higher lanes that a lower one waits for at most [16]
	Burst      int           // changes of one key that run at once, before one a second [5]

	Budget *Budget // admits the passes; its aging stands for the queue's [none]
	Counts bool    // a pass counts as a call, also one that makes none
}

// aging is the default of Options.Aging, and a budget's.
const aging = 16

func (o Options) withDefaults() Options {
	if o.MinBackoff == 0 {
		o.MinBackoff = time.Second
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = 5 * time.Minute
	}
	if o.Aging == 0 {
		o.Aging = aging
	}
	if o.Burst == 0 {
		o.Burst = 5
	}
	return o
}

// Queue hands out keys to workers. Make one with [New]. All methods may be called
// concurrently.
type Queue[K comparable] struct {
	opts Options

	// mu guards everything below.
	mu      sync.Mutex
	wait    sync.Cond // signalled for each key that becomes ready, and at Close
	entries map[K]*entry[K]
	free    []*entry[K]
	lanes   [rings]ring[K]
	passed  [Lanes]int // pops from higher lanes since this one was served, while it had keys
	running int
	idle    int     // workers that wait
	member  *member // of the budget; nil: there is none
	timers  timers[K]
	timer   *time.Timer // fires when the first of timers is due; nil before the first use
	closed  bool
}

// state of an entry. Invariants: ready ⇔ in exactly one ring with the current
// seq; running ⇔ handed out by Get and not yet Done; an idle entry is kept only
// for a timer, a count of failures, a stall or a floor.
type state uint8

const (
	idle state = iota
	ready
	running
)

type entry[K comparable] struct {
	key      K
	state    state
	lane     Lane   // ready: the ring
	seq      uint32 // of the ring slot that counts; an older slot is stale
	cause    Cause  // ready: why. running or held back: what came meanwhile
	given    Cause  // running: why
	permit   Permit // running: the budget's. Guarded by the budget
	stalled  bool
	told     bool // running: only to tell that it waits
	polled   bool // had its first poll scheduled, which is staggered
	failures int
	since    time.Time // ready: since when
	until    time.Time // backoff: events wait for it
	hold     time.Time // a server's word: everything but Release waits for it
	floor    time.Time // theoretical time of the next change at one a second

	at       time.Time // when the timer is due; valid while index >= 0
	wakeLane Lane
	index    int // in timers, or -1
}

// New makes an empty queue. It starts no goroutine.
func New[K comparable](o Options) *Queue[K] {
	q := &Queue[K]{opts: o.withDefaults(), entries: map[K]*entry[K]{}}
	q.wait.L = &q.mu
	if o.Budget != nil {
		q.member = o.Budget.join(q.wake)
	}
	return q
}

// Item is a key handed out, with why and after how long.
type Item[K comparable] struct {
	Key     K
	Cause   Cause // zero for a retry or a poll
	Lane    Lane
	Waited  time.Duration // since it became ready
	Stalled bool          // its last pass ended in a Stall

	Permit *Permit // the budget's, until Done; nil: there is no budget
	Refuse bool    // the endpoint does not answer: nothing may be called. The pass is to say so, and ends in Defer
}

// Add queues a key for a cause. It never blocks; after Close it does nothing.
func (q *Queue[K]) Add(key K, cause Cause) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	e := q.entries[key]
	if e == nil {
		e = q.entry(key)
	}
	q.addLocked(e, cause, time.Now())
}

func (q *Queue[K]) addLocked(e *entry[K], cause Cause, now time.Time) {
	switch {
	case e.state == running:
		e.cause = max(e.cause, cause)
		return
	case e.state == ready:
		e.cause = max(e.cause, cause)
		switch l := q.ringOf(cause); {
		case e.lane == free:
		case l == free, l < e.lane.lane():
			q.pushLocked(e, l, now)
		}
		return
	case e.stalled && cause < Related && cause != Restore:
		return
	case now.Before(e.hold) && cause != Release:
		e.cause = max(e.cause, cause) // the timer is set to the end of the hold
		if cause == Change {
			e.failures = 0
		}
		return
	case now.Before(e.until) && cause < Change:
		if e.stalled {
			e.cause = max(e.cause, cause) // what is due then is more than a status to put right
		}
		return // the retry will see it
	}
	if cause >= Change {
		if now.Before(e.until) {
			q.unwakeLocked(e) // a change does not wait for the retry
		}
		e.failures, e.until = 0, time.Time{}
	}
	if cause == Change || cause == Restore { // two writers must not make a hot loop
		if at := q.floorLocked(e, now); at.After(now) {
			e.cause = max(e.cause, cause)
			q.wakeLocked(e, at, cause.lane())
			return
		}
	}
	e.cause = max(e.cause, cause)
	q.pushLocked(e, q.ringOf(cause), now)
}

func (q *Queue[K]) ringOf(c Cause) Lane {
	if c == Release && q.member != nil {
		return free
	}
	return c.lane()
}

// floorLocked counts one change and tells when it may run: at once within the
// burst, one a second after it.
func (q *Queue[K]) floorLocked(e *entry[K], now time.Time) time.Time {
	if e.index >= 0 && e.cause >= Restore {
		return e.at // a change that already waits stands for this one as well
	}
	if e.floor.Before(now) {
		e.floor = now
	}
	at := e.floor.Add(-time.Duration(q.opts.Burst-1) * time.Second)
	e.floor = e.floor.Add(time.Second)
	return at
}

func (q *Queue[K]) pushLocked(e *entry[K], lane Lane, now time.Time) {
	q.unwakeLocked(e)
	if e.state == ready {
		q.lanes[e.lane].live--
	} else {
		e.since = now
	}
	e.state, e.lane = ready, lane
	e.seq++
	q.lanes[lane].push(e)
	q.wait.Signal()
}

// Get waits for a key and hands it out; false after Close.
func (q *Queue[K]) Get() (Item[K], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if e := q.nextLocked(); e != nil {
			it := Item[K]{Key: e.key, Cause: e.cause, Lane: e.lane.lane(), Waited: time.Since(e.since), Stalled: e.stalled}
			e.state, e.cause, e.given = running, none, e.cause
			q.running++
			if q.member != nil {
				it.Permit, it.Refuse = &e.permit, e.told
			}
			return it, true
		}
		q.idle++
		q.wait.Wait()
		q.idle--
	}
	return Item[K]{}, false
}

// wake lets one worker ask the budget again.
func (q *Queue[K]) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wait.Signal()
}

// nextLocked takes the next key that may go now.
func (q *Queue[K]) nextLocked() *entry[K] {
	switch {
	case q.member == nil:
		return q.popLocked()
	case q.lanes[free].live > 0:
		e := q.lanes[free].pop()
		e.permit, e.told = Permit{member: q.member}, false
		return e
	}
	ready := q.readyLocked()
	lane, permit, verdict := q.opts.Budget.admit(q.member, ready, q.lanes[People].live, q.idle > 0)
	switch {
	case verdict == refused:
		return nil
	case lane == People && q.lanes[told].live > 0 && verdict == admitted:
		lane = told // which came before
	}
	e := q.lanes[lane].pop()
	e.permit, e.told = permit, verdict == tells
	return e
}

// readyLocked counts the keys that wait for a worker.
func (q *Queue[K]) readyLocked() (ready [Lanes]int) {
	for l := range q.lanes {
		ready[Lane(l).lane()] += q.lanes[l].live
	}
	return ready
}

// popLocked takes from the highest lane, unless a lower one has waited its share.
func (q *Queue[K]) popLocked() *entry[K] {
	pick := Lanes
	for l := range Lanes {
		if q.lanes[l].live == 0 {
			q.passed[l] = 0
			continue
		}
		if pick == Lanes || q.passed[l] >= q.opts.Aging && q.passed[l] > q.passed[pick] {
			pick = l
		}
	}
	if pick == Lanes {
		return nil
	}
	q.passed[pick] = 0
	for l := pick + 1; l < Lanes; l++ {
		if q.lanes[l].live > 0 {
			q.passed[l]++
		}
	}
	return q.lanes[pick].pop()
}

// Running tells whether the key is handed out now.
func (q *Queue[K]) Running(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	return e != nil && e.state == running
}

// Close makes every Get return at once. Keys that are handed out may still be
// Done; nothing is handed out any more. Calling it again does nothing.
func (q *Queue[K]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.member != nil && !q.closed {
		q.opts.Budget.leave(q.member)
	}
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	q.wait.Broadcast()
}

// Stats are counts at one moment.
type Stats struct {
	Ready   [Lanes]int // keys that wait for a worker
	Waiting int        // keys that wait for a time
	Running int        // keys in a pass
}

// Stats counts what the queue holds.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{Running: q.running}
	for _, e := range q.timers {
		if e.wakeLane != Lanes { // which is kept for its floor alone, and waits for nothing
			s.Waiting++
		}
	}
	s.Ready = q.readyLocked()
	return s
}

func (q *Queue[K]) entry(key K) *entry[K] {
	var e *entry[K]
	if n := len(q.free); n > 0 {
		e, q.free = q.free[n-1], q.free[:n-1]
		*e = entry[K]{key: key, seq: e.seq, index: -1} // seq goes on: a stale slot stays stale
	} else {
		e = &entry[K]{key: key, index: -1}
	}
	q.entries[key] = e
	return e
}

func (q *Queue[K]) forgetLocked(e *entry[K]) {
	q.unwakeLocked(e)
	delete(q.entries, e.key)
	var zero K
	e.key = zero
	q.free = append(q.free, e)
}
