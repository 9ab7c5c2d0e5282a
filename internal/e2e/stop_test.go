package e2e

import (
	"syscall"
	"testing"
	"time"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// stopping orders a Ticket, and sends TERM when its booking call has come to the
// point. It returns when the stop has begun.
func stopping(t *testing.T, at proxy.Point, flags ...string) (*stage, *controller, *proxy.Hold) {
	t.Helper()
	s := newStage(t, fake.BookingOptions{})
	c := s.start(t, flags...)
	hold := s.hold(t, at, 1, creates)
	s.create(t, "late", `{}`)
	reached(t, hold)
	c.signal(t, syscall.SIGTERM)
	c.line(t, 0, "stopping; running passes may end")
	return s, c, hold
}

func TestATermLetsTheRunningCallFinishAndWritesItsStatus(t *testing.T) {
	t.Parallel()
	for _, at := range []proxy.Point{proxy.Before, proxy.After} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s, c, hold := stopping(t, at)
			s.create(t, "none", `{}`) // no pass begins any more
			released := time.Now()
			hold.Release()
			if code := c.exit(t); code != 0 {
				t.Errorf("it ended with status %d", code)
			}
			if took := time.Since(released); took > 5*time.Second {
				t.Errorf("it ended %v after its call", took)
			}
			s.exactlyOne(t, s.awaitReady(t, "late"))
			if lines := c.errorsLogged(); len(lines) > 0 {
				t.Errorf("logged as errors: %q", lines)
			}
		})
	}
}

func TestACallThatOutlastsTheStopIsCancelledAndStatusSaysSo(t *testing.T) {
	t.Parallel()
	s, c, _ := stopping(t, proxy.After, "--stop-timeout=1s")
	c.line(t, 0, "running passes are cancelled", "timeout=\"1s\"")
	if code := c.exit(t); code != 0 {
		t.Errorf("it ended with status %d", code)
	}
	s.await(t, "late", "of an unknown outcome", func(tk *v1.Ticket) bool {
		r := condition(tk, "Reconciling")
		return r != nil && r.Reason == "OutcomeUnknown"
	})
	s.start(t)
	s.exactlyOne(t, s.awaitReady(t, "late"))
}

func TestASecondTermEndsTheControllerAtOnce(t *testing.T) {
	t.Parallel()
	s, c, _ := stopping(t, proxy.Before)
	again := time.Now()
	c.signal(t, syscall.SIGTERM)
	if code := c.exit(t); code != 1 {
		t.Errorf("it ended with status %d", code)
	}
	if took := time.Since(again); took > 2*time.Second {
		t.Errorf("it ended after %v", took)
	}
	c.line(t, 0, "a second signal")
	s.start(t)
	s.exactlyOne(t, s.awaitReady(t, "late"))
}
