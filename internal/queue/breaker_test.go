package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func newBreaker() *breaker {
	return &breaker{failures: 3, minPause: time.Second, maxPause: 8 * time.Second}
}

func TestABreakerOpensWhenSeveralFailInARow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, events string // + an answer, else who failed
		opens        bool
	}{
		{"two objects", "aba", true},
		{"another one at last", "aab", true},
		{"too few", "ab", false},
		{"an answer between them", "ab+ab", false},
		{"one object that always fails", "aaaaaaaaaaaaaaaaaaaa", false},
		{"one object, and then another", "aaaaaaaab", true},
		{"who failed before an answer does not count", "b+aaa", false},
	} {
		b := newBreaker()
		for _, e := range c.events {
			if e == '+' {
				b.succeed(false)
			} else {
				b.fail(false, string(e), time.Now())
			}
		}
		if got := b.state == open; got != c.opens {
			t.Errorf("%s: open %v, want %v", c.name, got, c.opens)
		}
	}
}

func TestAnOpenBreakerIsTriedByOneAtATimeAtPausesThatGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		for _, who := range []string{"a", "b", "c"} {
			b.fail(false, who, time.Now())
		}
		for _, want := range []time.Duration{1, 2, 4, 8, 8} {
			start := time.Now()
			for !b.admits(time.Now()) {
				time.Sleep(time.Millisecond)
			}
			within(t, time.Since(start), want*time.Second*8/10, want*time.Second)
			if !b.begin() || b.admits(time.Now()) {
				t.Fatal("there are two probes")
			}
			b.fail(false, "late", time.Now()) // what was sent before
			b.succeed(false)
			if b.state != halfOpen {
				t.Fatalf("an answer from before it opened made it %v", b.state)
			}
			b.fail(true, "probe", time.Now())
		}
		time.Sleep(8 * time.Second)
		if !b.admits(time.Now()) || !b.begin() {
			t.Fatal("it is not tried")
		}
		b.release()
		if !b.admits(time.Now()) || !b.begin() {
			t.Fatal("it is not tried again after a probe that told nothing")
		}
		if !b.succeed(true) || b.state != closed {
			t.Fatal("a probe that was answered does not close it")
		}
	})
}

// plain is the breaker said plainly: all that happened, looked through each time.
type plain struct {
	failed  []string // since the last answer
	is      breakerState
	probing bool
}

func (p *plain) event(probe bool, who string) { // who "": an answer
	switch {
	case p.is == closed && who == "":
		p.failed = nil
	case p.is == closed:
		p.failed = append(p.failed, who)
		several := false
		for _, f := range p.failed {
			several = several || f != p.failed[0]
		}
		if len(p.failed) >= 3 && several {
			p.is = open
		}
	case probe && who == "":
		*p = plain{}
	case probe:
		p.is, p.probing = open, false
	}
}

func TestRandomAnswersAgreeWithThePlainBreaker(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		b, p := newBreaker(), &plain{}
		now := time.Now()
		var log []string
		for range 200 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			who := []string{"", "a", "a", "b"}[r.IntN(4)]
			if p.is == open && !now.Before(b.until) {
				p.is = halfOpen
			}
			probe := false
			if admits := b.admits(now); admits != (p.is == closed || p.is == halfOpen && !p.probing) {
				t.Fatalf("seed %d: admits %v\n%v", seed, admits, log)
			} else if admits {
				probe = b.begin()
				p.probing = probe
			}
			log = append(log, fmt.Sprintf("%v %q", probe, who))
			if probe && r.IntN(3) == 0 { // it goes on; what comes next is of before
				probe = false
			}
			if who == "" {
				b.succeed(probe)
			} else {
				b.fail(probe, who, now)
			}
			p.event(probe, who)
			if b.state != p.is || b.state == halfOpen && b.probing != p.probing {
				t.Fatalf("seed %d: %v, want %v\n%v", seed, b.state, p.is, log)
			}
			if p.is == halfOpen && p.probing && r.IntN(2) == 0 { // its end
				b.release()
				p.probing = false
			}
		}
	}
}
