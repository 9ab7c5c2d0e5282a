package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

func TestALostLeaseIsTakenByAnother(t *testing.T) {
	t.Parallel()
	replica := func(identity string) faketest.Program {
		return controls(func(_ *manageOptions, o *tether.RunOptions) {
			o.SingleProcess, o.Lease = false, &tether.Lease{Namespace: "default", Name: "ticket-controller", Identity: identity}
		})
	}
	// Who stands by looks every 750 ms, or up to 2.2 times that: it may see the last
	// renewal that late, and so may it see that the lease has run out.
	for _, c := range []struct {
		name          string
		loses         func(ctx context.Context, t *testing.T, w *world, first *faketest.Process)
		atLeast, most time.Duration // until the second has it
	}{
		{"stopped", func(_ context.Context, _ *testing.T, _ *world, first *faketest.Process) { first.Stop() }, 0, 2 * time.Second},
		{"crashed", func(_ context.Context, _ *testing.T, _ *world, first *faketest.Process) { first.Crash() }, 14 * time.Second, 18500 * time.Millisecond},
		{"cannot renew", func(ctx context.Context, t *testing.T, w *world, first *faketest.Process) {
			w.API.Inject(fake.APIFault{Kind: fake.APIUnavailable, Verb: "update", Resource: "leases", For: 14 * time.Second})
			begin := time.Now()
			if err := first.Wait(ctx); err == nil || !strings.Contains(err.Error(), "lease") {
				t.Errorf("who loses the lease says %v", err)
			}
			if took := time.Since(begin); took < 9*time.Second || took > 11*time.Second {
				t.Errorf("it went on for %v, want its RenewDeadline", took)
			}
		}, 14 * time.Second, 18500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1, Limit: 10 * time.Minute}, func(ctx context.Context, t *testing.T, w *world) {
				holds := func(identity string) {
					t.Helper()
					if _, err := w.API.Await(ctx, func(e fake.APIEntry) bool {
						return e.Resource == "leases" && e.Changed() && strings.Contains(string(e.After), fmt.Sprintf(`"holderIdentity":%q`, identity))
					}); err != nil {
						t.Fatal(err)
					}
				}
				first := w.Start(replica("first"))
				holds("first")
				w.Start(replica("second"))
				p := someone(t, w)
				p.create(ctx, "a")
				untilReady(ctx, t, w, "a")
				time.Sleep(time.Minute)
				begin := time.Now()
				c.loses(ctx, t, w, first)
				p.create(ctx, "b")
				holds("second")
				if took := time.Since(begin); took < c.atLeast || took > c.most {
					t.Errorf("the second has it after %v, want %v to %v", took, c.atLeast, c.most)
				}
				untilReady(ctx, t, w, "b")
				if n := len(w.Booking.Bookings()); n != 2 {
					t.Errorf("%d bookings, want 2", n)
				}
			})
		})
	}
}

// The whole life of a Ticket, once for each request that the controller makes in
// it: there it ends, and comes back at once.
func TestAnEndAtAnyRequestBooksOnceChangesAndCancels(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]faketest.Death{
		"stopped": faketest.StopBefore, "crashed before": faketest.CrashBefore, "crashed after": faketest.CrashAfter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			points := 0
			for dies := true; dies && !t.Failed(); {
				points++
				passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
					dies = lives(ctx, t, w, points, how)
					if t.Failed() {
						t.Logf("%s at request %d", name, points)
					}
				})
			}
			if points < 10 {
				t.Errorf("it makes %d requests, which cannot be all", points)
			}
		})
	}
}

// lives tells whether the controller got to the request at which it dies.
func lives(ctx context.Context, t *testing.T, w *world, nth int, how faketest.Death) (died bool) {
	p := someone(t, w)
	first := w.StartUntil(nth, how, controls(nil))
	pass := func(d time.Duration) {
		begin := time.Now()
		for dead := first.Dead(); ; {
			select {
			case <-dead:
				if died {
					dead = nil // it came back already
					continue
				}
				if how == faketest.StopBefore {
					first.Stop()
				}
				w.Start(controls(nil))
				died = true
			case <-time.After(d - time.Since(begin)):
				return
			}
		}
	}
	pass(time.Second)
	p.create(ctx, "a")
	pass(5 * time.Minute)
	p.ready(ctx, "a")
	once(t, w, 1)
	p.moveTo(ctx, "a", "2027-06-01")
	pass(5 * time.Minute)
	p.ready(ctx, "a")
	once(t, w, 1)
	if got := w.Booking.Bookings()[0].DepartureDate; got != "2027-06-01" {
		t.Errorf("booked for %s", got)
	}
	if err := p.tickets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pass(10 * time.Minute)
	once(t, w, 0)
	if left, err := p.tickets.List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("left after the deletion: %v, %v", left, err)
	}
	return died
}
