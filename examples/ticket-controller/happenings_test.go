package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// What may happen on the way, where it takes time: the tests of internal/e2e do the
// same with processes and a real API server, in times that fit a test.

func TestWhateverTheAirlineDoesEachEffectIsThereOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range fake.BookingFaultKinds() {
		f := fake.BookingFault{Kind: kind, Times: 3}
		switch kind {
		case fake.BookingProblem:
			continue // the airline's own words, and no fault
		case fake.BookingLatency, fake.BookingLateAnswer, fake.BookingLateCommit:
			f.Delay = 40 * time.Second // longer than a call may take
		case fake.BookingRateLimit, fake.BookingUnavailable:
			f.RetryAfter = 10 * time.Minute
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			happens(t, func(w *world, op booking.Operation) (met func() int) {
				f.Op = op
				return w.Booking.Inject(f).Met
			})
		})
	}
}

func TestWhateverTheAPIServerDoesEachEffectIsThereOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []fake.APIFaultKind{
		fake.APILatency, fake.APITooManyRequests, fake.APIInternal, fake.APIUnavailable, fake.APITimeout, fake.APIConflict, fake.APIForbidden,
		fake.APIUnauthorized, fake.APINotServed, fake.APICutBefore,
		fake.APICutAfter, fake.APIInternalAfter, fake.APITimeoutAfter, fake.APILateAnswer, fake.APITruncated,
	} {
		for _, resource := range []string{"tickets", "tickets/status"} {
			f := fake.APIFault{Kind: kind, Verb: "patch", Resource: resource, Times: 3, Delay: 40 * time.Second, RetryAfter: time.Minute}
			if kind != fake.APILatency && kind != fake.APILateAnswer {
				f.Delay = 0
			}
			if kind != fake.APITooManyRequests && kind != fake.APIUnavailable {
				f.RetryAfter = 0
			}
			t.Run(strings.ReplaceAll(string(kind)+" of "+resource, "/", " "), func(t *testing.T) {
				t.Parallel()
				happens(t, func(w *world, op booking.Operation) (met func() int) {
					injected := w.API.Inject(f)
					if needs := map[booking.Operation]string{booking.OpChange: "tickets/status", booking.OpCancel: "tickets"}[op]; needs != "" && needs != resource {
						return nil // a change in place writes no claim, and a release no status
					}
					return injected.Met
				})
			})
		}
	}
}

func TestWhateverBecomesOfAWatchNothingIsMissed(t *testing.T) {
	t.Parallel()
	for _, kind := range []fake.APIFaultKind{fake.APIWatchCut, fake.APIWatchExpired, fake.APIWatchDelay, fake.APIWatchDuplicate} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := fake.APIFault{Kind: kind, Resource: "tickets", Times: 3}
			if kind == fake.APIWatchDelay {
				f.Delay = 10 * time.Minute
			}
			happens(t, func(w *world, _ booking.Operation) (met func() int) { return w.API.Inject(f).Met })
		})
	}
}

// happens leads a Ticket through its life, and each time before a person does
// something it lets goWrong; what that returns tells how often it has, and is nil
// where it cannot.
func happens(t *testing.T, goWrong func(w *world, op booking.Operation) (met func() int)) {
	t.Helper()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		w.Start(controls(nil))
		time.Sleep(time.Hour) // what is there at the start is looked at with care
		p := someone(t, w)
		ask := func(op booking.Operation, do func()) {
			t.Helper()
			met := goWrong(w, op)
			do()
			time.Sleep(time.Hour)
			if met != nil && met() == 0 {
				t.Errorf("%s: nothing went wrong", op)
			}
			w.Booking.ClearFaults()
			w.API.ClearFaults()
			effects := 0
			for _, e := range w.Booking.Journal() {
				if e.Op == op && e.Effect {
					effects++
				}
			}
			if effects != 1 {
				t.Errorf("%s took effect %d times, want once", op, effects)
			}
		}
		ask(booking.OpCreate, func() { p.create(ctx, "a") })
		p.ready(ctx, "a")
		once(t, w, 1)
		ask(booking.OpChange, func() { p.replace(ctx, "a", "2027-06-01") })
		p.ready(ctx, "a")
		if got := w.Booking.Bookings()[0].DepartureDate; got != "2027-06-01" {
			t.Errorf("booked for %s", got)
		}
		ask(booking.OpCancel, func() {
			if err := p.tickets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		once(t, w, 0)
		if left, err := p.tickets.List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
			t.Errorf("left after the deletion: %v, %v", left, err)
		}
	})
}

func TestASoldOutTicketRestsForAWeekWithoutACallAndIsBookedWhenItChanges(t *testing.T) {
	t.Parallel()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		tk := smallest()
		w.Booking.SellOut(tk.Spec.From, tk.Spec.To, tk.Spec.DepartureDate, true)
		w.Start(controls(nil))
		p := someone(t, w)
		p.create(ctx, "a")
		refused, err := w.Booking.Await(ctx, func(e fake.BookingEntry) bool { return e.Problem == booking.SoldOut })
		if err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			time.Sleep(24 * time.Hour)
			p.label(ctx, "a", i)
		}
		if at := calls(w, refused.Time); len(at) != 1 {
			t.Errorf("the airline was called at %v after it refused", at[1:])
		}
		changed := time.Now()
		p.moveTo(ctx, "a", "2027-06-01")
		if took := untilReady(ctx, t, w, "a").Time.Sub(changed); took > time.Second {
			t.Errorf("booked %v after the change", took)
		}
		once(t, w, 1)
	})
}

func TestWhatOthersWriteDuringACallIsNotLost(t *testing.T) {
	t.Parallel()
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingLateAnswer, Op: booking.OpCreate, Nth: 1, Delay: 20 * time.Second})
		w.Start(controls(nil))
		p := someone(t, w)
		p.create(ctx, "a")
		if _, err := w.Booking.Await(ctx, func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate }); err != nil {
			t.Fatal(err)
		}
		p.label(ctx, "a", 7)
		p.moveTo(ctx, "a", "2027-06-01")
		time.Sleep(time.Hour)
		p.ready(ctx, "a")
		once(t, w, 1)
		if got := w.Booking.Bookings()[0].DepartureDate; got != "2027-06-01" {
			t.Errorf("booked for %s", got)
		}
		now, err := p.tickets.Get(ctx, "a", metav1.GetOptions{})
		if err != nil || now.GetLabels()["n"] != "7" {
			t.Errorf("the label is gone: %v, %v", now.GetLabels(), err)
		}
	})
}

func TestTheDefinitionMayComeLateGoAndComeAgain(t *testing.T) {
	t.Parallel()
	faketest.Run(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		client, err := dynamic.NewForConfig(w.API.Config())
		if err != nil {
			t.Fatal(err)
		}
		definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		define := func() {
			t.Helper()
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(file(t, "deploy/crd.yaml"), &u.Object); err != nil {
				t.Fatal(err)
			}
			if _, err := definitions.Create(ctx, u, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w.Start(controls(nil))
		p := someone(t, w)
		for _, name := range []string{"a", "b"} { // not there from the start, then taken away
			time.Sleep(time.Hour)
			define()
			applied := time.Now()
			p.create(ctx, name)
			if took := untilReady(ctx, t, w, name).Time.Sub(applied); took > 3*time.Minute {
				t.Errorf("%s is booked %v after the definition came", name, took)
			}
			if err := definitions.Delete(ctx, "tickets.flights.com", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if live := slices.DeleteFunc(w.Booking.Bookings(), func(b booking.Booking) bool { return !b.Status.Live() }); len(live) > 0 {
				t.Errorf("the definition went, and %v stands", live)
			}
			if left, err := definitions.List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
				t.Errorf("the definition stands: %v", err)
			}
		}
	})
}

func TestARightThatIsTakenAwayForHoursIsUsedWhenItIsBack(t *testing.T) {
	t.Parallel()
	const away = 3 * time.Hour
	for name, take := range map[string]func(w *world){
		"to list and watch": func(w *world) {
			for _, verb := range []string{"list", "watch"} {
				w.API.Inject(fake.APIFault{Kind: fake.APIForbidden, Verb: verb, Resource: "tickets", For: away})
			}
			w.API.Inject(fake.APIFault{Kind: fake.APIWatchExpired, Resource: "tickets", Times: 1})
		},
		"to patch": func(w *world) {
			w.API.Inject(fake.APIFault{Kind: fake.APIForbidden, Verb: "patch", Resource: "tickets", For: away})
		},
		"to patch status": func(w *world) {
			w.API.Inject(fake.APIFault{Kind: fake.APIForbidden, Verb: "patch", Resource: "tickets/status", For: away})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
				w.Start(controls(nil))
				time.Sleep(time.Hour)
				take(w)
				begin := time.Now()
				p := someone(t, w)
				p.create(ctx, "a")
				took := untilReady(ctx, t, w, "a").Time.Sub(begin)
				if took < away || took > away+6*time.Minute {
					t.Errorf("ready after %v, want %v and little more", took, away)
				}
				once(t, w, 1)
				requests := 0
				for _, e := range w.API.Journal() {
					if e.Reason == string(metav1.StatusReasonForbidden) {
						requests++
					}
				}
				if minutes := int(away.Minutes()); requests < minutes/6 || requests > 20*minutes {
					t.Errorf("%d requests were forbidden in %v, want one a while", requests, away)
				}
			})
		})
	}
}
