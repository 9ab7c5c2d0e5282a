package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// model is the queue said plainly: for each key, when it may next be handed out.
// It has no lanes and no jitter; the test checks that the queue hands out a key
// only when the model allows it, and everything in the end.
type model struct {
	running, stalled, want bool
	hold, until            time.Time
	timer                  bool // something is due at hold, until or later
	failures               int
}

func (m *model) add(c Cause, now time.Time) {
	switch {
	case m.running:
	case m.stalled && c < Related && c != Restore, now.Before(m.until) && c < Change:
		return
	}
	m.want = true
	if c >= Change {
		m.until, m.stalled = time.Time{}, false
	}
	if c == Release {
		m.hold = time.Time{}
	}
}

func TestRandomHistoriesAgreeWithThePlainModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { history(t, seed) })
	}
}

func history(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	q := New[string](Options{Burst: 1 << 20})
	keys := []string{"a", "b", "c"}
	models := map[string]*model{}
	var log []string
	fail := func(format string, args ...any) {
		t.Fatalf("seed %d: %s\n%v", seed, fmt.Sprintf(format, args...), log)
	}
	say := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	for _, k := range keys {
		models[k] = &model{}
	}
	var running []string
	for range 60 {
		now := time.Now()
		switch n := r.IntN(10); {
		case n < 4:
			k, c := keys[r.IntN(3)], Cause(1+r.IntN(6))
			say("add %s %d", k, c)
			m := models[k]
			if !m.running {
				m.add(c, now)
			} else {
				m.want = true
			}
			q.Add(k, c)
		case n < 6:
			d := time.Duration(r.IntN(3000)) * time.Millisecond
			say("sleep %v", d)
			time.Sleep(d)
			synctest.Wait()
		case n < 8:
			if q.Stats().Ready == ([Lanes]int{}) {
				continue
			}
			it, _ := q.Get()
			say("get %s", it.Key)
			m := models[it.Key]
			if m.running {
				fail("%s is in two passes", it.Key)
			}
			if now.Before(m.hold) {
				fail("%s ran %v before its hold ended", it.Key, m.hold.Sub(now))
			}
			if now.Before(m.until) {
				fail("%s ran %v before its backoff ended", it.Key, m.until.Sub(now))
			}
			if !m.want && !m.timer {
				fail("%s ran for no reason", it.Key)
			}
			*m = model{running: true, failures: m.failures}
			running = append(running, it.Key)
		case len(running) > 0:
			k := running[0]
			running = running[1:]
			m := models[k]
			o := Outcome{Kind: []Kind{Done, After, Backoff, Hold, Stall}[r.IntN(5)], Delay: time.Second}
			o.Restore = o.Kind == Stall && r.IntN(2) == 0
			say("done %s %+v", k, o)
			q.Done(k, o)
			m.running = false
			settle(m, o, now, q, k)
		}
	}
	for _, k := range running {
		q.Done(k, Outcome{})
	}
	drain(t, q, fail)
	q.Close()
}

// settle writes the outcome into the model. What came during the pass may run
// again, as far as the outcome lets it: the weakest assumption is taken.
func settle(m *model, o Outcome, now time.Time, q *Queue[string], k string) {
	switch o.Kind {
	case After:
		m.timer = true
	case Backoff:
		m.timer = true
		if e := q.peek(k); e.state == idle {
			m.until = e.until
			if m.until.Sub(now) < 800*time.Millisecond {
				panic("a backoff shorter than the least one")
			}
		}
	case Hold:
		m.timer = true
		if e := q.peek(k); e.state == idle {
			m.hold = now.Add(o.Delay)
		}
	case Stall:
		m.stalled = true
		if e := q.peek(k); o.Restore && e.state == idle {
			m.timer, m.until = true, e.until
		}
	}
}

// peek copies an entry; of one that is not there it says idle.
func (q *Queue[K]) peek(k K) entry[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[k]; e != nil {
		return *e
	}
	return entry[K]{}
}

// timed counts the keys that have a timer, those at rest included.
func (q *Queue[K]) timed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.timers)
}

// drain takes all that is left: nothing may be stuck.
func drain(t *testing.T, q *Queue[string], fail func(string, ...any)) {
	t.Helper()
	for s := q.Stats(); q.timed() > 0 || s.Ready != ([Lanes]int{}); s = q.Stats() {
		if s.Ready == ([Lanes]int{}) {
			timed := q.timed()
			time.Sleep(time.Hour)
			synctest.Wait()
			if q.Stats() == s && q.timed() == timed {
				fail("stuck: %+v", s)
			}
			continue
		}
		it, _ := q.Get()
		q.Done(it.Key, Outcome{Kind: Forget})
	}
	for k, e := range q.entries {
		if !e.stalled {
			fail("%s is left behind", k)
		}
	}
}
