package queue

import (
	"context"
	"fmt"
	"time"
)

// Deferral is why a call may not be made now, and after how long it is worth asking
// again. Nothing was sent.
type Deferral struct {
	Endpoint bool // it does not answer; else it is the budget
	Since    time.Time
	After    time.Duration
	Cause    error // of the context that ended; nil for none
}

// Error says why.
func (d *Deferral) Error() string {
	switch {
	case d.Cause != nil:
		return fmt.Sprintf("the call was not made: %v", d.Cause)
	case d.Endpoint:
		return fmt.Sprintf("the call was not made: the endpoint does not answer since %s", d.Since.UTC().Format(time.RFC3339))
	}
	return "the call was not made: the endpoint's budget is used up for longer than the pass may take"
}

// Unwrap is the context's cause.
func (d *Deferral) Unwrap() error { return d.Cause }

// Enter is asked before each call. It takes the permit's token, else the next one
// there is, and waits for it: until ctx ends, the permit's queue is closed, or at
// most until by, where that is given. Who gets nil makes the call, and then [Exit]s.
func (b *Budget) Enter(ctx context.Context, p *Permit, by time.Time) *Deferral {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if d := b.refusesLocked(p, now); d != nil {
		return d
	}
	p.called = true
	if p.token {
		p.token = false
		return nil
	}
	wait := b.bucket.wait(now)
	if wait > 0 && !by.IsZero() && now.Add(wait).After(by) {
		return &Deferral{After: wait}
	}
	b.bucket.take()
	if wait == 0 {
		return nil
	}
	if d := b.waitLocked(ctx, p.member, wait); d != nil {
		b.bucket.putBack()
		b.armLocked(time.Now())
		return d
	}
	if d := b.refusesLocked(p, time.Now()); d != nil { // it opened meanwhile
		b.bucket.putBack()
		return d
	}
	return nil
}

// waitLocked waits without the lock.
func (b *Budget) waitLocked(ctx context.Context, m *member, wait time.Duration) *Deferral {
	b.mu.Unlock()
	defer b.mu.Lock()
	var closed chan struct{} // nil: of no queue
	if m != nil {
		closed = m.closed
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-closed:
		return &Deferral{After: wait}
	case <-ctx.Done():
		return &Deferral{After: wait, Cause: context.Cause(ctx)}
	}
}

// refusesLocked tells whether the endpoint is not to be called. A call may become
// the probe.
func (b *Budget) refusesLocked(p *Permit, now time.Time) *Deferral {
	if !p.probe && !b.breaker.admits(now) {
		return b.awayLocked(now)
	}
	p.probe = p.probe || b.breaker.begin()
	return nil
}

// Away is why nothing may be called while the endpoint does not answer.
func (b *Budget) Away() *Deferral {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.awayLocked(time.Now())
}

func (b *Budget) awayLocked(now time.Time) *Deferral {
	return &Deferral{Endpoint: true, Since: b.breaker.opened, After: max(b.breaker.until.Sub(now), b.breaker.minPause)}
}

// Answer is what the end of a call tells of the endpoint.
type Answer uint8

// The answers.
const (
	NoWord   Answer = iota // nothing: the call was cancelled, or what failed was here
	Healthy                // it answered; a refusal is an answer
	TooMany                // it answered, and asks for fewer calls
	Failed                 // it did not answer, or not in time
	FewerToo               // as Failed, and it asks for fewer calls
)

// Moves are what changed by an answer.
type Moves struct {
	Slowed, Restored bool          // below the full rate for the first time, and at it again
	Opened, Closed   bool          // the breaker
	After            time.Duration // Closed: how long it was not
}

// Exit tells of the end of a call. who made it is asked where it failed.
func (b *Budget) Exit(p *Permit, a Answer, who string) (moves Moves) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if a == TooMany || a == FewerToo {
		moves.Slowed = b.bucket.slow(now)
	}
	switch a {
	case Healthy, TooMany:
		if b.breaker.succeed(p.probe) {
			b.bucket.restart(now)
			moves.Closed, moves.After = true, now.Sub(b.breaker.opened)
		}
		if a == Healthy {
			moves.Restored = b.bucket.quicken(now)
		}
		p.probe = false
	case Failed, FewerToo:
		moves.Opened = b.breaker.fail(p.probe, who, now)
		p.probe = false
	}
	b.armLocked(now)
	return moves
}
