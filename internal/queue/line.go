package queue

import (
	"slices"
	"time"
)

// member is a queue in a budget's line.
type member struct {
	wake   func()        // lets a worker ask again; called without a lock
	closed chan struct{} // when the queue is

	// Guarded by the budget's mu:
	inLine bool       // a worker waits, and was not admitted when it last asked
	ready  [Lanes]int // keys
	passed [Lanes]int // admissions of higher lanes since this one was served, while it had keys
	served uint64     // its last admission
}

func (b *Budget) join(wake func()) *member {
	m := &member{wake: wake, closed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members = append(b.members, m)
	return m
}

func (b *Budget) leave(m *member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.members, m); i >= 0 {
		b.members = slices.Delete(b.members, i, i+1)
		close(m.closed)
	}
	b.armLocked(time.Now())
}

// verdict is what a queue that asks is told.
type verdict uint8

const (
	refused  verdict = iota
	admitted         // the next key of a lane
	tells            // nothing may be called for long: a key that people wait for may say so
)

// admit lets in the next pass of m's queue, of the lane that it names, or puts m in
// the line. ready are its keys, untold those of people who do not know yet that
// theirs waits, and others says that more of its workers wait.
func (b *Budget) admit(m *member, ready [Lanes]int, untold int, others bool) (Lane, Permit, verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	m.ready, m.inLine = ready, true
	for l := range Lanes {
		if ready[l] == 0 {
			m.passed[l] = 0
		}
	}
	defer b.armLocked(now)
	switch {
	case !b.breaker.admits(now):
		if untold > 0 {
			m.inLine = others
			return People, Permit{member: m}, tells
		}
		return 0, Permit{}, refused
	case b.bucket.wait(now) > 0:
		return 0, Permit{}, refused
	}
	first, lane := b.firstLocked()
	if first != m {
		return 0, Permit{}, refused
	}
	b.bucket.take()
	p := Permit{token: true, probe: b.breaker.begin(), member: m}
	b.passLocked(m, lane)
	m.inLine = others
	return lane, p, admitted
}

// firstLocked is who goes next of those in line, and with a key of which lane: the
// highest, unless a lower one has waited its share; of one lane, the queue that was
// served longest ago.
func (b *Budget) firstLocked() (first *member, lane Lane) {
	for _, m := range b.members {
		if !m.inLine {
			continue
		}
		for l := range Lanes {
			if m.ready[l] > 0 && (first == nil || m.before(l, first, lane)) {
				first, lane = m, l
			}
		}
	}
	return first, lane
}

func (m *member) before(l Lane, o *member, k Lane) bool {
	mine, theirs := m.passed[l], o.passed[k]
	switch aged := mine >= aging; {
	case aged != (theirs >= aging):
		return aged
	case aged && mine != theirs:
		return mine > theirs
	case l != k:
		return l < k
	}
	return m.served < o.served
}

// passLocked notes an admission.
func (b *Budget) passLocked(m *member, lane Lane) {
	b.served++
	m.served = b.served
	m.ready[lane]--
	m.passed[lane] = 0
	for _, o := range b.members {
		for l := lane + 1; l < Lanes; l++ {
			if o.inLine && o.ready[l] > 0 {
				o.passed[l]++
			}
		}
	}
}
