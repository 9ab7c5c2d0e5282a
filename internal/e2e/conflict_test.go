package e2e

import (
	"strings"
	"testing"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// conflicts counts the controller's writes that met another version.
func (s *stage) conflicts(match func(proxy.Exchange) bool) int {
	return len(s.journal.Exchanges(func(e proxy.Exchange) bool { return match(e) && e.Status == 409 }))
}

// passes are the log's lines about passes that ended.
func (c *controller) passes() []string {
	var lines []string
	for _, line := range c.Log().Since(0) {
		if strings.Contains(line, `"pass ended"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// meddled lets another writer patch a Ticket while a request of its first pass is
// held, and returns the Ticket when it is ready.
func meddled(t *testing.T, match func(proxy.Exchange) bool, patch string) (*stage, *controller, *v1.Ticket) {
	t.Helper()
	s := newStage(t, fake.BookingOptions{})
	c := s.start(t)
	hold := s.hold(t, proxy.Before, 1, match)
	s.create(t, "ours", `{}`)
	reached(t, hold)
	generation := s.mustPatch(t, "ours", patch).GetGeneration()
	hold.Release()
	tk := s.await(t, "ours", "ready", func(tk *v1.Ticket) bool { return ready(tk) && tk.Generation == generation })
	s.exactlyOne(t, tk)
	if tk.Labels["other"] != "wrote" {
		t.Errorf("the other writer's label is lost: %v", tk.Labels)
	}
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
	return s, c, tk
}

func TestASpecThatChangesDuringAPassIsActedOnByTheNext(t *testing.T) {
	t.Parallel()
	s, c, tk := meddled(t, creates, `{"metadata":{"labels":{"other":"wrote"}},"spec":{"cabin":"business","contact":{"phone":"+82212345678"}}}`)
	if tk.Spec.Cabin != v1.CabinBusiness || tk.Spec.Contact == nil {
		t.Errorf("the other writer's spec is lost: %+v", tk.Spec)
	}
	if n := s.conflicts(statuses); n != 1 {
		t.Errorf("%d writes of status met another version, not 1", n)
	}
	c.line(t, 0, `"pass ended"`, "generation=2", `outcome="done"`)
	first := c.passes()[0]
	if !strings.Contains(first, "generation=1") || !strings.Contains(first, `outcome="again"`) {
		t.Errorf("the first pass ended so: %s", first)
	}
	if created, changed := s.effects(booking.OpCreate), s.effects(booking.OpChange); created != 1 || changed != 1 {
		t.Errorf("booked %d times, changed %d times", created, changed)
	}
}

func TestALabelThatChangesDuringAPassIsSettledInPlace(t *testing.T) {
	t.Parallel()
	s, c, _ := meddled(t, creates, `{"metadata":{"labels":{"other":"wrote"}}}`)
	if n := s.conflicts(statuses); n != 1 {
		t.Errorf("%d writes of status met another version, not 1", n)
	}
	c.line(t, 0, `"pass ended"`)
	if first := c.passes()[0]; !strings.Contains(first, `outcome="done"`) {
		t.Errorf("the first pass ended so: %s", first)
	}
}

func TestALabelThatChangesBeforeTheClaimIsKept(t *testing.T) {
	t.Parallel()
	s, c, _ := meddled(t, claims, `{"metadata":{"labels":{"other":"wrote"}}}`)
	if n := s.conflicts(claims); n != 1 {
		t.Errorf("%d claims met another version, not 1", n)
	}
	c.line(t, 0, `"pass ended"`, `outcome="done"`)
	if n := s.effects(booking.OpCreate); n != 1 {
		t.Errorf("booked %d times", n)
	}
}

func TestALabelThatChangesBeforeTheReleaseIsNoObstacle(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	c := s.start(t)
	s.create(t, "ours", `{}`)
	s.awaitReady(t, "ours")
	hold := s.hold(t, proxy.Before, 1, claims) // the release is of the same form
	s.remove(t, "ours")
	reached(t, hold)
	s.mustPatch(t, "ours", `{"metadata":{"labels":{"other":"wrote"}}}`)
	hold.Release()
	s.awaitGone(t, "ours")
	if n := s.effects(booking.OpCancel); n != 1 || len(s.live()) > 0 {
		t.Errorf("cancelled %d times, %d live", n, len(s.live()))
	}
	c.line(t, 0, `"pass ended"`, "generation=2")
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}
