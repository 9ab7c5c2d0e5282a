package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// What the controller does in hours and weeks, and around its own end.

type (
	manageOptions = tether.ManageOptions[*v1.Ticket]
	world         = faketest.World
)

// controls is the controller as main runs it, but for what change changes.
func controls(change func(*manageOptions, *tether.RunOptions)) faketest.Program {
	return func(ctx context.Context, cluster *rest.Config, client *http.Client) error {
		api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: client.Transport})
		if err != nil {
			return err
		}
		quiet := logr.Discard()
		o := manageOptions{
			ID: func(t *v1.Ticket) *string { return &t.Status.BookingID }, Guarantee: tether.UniqueReference, Policy: policy,
		}
		run := tether.RunOptions{SingleProcess: true, Logger: &quiet}
		if change != nil {
			change(&o, &run)
		}
		c := tether.Manage(tether.NewInformer(Tickets, tether.InformerOptions{}), &flights{api}, o)
		return tether.Run(ctx, cluster, run, c)
	}
}

// passing runs f in a world that knows Tickets.
func passing(t *testing.T, o faketest.Options, f func(ctx context.Context, t *testing.T, w *world)) {
	t.Helper()
	o.API.Manifests = append(o.API.Manifests, string(file(t, "deploy/crd.yaml")))
	faketest.Run(t, o, f)
}

// person is who creates Tickets and changes them.
type person struct {
	t       *testing.T
	tickets dynamic.ResourceInterface
}

func someone(t *testing.T, w *world) person {
	t.Helper()
	client, err := dynamic.NewForConfig(w.API.Config())
	if err != nil {
		t.Fatal(err)
	}
	return person{t, client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")}
}

func (p person) create(ctx context.Context, name string) {
	p.t.Helper()
	tk := smallest()
	tk.APIVersion, tk.Kind, tk.Name = v1.GroupVersion.String(), "Ticket", name
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tk)
	if err != nil {
		p.t.Fatal(err)
	}
	delete(raw, "status")
	if _, err := p.tickets.Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p person) patch(ctx context.Context, name, format string, args ...any) {
	p.t.Helper()
	if _, err := p.tickets.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p person) label(ctx context.Context, name string, value int) {
	p.t.Helper()
	p.patch(ctx, name, `{"metadata":{"labels":{"n":"%d"}}}`, value)
}

func (p person) moveTo(ctx context.Context, name, date string) {
	p.t.Helper()
	p.patch(ctx, name, `{"spec":{"departureDate":%q}}`, date)
}

// ready fails the test where a Ticket is not booked as it says.
func (p person) ready(ctx context.Context, name string) {
	p.t.Helper()
	raw, err := p.tickets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if !isReady(raw.Object) {
		p.t.Errorf("not booked: %v", raw.Object["status"])
	}
}

func isReady(object map[string]any) bool {
	var tk v1.Ticket
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, &tk) != nil || tk.Status.ObservedGeneration != tk.Generation || tk.Status.BookingID == "" {
		return false
	}
	for _, c := range tk.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// untilReady waits until a status write says so.
func untilReady(ctx context.Context, t *testing.T, w *world, name string) fake.APIEntry {
	t.Helper()
	e, err := w.API.Await(ctx, func(e fake.APIEntry) bool {
		var o map[string]any
		return e.Resource == "tickets/status" && e.Name == name && json.Unmarshal(e.After, &o) == nil && isReady(o)
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// calls is when the booking server was asked about a booking, once for what came at
// one moment: a pass takes no time. The list of all there is, by which the
// controller looks for what belongs to nobody, is about none.
func calls(w *world, since time.Time) (at []time.Duration) {
	for _, e := range w.Booking.Journal() {
		about := e.Reference != "" || e.BookingID != ""
		if d := e.Time.Sub(since); about && !e.Late && d >= 0 && (len(at) == 0 || d > at[len(at)-1]) {
			at = append(at, d)
		}
	}
	return at
}

// creates is when creates arrived.
func creates(w *world, since time.Time) (at []time.Duration) {
	for _, e := range w.Booking.Journal() {
		if e.Op == booking.OpCreate && !e.Late {
			at = append(at, e.Time.Sub(since))
		}
	}
	return at
}

// once fails the test unless one booking was made ever, and stands as often as live
// says.
func once(t *testing.T, w *world, live int) {
	t.Helper()
	var effects, stand int
	for _, e := range w.Booking.Journal() {
		if e.Op == booking.OpCreate && e.Effect {
			effects++
		}
	}
	for _, b := range w.Booking.Bookings() {
		if b.Status.Live() {
			stand++
		}
	}
	if effects != 1 || stand != live {
		t.Errorf("%d bookings were made and %d stand, want 1 and %d", effects, stand, live)
	}
}

func TestARetryAfterOfAnHourIsHonouredToTheSecond(t *testing.T) {
	t.Parallel()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingRateLimit, Op: booking.OpCreate, Times: 1, RetryAfter: time.Hour})
		w.Start(controls(nil))
		p := someone(t, w)
		p.create(ctx, "a")
		refused, err := w.Booking.Await(ctx, func(e fake.BookingEntry) bool { return e.Status == http.StatusTooManyRequests })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		p.label(ctx, "a", 1)
		time.Sleep(10 * time.Minute)
		p.moveTo(ctx, "a", "2027-06-01")
		time.Sleep(10 * time.Minute)
		p.patch(ctx, "a", `{"metadata":{"annotations":{"flights.com/reconcile-at":"now"}}}`)

		booked := untilReady(ctx, t, w, "a").Time.Sub(refused.Time)
		if booked < time.Hour || booked > time.Hour+time.Second {
			t.Errorf("booked %v after the refusal, want an hour", booked)
		}
		if all := calls(w, refused.Time); len(all) != 2 || all[1] < time.Hour {
			t.Errorf("the airline was called at %v after the refusal, want nothing before the hour", all[1:])
		}
		once(t, w, 1)
		if got := w.Booking.Bookings()[0].DepartureDate; got != "2027-06-01" {
			t.Errorf("booked for %s, want what is wanted by then", got)
		}
	})
}

func TestABackoffIsNotTouchedByEventsAndResetByANewGeneration(t *testing.T) {
	t.Parallel()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingUnavailable})
		w.Start(controls(nil))
		p := someone(t, w)
		begin := time.Now()
		p.create(ctx, "a")
		time.Sleep(time.Hour)
		for i := range 60 {
			p.label(ctx, "a", i)
			time.Sleep(30*time.Second + time.Millisecond)
		}
		gaps := between(calls(w, begin))
		for i, gap := range gaps {
			most := min(time.Second<<i, 5*time.Minute)
			if gap < most*8/10 || gap > most {
				t.Errorf("%v before retry %d, want at most %v and at least four fifths of it", gap, i+1, most)
			}
		}
		if len(gaps) < 20 {
			t.Errorf("%d retries in an hour and a half", len(gaps))
		}

		changed := time.Now()
		p.moveTo(ctx, "a", "2027-06-01")
		time.Sleep(5 * time.Second)
		at := calls(w, changed)
		if len(at) < 3 || at[0] > 100*time.Millisecond || at[1]-at[0] > time.Second || at[2]-at[1] > 2*time.Second {
			t.Errorf("called at %v after a new generation, want at once, and a second and three later at most", at)
		}
	})
}

func between(at []time.Duration) (gaps []time.Duration) {
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	return gaps
}

func TestThePollsOfAWeekAreSpread(t *testing.T) {
	t.Parallel()
	const (
		tickets = 60
		poll    = 48 * time.Hour
		window  = 16 * time.Hour
		share   = tickets * int(window) / int(poll)
	)
	// What is not looked at here need not be worked out: a bookmark a minute.
	o := faketest.Options{Seed: 1, API: fake.APIOptions{BookmarkInterval: 24 * time.Hour}}
	passing(t, o, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		for i := range tickets {
			p.create(ctx, fmt.Sprint("t", i))
		}
		w.Start(controls(func(o *manageOptions, _ *tether.RunOptions) { o.Poll = poll }))
		time.Sleep(time.Minute)
		booked := time.Now()
		time.Sleep(7 * 24 * time.Hour)

		looks, from := map[int]int{}, 0
		for _, e := range w.Booking.Journal() {
			if d := e.Time.Sub(booked); d >= 0 && e.Op == booking.OpGet {
				looks[int(d/window)]++
				from++
			}
		}
		if want := tickets * int(7*24*time.Hour) / int(poll); from < want*9/10 || from > want*12/10 {
			t.Errorf("%d looks in a week, want about %d", from, want)
		}
		for at, n := range looks {
			if n > 2*share {
				t.Errorf("%d looks within %v, %v after all were booked: their share is %d", n, window, time.Duration(at)*window, share)
			}
		}
	})
}

// lookupOnly is an airline that accepts whatever is asked of it, whose lists are
// behind, and keeps no keys: what a window is for.
var lookupOnly = fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone, KeyLifetime: time.Nanosecond, ReferenceLag: 45 * time.Second}

const settle = 2 * time.Minute

func looksUpOnly(o *manageOptions, _ *tether.RunOptions) {
	o.Guarantee, o.Settle = tether.LookupOnly, settle
}

func TestALostAnswerIsWaitedForAndTheBookingMadeOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fake.BookingFault
		calls int // creates
	}{
		{"it took effect", fake.BookingFault{Kind: fake.BookingCutAfter}, 1},
		{"it did not", fake.BookingFault{Kind: fake.BookingCutBefore}, 2},
		{"it takes effect late", fake.BookingFault{Kind: fake.BookingLateCommit, Delay: time.Minute}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1, Booking: lookupOnly}, func(ctx context.Context, t *testing.T, w *world) {
				c.fault.Op, c.fault.Nth = booking.OpCreate, 1
				w.Booking.Inject(c.fault)
				w.Start(controls(looksUpOnly))
				time.Sleep(time.Hour)
				someone(t, w).create(ctx, "a")
				begin := time.Now()
				time.Sleep(time.Hour)
				someone(t, w).ready(ctx, "a")
				once(t, w, 1)
				at := creates(w, begin)
				if len(at) != c.calls || len(at) > 1 && (at[1] < at[0]+settle || at[1] > at[0]+2*settle) {
					t.Errorf("creates at %v, want %d, a second one when the window of %v has passed, and not much later", at, c.calls, settle)
				}
			})
		})
	}
}

func TestAfterACrashTheWindowIsWaitedForBeforeAnotherCreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fake.BookingFault
		calls int
	}{
		{"the create took effect", fake.BookingFault{Kind: fake.BookingLateAnswer, Delay: 10 * time.Second}, 1},
		{"the create did not", fake.BookingFault{Kind: fake.BookingCutBefore}, 2},
		{"the create takes effect late", fake.BookingFault{Kind: fake.BookingLateCommit, Delay: 50 * time.Second}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1, Booking: lookupOnly}, func(ctx context.Context, t *testing.T, w *world) {
				c.fault.Op, c.fault.Nth = booking.OpCreate, 1
				w.Booking.Inject(c.fault)
				first := w.Start(controls(looksUpOnly))
				time.Sleep(time.Hour)
				someone(t, w).create(ctx, "a")
				if _, err := w.Booking.Await(ctx, func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && len(e.Faults) > 0 }); err != nil {
					t.Fatal(err)
				}
				first.Crash()
				begin := time.Now()
				w.Start(controls(looksUpOnly))
				time.Sleep(time.Hour)
				someone(t, w).ready(ctx, "a")
				once(t, w, 1)
				if at := creates(w, begin); len(at) != c.calls || len(at) > 1 && (at[1] < settle || at[1] > 2*settle) {
					t.Errorf("creates at %v after the crash, want %d, a second one when the window of %v has passed, and not much later", at, c.calls, settle)
				}
			})
		})
	}
}

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
