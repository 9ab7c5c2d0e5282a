package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

var (
	histories = flag.Int("histories", 2, "how many histories chance makes")
	history   = flag.Uint64("history", 0, "the `seed` of the one history to play again")
)

// An hour of faults on both sides, of crashes and of people, as chance has them. When
// all is well again, each Ticket must have come to its booking, and no other.
func TestHistoriesWithChanceEndInOneBookingForEachTicket(t *testing.T) {
	t.Parallel()
	seeds := []uint64{*history}
	if *history == 0 {
		seeds = nil
		for n := range *histories {
			seeds = append(seeds, uint64(n)+1)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			o := faketest.Options{Seed: seed, Booking: fake.BookingOptions{
				FixedFares: pick(rng, 0, 0.5), ReferenceLag: pick(rng, 0, 20*time.Second), ConfirmAfter: pick(rng, 0, 10*time.Minute),
				ReferenceUniqueness: pick(rng, fake.UniqueForever, fake.UniqueLive),
			}}
			passing(t, o, byChance(seed))
			if t.Failed() {
				t.Logf("to see it alone: go test ./examples/ticket-controller -run TestHistoriesWithChance -history %d", seed)
			}
		})
	}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// chance is one history that is being made.
type chance struct {
	*rand.Rand
	world   *world
	process *faketest.Process
	tickets map[string]bool // that are to stand
	bared   map[string]bool // whose annotations were taken off
	made    int
}

func byChance(seed uint64) func(ctx context.Context, t *testing.T, w *world) {
	return func(ctx context.Context, t *testing.T, w *world) {
		c := &chance{Rand: rand.New(rand.NewPCG(seed, 2)), world: w, tickets: map[string]bool{}, bared: map[string]bool{}}
		const bad = time.Hour
		c.goWrong(bad)
		c.start()
		p := someone(t, w)
		for end := time.Now().Add(bad); time.Now().Before(end); {
			time.Sleep(time.Duration(c.ExpFloat64() * float64(2*time.Minute)))
			if c.Float64() < 0.15 {
				c.end()
				time.Sleep(time.Duration(c.ExpFloat64() * float64(20*time.Second)))
				c.start()
				continue
			}
			c.act(ctx, p)
		}
		w.Booking.ClearFaults()
		w.API.ClearFaults()
		c.end()
		c.process = w.Start(controls(nil))
		time.Sleep(3 * time.Hour)
		c.answer(ctx, p)
		time.Sleep(time.Hour)
		c.wellAgain(ctx, t, p)
	}
}

// goWrong injects some faults of each side.
func (c *chance) goWrong(lasts time.Duration) {
	for _, kind := range fake.BookingFaultKinds() {
		f := fake.BookingFault{Kind: kind, Probability: 0.1 * c.Float64(), For: lasts}
		switch kind {
		case fake.BookingProblem, fake.BookingHuge:
			continue // the first is the airline's own words and no fault, the second takes long to make
		case fake.BookingLatency, fake.BookingLateAnswer, fake.BookingLateCommit:
			f.Delay = time.Duration(c.Float64() * float64(time.Minute))
		case fake.BookingRateLimit, fake.BookingUnavailable:
			f.RetryAfter = time.Duration(1+c.IntN(60)) * time.Second
		}
		c.world.Booking.Inject(f)
	}
	for _, kind := range []fake.APIFaultKind{
		fake.APIInternal, fake.APITimeout, fake.APIConflict, fake.APIForbidden, fake.APINotServed, fake.APICutBefore,
		fake.APICutAfter, fake.APIInternalAfter, fake.APITimeoutAfter, fake.APITruncated,
	} {
		for _, resource := range []string{"tickets", "tickets/status"} { // patches are the controller's, who acts uses PUT
			c.world.API.Inject(fake.APIFault{Kind: kind, Verb: "patch", Resource: resource, Probability: 0.05 * c.Float64(), For: lasts})
		}
	}
	for _, kind := range []fake.APIFaultKind{fake.APIWatchCut, fake.APIWatchExpired, fake.APIWatchDuplicate, fake.APIWatchDelay} {
		f := fake.APIFault{Kind: kind, Resource: "tickets", Probability: 0.05 * c.Float64(), For: lasts}
		if kind == fake.APIWatchDelay {
			f.Delay = time.Duration(c.Float64() * float64(time.Minute))
		}
		c.world.API.Inject(f)
	}
}

// start starts the controller, which may be to die at one of its requests.
func (c *chance) start() {
	if how := c.IntN(3); how < 2 {
		c.process = c.world.StartUntil(1+c.IntN(200), pick(c.Rand, faketest.CrashBefore, faketest.CrashAfter), controls(nil))
		return
	}
	c.process = c.world.Start(controls(nil))
}

// end ends it, in one way or another.
func (c *chance) end() {
	if c.IntN(3) == 0 {
		c.process.Stop()
		return
	}
	c.process.Crash()
}

// act is one thing that a person does, or somebody's script.
func (c *chance) act(ctx context.Context, p person) {
	p.t.Helper()
	if len(c.tickets) < 2 || len(c.tickets) < 6 && c.IntN(3) == 0 {
		c.made++
		name := fmt.Sprint("t", c.made)
		p.create(ctx, name)
		c.tickets[name] = true
		return
	}
	name := c.someTicket()
	c.change(ctx, p, name)
}

func (c *chance) someTicket() string {
	for n := 1 + c.IntN(c.made); ; n = n%c.made + 1 {
		if name := fmt.Sprint("t", n); c.tickets[name] {
			return name
		}
	}
}

// change does something to a Ticket, by PUT.
func (c *chance) change(ctx context.Context, p person, name string) {
	p.t.Helper()
	tk, err := p.tickets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	spec := tk.Object["spec"].(map[string]any)
	switch c.IntN(6) {
	case 0:
		delete(c.tickets, name)
		if err := p.tickets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			p.t.Fatal(err)
		}
		return
	case 1:
		spec["departureDate"] = fmt.Sprintf("2027-05-%02d", 1+c.IntN(28))
	case 2: // who flies cannot be changed in place
		spec["passengers"] = []any{map[string]any{"givenName": "Test", "familyName": pick(c.Rand, "Passenger", "Traveller", "Guest")}}
	case 3:
		spec["replace"] = pick[any](c.Rand, "CreateFirst", "DeleteFirst")
	case 4: // as a tool does that knows of neither
		tk.SetAnnotations(nil)
		c.bared[name] = true
	case 5: // as one that restores does
		delete(tk.Object, "status")
		if _, err := p.tickets.UpdateStatus(ctx, tk, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
			p.t.Fatal(err)
		}
		return
	}
	if _, err := p.tickets.Update(ctx, tk, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		p.t.Fatal(err)
	}
}

// answer does what a Ticket asks for whose claim was taken away before its booking could
// be seen, or while one was cancelled to be replaced: nobody but a person can tell then.
func (c *chance) answer(ctx context.Context, p person) {
	p.t.Helper()
	all, err := p.tickets.List(ctx, metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, tk := range all.Items {
		conditions, _, _ := unstructured.NestedSlice(tk.Object, "status", "conditions") // none is none
		for _, each := range conditions {
			reason := each.(map[string]any)["reason"]
			if c.bared[tk.GetName()] && (reason == "ClaimLost" || reason == "Cancelled") {
				p.patch(ctx, tk.GetName(), `{"metadata":{"annotations":{"flights.com/ticket.new":%q}}}`, tk.GetUID())
				break
			}
		}
	}
}

// wellAgain is what must hold when nothing goes wrong any more.
func (c *chance) wellAgain(ctx context.Context, t *testing.T, p person) {
	t.Helper()
	left, err := p.tickets.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != len(c.tickets) {
		t.Errorf("%d Tickets stand, want %d", len(left.Items), len(c.tickets))
	}
	wanted := map[string]bool{}
	for _, tk := range left.Items {
		if !c.tickets[tk.GetName()] || !isReady(tk.Object) {
			t.Errorf("%s: %v", tk.GetName(), tk.Object["status"])
			continue
		}
		id, _ := tk.Object["status"].(map[string]any)["bookingID"].(string)
		if wanted[id] {
			t.Errorf("two Tickets say %s", id)
		}
		wanted[id] = true
	}
	for _, b := range c.world.Booking.Bookings() {
		if b.Status.Live() != wanted[b.ID] {
			t.Errorf("booking %s is %s, and a Ticket says it: %v", b.ID, b.Status, wanted[b.ID])
		}
	}
	effects := map[string]int{}
	for _, e := range c.world.Booking.Journal() {
		if e.Op == booking.OpCreate && e.Effect {
			if effects[e.Reference]++; effects[e.Reference] > 1 {
				t.Errorf("%d bookings were made under %s", effects[e.Reference], e.Reference)
			}
		}
	}
}
