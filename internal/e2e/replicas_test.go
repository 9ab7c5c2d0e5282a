package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// replicas are two controllers of which one leads, each with a route of its own.
type replicas struct {
	*stage
	leader, standby *controller
}

// ofLeader tells whether a request came from the first leader.
func ofLeader(match func(proxy.Exchange) bool) func(proxy.Exchange) bool {
	return func(e proxy.Exchange) bool { return strings.HasSuffix(e.Proxy, "-leader") && match(e) }
}

// newReplicas starts a leader, and then a standby.
func newReplicas(t *testing.T, flags ...string) *replicas {
	t.Helper()
	s := newStage(t, fake.BookingOptions{})
	flags = append(flags, "--leader-elect=true", "--lease-namespace="+s.namespace)
	r := &replicas{stage: s}
	r.leader = s.newRoute(t, "-leader").start(t, flags...)
	r.standby = s.newRoute(t, "-standby").launch(t, flags...)
	r.standby.line(t, 0, "Caches populated") // client-go's words: it has synced,
	r.standby.line(t, 0, "Attempting to acquire leader lease")
	return r
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

const shortLease = 3 * time.Second

// takenOver waits until the standby leads.
func (r *replicas) takenOver(t *testing.T) {
	t.Helper()
	r.standby.line(t, 0, "controllers run")
}

func TestALeaderThatIsKilledDuringABookingCallIsFollowedAndThereIsOneBooking(t *testing.T) {
	t.Parallel()
	for _, at := range []proxy.Point{proxy.Before, proxy.After} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t, "--lease-duration="+shortLease.String())
			hold := r.hold(t, at, 1, ofLeader(creates))
			r.create(t, "one", `{}`)
			reached(t, hold)
			killed := time.Now()
			r.leader.kill(t)
			r.takenOver(t)
			// The lease counts from when the standby sees the last renewal. For that, and
			// for seeing that no other came, it looks at least every 1.1 s.
			if took := time.Since(killed); took > shortLease+3*time.Second {
				t.Errorf("the standby took over after %v, the lease is %v", took, shortLease)
			}
			r.exactlyOne(t, r.awaitReady(t, "one"))
			if n := r.effects(booking.OpCreate); n != 1 {
				t.Errorf("booked %d times", n)
			}
		})
	}
}

// thawed lets a frozen leader go on, and checks that it ends by itself, as one that
// failed, and that nothing is heard of it any more that would act.
func (r *replicas) thawed(t *testing.T) {
	t.Helper()
	before := len(r.journal.Exchanges(nil))
	r.leader.signal(t, syscall.SIGCONT)
	if code := r.leader.exit(t); code != 1 {
		t.Errorf("it ended with status %d", code)
	}
	if last := r.leader.Log().Tail(1); !strings.Contains(last, "the lease is lost") {
		t.Errorf("its last line is %q", last)
	}
	// What the new leader holds, the old one has left alone.
	for _, line := range r.standby.errorsLogged() {
		switch {
		case strings.Contains(line, "sold out"): // the airline's word, which it asked for
		case strings.Contains(line, "/leases/") && strings.Contains(line, "deadline exceeded"): // a slow server, asked again
		default:
			t.Errorf("the new leader logged %q", line)
		}
	}
	lease, err := r.dynamic.Resource(leases).Namespace(r.namespace).Get(t.Context(), "ticket-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder == "" {
		t.Error("nobody holds the lease: the old leader gave it back")
	}
	if sent := r.journal.Exchanges(ofLeader(func(e proxy.Exchange) bool { return e.Number > before && acts(e) })); len(sent) > 0 {
		t.Errorf("thawed, it sent %v", sent)
	}
}

func TestALeaderThatIsThawedAfterItsLeaseSendsNothingAndFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at    proxy.Point
		match func(proxy.Exchange) bool
		late  bool // the frozen leader's call lands after the standby has booked
	}{
		"frozen before its booking call": {proxy.After, claims, false},
		"frozen in its booking call":     {proxy.Before, creates, true},
		"frozen after its booking call":  {proxy.After, creates, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t, "--lease-duration="+shortLease.String())
			hold := r.hold(t, test.at, 1, ofLeader(test.match))
			r.create(t, "one", `{}`)
			reached(t, hold)
			r.leader.signal(t, syscall.SIGSTOP)
			r.takenOver(t)
			tk := r.awaitReady(t, "one")
			r.exactlyOne(t, tk)

			// What it waits for is there when it wakes up.
			hold.Release()
			if test.late {
				r.entry(t, "the late call", func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && e.Done && e.Replayed })
			}
			r.thawed(t)
			after := r.awaitReady(t, "one")
			r.exactlyOne(t, after)
			if after.ResourceVersion != tk.ResourceVersion {
				t.Error("the Ticket was written to")
			}
		})
	}
}

func TestABookingCallOfAFrozenLeaderComesToNothingWhenTheTicketIsGone(t *testing.T) {
	t.Parallel()
	r := newReplicas(t, "--lease-duration="+shortLease.String())
	hold := r.hold(t, proxy.Before, 1, ofLeader(creates))
	r.create(t, "one", `{}`)
	reached(t, hold)
	r.leader.signal(t, syscall.SIGSTOP)
	r.remove(t, "one")
	r.takenOver(t)
	r.awaitGone(t, "one")

	hold.Release()
	r.entry(t, "the late call", func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && e.Done })
	r.thawed(t)
	if all := r.site.Bookings(); len(all) > 0 {
		t.Errorf("booked after the Ticket was gone: %+v", all)
	}
}

func TestALeaderThatStopsHandsOverWithinTwoSeconds(t *testing.T) {
	// Not beside other tests, which would be in the measured time.
	r := newReplicas(t)
	r.create(t, "one", `{}`)
	r.awaitReady(t, "one")
	stopped := time.Now()
	r.leader.signal(t, syscall.SIGTERM)
	r.takenOver(t)
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("the standby took over after %v", took)
	}
	if code := r.leader.exit(t); code != 0 {
		t.Errorf("the leader ended with status %d", code)
	}
	r.mustPatch(t, "one", changes["contact"])
	r.exactlyOne(t, r.awaitReady(t, "one"))
}
