package queue

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// most fails the test where in any time more calls were made than burst, and rate
// for each second of it: the plain definition, asked of every pair of calls.
func most(t *testing.T, calls []time.Time, rate float64, burst int) {
	t.Helper()
	for i := range calls {
		for j := i; j < len(calls); j++ {
			span := calls[j].Sub(calls[i])
			if n := j - i + 1; float64(n) > float64(burst)+rate*span.Seconds()+1e-6 {
				t.Fatalf("%d calls within %v, with a burst of %d and a rate of %v", n, span, burst, rate)
			}
		}
	}
}

func TestInNoTimeMoreIsTakenThanBurstAndRateWhateverTheRateDidMeanwhile(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			rate, burst := []float64{0.3, 1, 7, 200}[r.IntN(4)], 1+r.IntN(9)
			b := newBucket(rate, burst)
			var calls []time.Time
			for range 300 {
				switch n := r.IntN(20); {
				case n < 12:
					time.Sleep(b.wait(time.Now()))
					if b.wait(time.Now()) > 0 {
						t.Fatalf("seed %d: the token is not there when wait says so", seed)
					}
					b.take()
					calls = append(calls, time.Now())
				case n < 15:
					time.Sleep(time.Duration(r.Float64() * 4 / rate * float64(time.Second)))
				case n < 16:
					b.slow(time.Now())
				case n < 17:
					b.restart(time.Now())
				case n < 18:
					b.wait(time.Now())
					b.take()
					b.putBack()
				default:
					b.quicken(time.Now())
				}
				if b.rate < b.least || b.rate > b.most || b.tokens > b.burst {
					t.Fatalf("seed %d: %+v", seed, b)
				}
			}
			most(t, calls, rate, burst)
		})
	}
}

func TestRefusalsAtOneTimeHalveTheRateOnceAndTakeWhatWasSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(16, 16)
		b.fill(time.Now())
		var first []bool
		for range 4 {
			first = append(first, b.slow(time.Now()))
		}
		if b.rate != 8 || b.tokens != 0 || !first[0] || first[1] {
			t.Errorf("after one refusal of four calls: %+v, first %v", b, first)
		}
		for range 10 {
			time.Sleep(slowsOnce)
			b.slow(time.Now())
		}
		if b.rate != 16./slowest {
			t.Errorf("the rate fell to %v, want a %dth", b.rate, slowest)
		}
	})
}

func TestARateComesBackByTheSameInEachSecondOfUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket(16, 16)
		b.restart(time.Now())
		start, half, full := time.Now(), time.Duration(0), false
		for !full {
			time.Sleep(b.wait(time.Now()))
			b.take()
			full = b.quicken(time.Now())
			if half == 0 && b.rate >= 8 {
				half = time.Since(start)
			}
		}
		within(t, half, 25*time.Second, 32*time.Second)
		within(t, time.Since(start), 50*time.Second, time.Minute+5*time.Second)
	})
}

func TestASlowEndpointIsNotSlowedToNothing(t *testing.T) {
	t.Parallel()
	for rate, least := range map[float64]float64{320: 10, 10: 10. / 32, 1: seldom, 0.01: 0.01} {
		if got := newBucket(rate, 1).least; got != least {
			t.Errorf("%v a second may fall to %v, want %v", rate, got, least)
		}
	}
}
