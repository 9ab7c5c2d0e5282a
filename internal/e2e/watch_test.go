package e2e

import (
	"context"
	"net/url"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// cutOff puts a TCP proxy in front of the way to the API server, and returns it with
// a kubeconfig that leads through both.
func (s *stage) cutOff(t *testing.T) (wire *proxy.TCP, kubeconfig string) {
	t.Helper()
	behind, err := url.Parse(s.toAPI.URL())
	if err != nil {
		t.Fatal(err)
	}
	if wire, err = proxy.ListenTCP(behind.Host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := wire.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := rest.CopyConfig(s.account)
	cfg.Host = "https://" + wire.Addr()
	if kubeconfig, err = s.cluster.WriteKubeconfig(s.namespace+"-wire", cfg); err != nil {
		t.Fatal(err)
	}
	return wire, kubeconfig
}

func TestAWatchThatResumesTooLateMissesNothing(t *testing.T) {
	t.Parallel()
	s := stageOn(t, ownCluster(t), fake.BookingOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := define(ctx, s.cluster); err != nil {
		t.Fatal(err)
	}
	wire, kubeconfig := s.cutOff(t)
	c := s.start(t, "--kubeconfig="+kubeconfig)
	for _, name := range []string{"stays", "changes", "goes"} {
		s.create(t, name, `{}`)
		s.awaitReady(t, name)
		c.line(t, 0, `"pass ended"`, `name="`+name+`"`) // or the cut would meet its last write
	}

	resumed := s.hold(t, proxy.Before, 1, resumes)
	wire.Cut()
	reached(t, resumed)
	// What happens now, no watch tells.
	s.mustPatch(t, "changes", changes["contact"])
	s.remove(t, "goes")
	s.create(t, "comes", `{}`)
	s.create(t, "comes-and-goes", `{}`)
	s.remove(t, "comes-and-goes")
	if err := s.cluster.RestartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	resumed.Release()

	for _, name := range []string{"comes", "changes", "stays"} {
		tk := s.awaitReady(t, name)
		s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))
	}
	s.awaitGone(t, "goes")
	s.neverTwice(t)
	for op, want := range map[booking.Operation]int{booking.OpCreate: 4, booking.OpChange: 1, booking.OpCancel: 1} {
		if n := s.effects(op); n != want {
			t.Errorf("%s took effect %d times, not %d", op, n, want)
		}
	}
	if gone := s.journal.Exchanges(func(e proxy.Exchange) bool { return resumes(e) && e.Told == 410 }); len(gone) == 0 {
		t.Error("no watch was told that its version is gone")
	}
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}
