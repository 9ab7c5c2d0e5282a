package queue

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// timers is a heap of the entries that wait for a time.
type timers[K comparable] []*entry[K]

func (t timers[K]) Len() int           { return len(t) }
func (t timers[K]) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers[K]) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

func (t *timers[K]) Push(x any) {
	e := x.(*entry[K])
	e.index = len(*t)
	*t = append(*t, e)
}

func (t *timers[K]) Pop() any {
	old := *t
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	e.index = -1
	return e
}

// wakeLocked sets the entry's one timer.
func (q *Queue[K]) wakeLocked(e *entry[K], at time.Time, lane Lane) {
	e.at, e.wakeLane = at, lane
	if e.index >= 0 {
		heap.Fix(&q.timers, e.index)
	} else {
		heap.Push(&q.timers, e)
	}
	if e.index == 0 { // else the timer is early enough, and sets itself anew
		q.armLocked()
	}
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

func jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}
