package queue

import (
	"sync"
	"time"
)

// BudgetOptions configure a budget. There are no defaults here.
type BudgetOptions struct {
	Rate               float64       // calls a second
	Burst              int           // calls at once
	Failures           int           // in a row, until nothing is sent
	MinPause, MaxPause time.Duration // … before one pass tries again
}

// Budget is what one endpoint outside can bear. Queues share it: where its tokens
// are few, or the endpoint does not answer, keys wait in their queues, and who goes
// first is decided over all of them, by lane and with the same aging as in one.
// Calls that a pass makes beyond its first go before any new pass.
//
// It starts no goroutine, and has a timer only while somebody waits. All methods may
// be called concurrently.
type Budget struct {
	// mu guards everything below. It is taken after a queue's, never before it.
	mu      sync.Mutex
	bucket  bucket
	breaker breaker
	members []*member
	served  uint64 // admissions so far
	timer   *time.Timer
}

// Permit is what a pass was admitted with: a token that no call has used yet, and
// whether it is the probe. The zero Permit is that of somebody who was not.
type Permit struct {
	token, probe, called bool
	member               *member
}

// NewBudget makes a budget of which nothing is used.
func NewBudget(o BudgetOptions) *Budget {
	return &Budget{
		bucket:  newBucket(o.Rate, o.Burst),
		breaker: breaker{failures: o.Failures, minPause: o.MinPause, maxPause: o.MaxPause},
	}
}

// armLocked sets the timer to when the first in line may go: at once, where it may
// go now. Whoever waits is woken by it alone, so that no queue's lock is taken while
// another's is held.
func (b *Budget) armLocked(now time.Time) {
	first, _ := b.firstLocked()
	b.breaker.look(now)
	if first == nil || b.breaker.state == halfOpen && b.breaker.probing { // the end of the probe comes here
		if b.timer != nil {
			b.timer.Stop()
		}
		return
	}
	d := b.bucket.wait(now)
	if b.breaker.state == open {
		d = max(d, b.breaker.until.Sub(now))
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(d, b.tick)
	} else {
		b.timer.Reset(d)
	}
}

// tick wakes the first in line, which arms the timer again when it asks.
func (b *Budget) tick() {
	b.mu.Lock()
	now := time.Now()
	first, _ := b.firstLocked()
	if first != nil && (!b.breaker.admits(now) || b.bucket.wait(now) > 0) { // it was armed for an earlier state
		b.armLocked(now)
		first = nil
	}
	b.mu.Unlock()
	if first != nil {
		first.wake()
	}
}

// end is for the end of a pass: a token that no call used goes back, unless the pass
// itself counts as a call, and a probe that told nothing is for the next.
func (b *Budget) end(p *Permit, counts bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.token && !counts {
		b.bucket.putBack()
	}
	if p.probe {
		b.breaker.release()
	}
	*p = Permit{}
	b.armLocked(time.Now())
}

// Leave gives up the permit of a caller that is no pass: a probe that told nothing
// is for the next.
func (b *Budget) Leave(p *Permit) { b.end(p, false) }

// Called tells whether a call was made with the permit.
func (b *Budget) Called(p *Permit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.called
}

// BudgetStats are a budget at one moment.
type BudgetStats struct {
	Rate, Tokens float64
	Breaker      string
	Deferred     int // keys that wait for it, of queues that have a worker for them
}

// Stats counts what the budget holds.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.bucket.fill(now)
	b.breaker.look(now)
	s := BudgetStats{Rate: b.bucket.rate, Tokens: max(b.bucket.tokens, 0), Breaker: b.breaker.state.String()}
	for _, m := range b.members {
		for _, n := range m.ready {
			if m.inLine {
				s.Deferred += n
			}
		}
	}
	return s
}
