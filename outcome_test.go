package tether

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestWhatAnErrorSaysIsGatheredFromTheWholeChain(t *testing.T) {
	t.Parallel()
	base := errors.New("x")
	for _, c := range []struct {
		name string
		err  error
		want outcome
	}{
		{"plain", base, outcome{}},
		{"terminal", Terminal(base), outcome{terminal: true, noEffect: true}},
		{"no effect", NoEffect(base), outcome{noEffect: true}},
		{"later", RetryAfter(base, time.Minute), outcome{later: true, after: time.Minute}},
		{"negative", RetryAfter(base, -time.Minute), outcome{later: true}},
		{"reason", Reason("R", base), outcome{reason: "R"}},
		{"all, one order", Terminal(RetryAfter(Reason("R", base), time.Second)), outcome{terminal: true, noEffect: true, later: true, after: time.Second, reason: "R"}},
		{"all, the other", Reason("R", RetryAfter(Terminal(base), time.Second)), outcome{terminal: true, noEffect: true, later: true, after: time.Second, reason: "R"}},
		{"the outer counts", Reason("Outer", RetryAfter(Reason("Inner", RetryAfter(base, 2)), 1)), outcome{later: true, after: 1, reason: "Outer"}},
		{"wrapped by others", fmt.Errorf("a: %w", fmt.Errorf("b: %w", Terminal(base))), outcome{terminal: true, noEffect: true}},
		{"joined", errors.Join(base, NoEffect(base)), outcome{noEffect: true}},
	} {
		got := outcomeOf(c.err)
		got.err = nil
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestMessagesThatDifferOnlyInIdsTimesOrAddressesAreTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"dial tcp 127.0.0.1:4242: refused", "dial tcp 127.0.0.1:5151: refused", true},
		{"dial tcp [::1]:4242: refused", "dial tcp [fe80::1]:80: refused", true},
		{"request id: abc-123 failed", "request id: zzz-999 failed", true},
		{"at 2026-01-02T03:04:05Z", "at 2027-01-02T03:04:05.123+02:00", true},
		{"took 1.5s", "took 20ms", true},
		{"b3b2c1d0-0000-4000-8000-000000000001 gone", "b3b2c1d0-0000-4000-8000-000000000002 gone", true},
		{"costs 250 EUR", "costs 260 EUR", false},
		{"sold out", "too expensive", false},
		{"3 seats left", "2 seats left", false},
	} {
		if got := sameMessage(c.a, c.b); got != c.same {
			t.Errorf("%q and %q: same is %v, want %v", c.a, c.b, got, c.same)
		}
	}
}
