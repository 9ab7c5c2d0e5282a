package queue

import (
	"math/rand/v2"
	"time"
)

// Kind is how a pass ended, as far as the key's next pass goes.
type Kind uint8

const (
	Done    Kind = iota // at the next change, or the poll; failures are forgotten
	After               // Delay ± 10 % later; failures are forgotten
	Backoff             // after the key's backoff, which grows
	Hold                // not before Delay, whatever happens
	Stall               // at a Change or a Related event, or the poll
	Again               // at once: the pass saw something that is no longer so
	Forget              // never, unless something is added: the object is gone
	Defer               // as if it had not been handed out, or Delay later: a call was not allowed
)

// Outcome of a pass. Poll is the drift poll's interval, used by Done and Stall;
// zero means none. Delay belongs to After, Hold and Defer. Restore belongs to Stall:
// what the pass found could not be written, and after the key's backoff it is handed
// out again for that alone, with the cause of this name.
type Outcome struct {
	Kind    Kind
	Delay   time.Duration
	Poll    time.Duration
	Restore bool
}

// Done ends the pass of a key that Get handed out, and schedules the next; what
// was added meanwhile is judged now.
func (q *Queue[K]) Done(key K, o Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[key]
	if e == nil || e.state != running {
		return
	}
	now := time.Now()
	came := e.cause
	e.state, e.cause = idle, none
	q.running--
	if q.member != nil {
		q.opts.Budget.end(&e.permit, q.opts.Counts)
	}
	q.settleLocked(e, o, now)
	if q.closed {
		return
	}
	if came != none {
		q.addLocked(e, came, now)
	}
	if e.state == idle && e.index < 0 && !e.stalled {
		q.restLocked(e, now)
	}
}

// settleLocked writes the outcome into the idle entry.
func (q *Queue[K]) settleLocked(e *entry[K], o Outcome, now time.Time) {
	e.hold, e.until = time.Time{}, time.Time{}
	if o.Kind != Defer {
		e.stalled = o.Kind == Stall
	}
	if o.Kind != Backoff && o.Kind != Hold && o.Kind != Defer && !o.Restore {
		e.failures = 0
	}
	if q.closed {
		return
	}
	switch o.Kind {
	case Defer:
		e.cause = e.given
		switch {
		case o.Delay > 0:
			q.wakeLocked(e, now.Add(jitter(o.Delay, 0.1)), e.lane.lane())
		case e.told:
			q.pushLocked(e, told, now)
		default:
			q.pushLocked(e, e.lane.lane(), now)
		}
	case Done, Stall:
		if o.Restore {
			q.backOffLocked(e, now)
			e.cause = Restore
			break
		}
		if o.Poll > 0 {
			q.wakeLocked(e, now.Add(q.poll(e, o.Poll)), Background)
		}
	case After:
		q.wakeLocked(e, now.Add(jitter(o.Delay, 0.1)), Retry)
	case Backoff:
		q.backOffLocked(e, now)
	case Hold:
		e.hold = now.Add(o.Delay)
		q.wakeLocked(e, e.hold, Retry)
	case Again:
		if at := q.floorLocked(e, now); at.After(now) {
			q.wakeLocked(e, at, Retry)
		} else {
			q.pushLocked(e, Retry, now)
		}
	}
}

func (q *Queue[K]) backOffLocked(e *entry[K], now time.Time) {
	e.failures++
	e.until = now.Add(q.backoff(e.failures))
	q.wakeLocked(e, e.until, Retry)
}

// poll jitters the interval by a tenth; the first one of a key is spread over
// the whole interval, since after a start all keys were Done at about one time.
func (q *Queue[K]) poll(e *entry[K], every time.Duration) time.Duration {
	if !e.polled {
		e.polled = true
		return time.Duration(float64(every) * (0.1 + 0.9*rand.Float64()))
	}
	return jitter(every, 0.1)
}

// backoff doubles from MinBackoff to MaxBackoff; the jitter takes up to a fifth
// off, so that the bound holds.
func (q *Queue[K]) backoff(failures int) time.Duration {
	d := q.opts.MinBackoff
	for range failures - 1 {
		if d >= q.opts.MaxBackoff/2 {
			d = q.opts.MaxBackoff
			break
		}
		d *= 2
	}
	d = min(d, q.opts.MaxBackoff)
	return time.Duration(float64(d) * (1 - 0.2*rand.Float64()))
}

// restLocked drops an entry that holds nothing but its floor, when that is over.
func (q *Queue[K]) restLocked(e *entry[K], now time.Time) {
	if !e.floor.After(now) {
		q.forgetLocked(e)
		return
	}
	q.wakeLocked(e, e.floor, Lanes)
}
