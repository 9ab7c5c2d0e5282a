package queue

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// Lane says who waits for a key.
type Lane uint8

const (
	People     Lane = iota // what people changed, and what follows from it
	Retry                  // what failed, or asked to be seen again
	Background             // the initial list, drift polls, a status to put right
	Lanes                  // how many there are
)

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

// Options configure a queue. Zero values take the defaults in brackets.
type Options struct {
	MinBackoff time.Duration // the first wait after a failure [1 s]
	MaxBackoff time.Duration // the longest [5 min]
	Aging      int           // pops from higher lanes that a lower one waits for at most [16]
	Burst      int           // changes of one key that run at once, before one a second [5]
}

func (o Options) withDefaults() Options {
	if o.MinBackoff == 0 {
		o.MinBackoff = time.Second
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = 5 * time.Minute
	}
	if o.Aging == 0 {
		o.Aging = 16
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
	lanes   [Lanes]ring[K]
	passed  [Lanes]int // pops from higher lanes since this one was served, while it had keys
	running int
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
	lane     Lane
	seq      uint32 // of the ring slot that counts; an older slot is stale
	cause    Cause  // ready: why. running or held back: what came meanwhile
	stalled  bool
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
	return q
}

// Item is a key handed out, with why and after how long.
type Item[K comparable] struct {
	Key     K
	Cause   Cause // zero for a retry or a poll
	Lane    Lane
	Waited  time.Duration // since it became ready
	Stalled bool          // its last pass ended in a Stall
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
		if cause.lane() < e.lane {
			q.pushLocked(e, cause.lane(), now)
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
		return // the retry will see it
	}
	if cause >= Change {
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
	q.pushLocked(e, cause.lane(), now)
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
	for {
		if q.closed {
			return Item[K]{}, false
		}
		if e := q.popLocked(); e != nil {
			it := Item[K]{Key: e.key, Cause: e.cause, Lane: e.lane, Waited: time.Since(e.since), Stalled: e.stalled}
			e.state, e.cause = running, none
			q.running++
			return it, true
		}
		q.wait.Wait()
	}
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
	for l := range q.lanes {
		s.Ready[l] = q.lanes[l].live
	}
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

// wakeLocked sets the entry's one timer.
func (q *Queue[K]) wakeLocked(e *entry[K], at time.Time, lane Lane) {
	e.at, e.wakeLane = at, lane
	if e.index >= 0 {
		heap.Fix(&q.timers, e.index)
	} else {
		heap.Push(&q.timers, e)
	}
	q.armLocked()
}

func (q *Queue[K]) unwakeLocked(e *entry[K]) {
	if e.index >= 0 {
		heap.Remove(&q.timers, e.index)
	}
}

func (q *Queue[K]) armLocked() {
	if len(q.timers) == 0 || q.closed {
		return
	}
	d := time.Until(q.timers[0].at)
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.tick)
	} else {
		q.timer.Reset(d)
	}
}

// tick makes ready what is due.
func (q *Queue[K]) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	now := time.Now()
	for len(q.timers) > 0 && !q.timers[0].at.After(now) {
		e := q.timers[0]
		if e.wakeLane == Lanes { // kept for its floor alone
			q.forgetLocked(e)
			continue
		}
		q.pushLocked(e, min(e.wakeLane, laneOf(e.cause)), now)
	}
	q.armLocked()
}

func laneOf(c Cause) Lane {
	if c == none {
		return Background
	}
	return c.lane()
}

func jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}
