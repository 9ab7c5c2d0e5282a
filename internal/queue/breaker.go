package queue

import (
	"math/rand/v2"
	"time"
)

// breakerState is how an endpoint is taken to be.
type breakerState uint8

const (
	closed   breakerState = iota // it answers
	open                         // it does not: nothing is sent
	halfOpen                     // one pass tries it
)

// String is the state's name in metrics.
func (s breakerState) String() string { return [...]string{"closed", "open", "half-open"}[s] }

// breaker stops what would fail. It opens when failures calls in a row had no
// answer, for callers that are not all the same one: what goes wrong with one object
// says nothing of the others.
type breaker struct {
	failures           int // in a row, that open it
	minPause, maxPause time.Duration

	state   breakerState
	run     int       // failures in a row, while closed
	first   string    // who had the first of them
	several bool      // … and another had one as well
	opened  time.Time // since when it is not closed
	pause   time.Duration
	until   time.Time // open: when it is half-open
	probing bool      // half-open: somebody has the probe, and its end will tell
}

// look moves on with the time.
func (b *breaker) look(now time.Time) {
	if b.state == open && !now.Before(b.until) {
		b.state, b.probing = halfOpen, false
	}
}

// admits tells whether a pass or a call may begin; as the probe, where it is
// half-open.
func (b *breaker) admits(now time.Time) bool {
	b.look(now)
	return b.state == closed || b.state == halfOpen && !b.probing
}

// begin is for what was admitted, and tells whether it is the probe.
func (b *breaker) begin() (probe bool) {
	b.probing = b.state == halfOpen
	return b.probing
}

// release is for a probe that ended and made no call.
func (b *breaker) release() { b.probing = false }

// succeed notes an answer. It tells whether the breaker closed by it.
func (b *breaker) succeed(probe bool) bool {
	switch {
	case b.state == closed:
		b.run = 0
	case probe: // what was sent before it opened tells nothing of now
		*b = breaker{failures: b.failures, minPause: b.minPause, maxPause: b.maxPause, opened: b.opened}
		return true
	}
	return false
}

// fail notes that there was none. It tells whether the breaker opened by it, and it
// was closed.
func (b *breaker) fail(probe bool, who string, now time.Time) bool {
	switch {
	case b.state == closed:
		if b.run == 0 {
			b.first, b.several = who, false
		}
		b.run++
		b.several = b.several || who != b.first
		if b.run < b.failures || !b.several {
			return false
		}
		b.opened, b.pause = now, b.minPause
		b.openLocked(now)
		return true
	case probe:
		b.pause = min(2*b.pause, b.maxPause)
		b.openLocked(now)
	}
	return false
}

// openLocked takes up to a fifth off the pause, so that the bound holds and those
// who share an endpoint do not try it at one time.
func (b *breaker) openLocked(now time.Time) {
	b.state, b.probing = open, false
	b.until = now.Add(time.Duration(float64(b.pause) * (1 - 0.2*rand.Float64())))
}
