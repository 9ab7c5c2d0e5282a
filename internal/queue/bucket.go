package queue

import (
	"math"
	"time"
)

// How a bucket's rate moves between least and most.
const (
	slowest   = 32          // least is this part of most …
	seldom    = 1. / 15     // … and not below this many a second, where most is above
	recovery  = time.Minute // how long least to most takes, while all is used
	slowsOnce = time.Second // calls that are refused at about one time are one refusal
	enough    = 1 - 1e-9    // a token, but for what rounding took off it
)

// bucket says how many calls may be made: burst at once, and rate a second. In any
// time no more are made than burst and most for each second of it, whatever rate
// did meanwhile.
type bucket struct {
	most, least float64 // calls a second
	burst       float64

	rate   float64   // least ≤ rate ≤ most
	tokens float64   // at most burst; below zero by the calls that wait for theirs
	at     time.Time // when tokens was counted
	slowed time.Time // when rate was last halved
}

func newBucket(rate float64, burst int) bucket {
	return bucket{
		most: rate, least: max(rate/slowest, min(rate, seldom)), burst: float64(burst),
		rate: rate, tokens: float64(burst),
	}
}

func (b *bucket) fill(now time.Time) {
	if passed := now.Sub(b.at); !b.at.IsZero() && passed > 0 {
		b.tokens = min(b.burst, b.tokens+passed.Seconds()*b.rate)
	}
	b.at = now
}

// wait is how long it takes until a token is there that nobody has.
func (b *bucket) wait(now time.Time) time.Duration {
	b.fill(now)
	if b.tokens >= enough {
		return 0
	}
	return time.Duration(math.Ceil((1 - b.tokens) / b.rate * float64(time.Second)))
}

// take takes a token, which is there after wait.
func (b *bucket) take() { b.tokens-- }

// putBack is for a token that was not used.
func (b *bucket) putBack() { b.tokens = min(b.burst, b.tokens+1) }

// slow halves the rate, since the endpoint asks for less; what was saved is gone.
// It tells whether the rate was the full one.
func (b *bucket) slow(now time.Time) (first bool) {
	if now.Sub(b.slowed) < slowsOnce {
		return false
	}
	b.fill(now)
	first = b.rate == b.most
	b.slowed, b.rate, b.tokens = now, max(b.least, b.rate/2), min(b.tokens, 0)
	return first
}

// quicken is for each call that went well: over a time in which all tokens are
// used, the rate grows by the same in each second. It tells whether the rate became
// the full one.
func (b *bucket) quicken(now time.Time) (full bool) {
	if b.rate == b.most {
		return false
	}
	b.fill(now)
	b.rate = min(b.most, b.rate+b.most/recovery.Seconds()/b.rate)
	return b.rate == b.most
}

// restart is for the return of an endpoint: with nothing saved, at the least rate.
func (b *bucket) restart(now time.Time) {
	b.fill(now)
	b.rate, b.tokens = b.least, min(b.tokens, 0)
}
