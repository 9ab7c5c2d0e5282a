package fake_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// TestEachFaultDoesWhatItSays sends one create into each fault, over virtual time.
func TestEachFaultDoesWhatItSays(t *testing.T) {
	for _, c := range []struct {
		fault   fake.BookingFault
		kind    booking.Kind // "" for none
		class   booking.Class
		retry   time.Duration
		effects int // when the answer is there
		later   int // an hour later
	}{
		{fault: fake.BookingFault{Kind: fake.BookingLatency, Delay: 10 * time.Second}, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingLatency, Delay: 40 * time.Second}, kind: booking.TimedOut, class: booking.OutcomeUnknown, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingRateLimit}, kind: booking.RateLimited, class: booking.Deferred, retry: time.Second},
		{fault: fake.BookingFault{Kind: fake.BookingRateLimit, RetryAfter: 9 * time.Second}, kind: booking.RateLimited, class: booking.Deferred, retry: 9 * time.Second},
		{fault: fake.BookingFault{Kind: fake.BookingInternal}, kind: booking.Internal, class: booking.OutcomeUnknown},
		{fault: fake.BookingFault{Kind: fake.BookingUnavailable, RetryAfter: time.Minute}, kind: booking.Unavailable, class: booking.OutcomeUnknown, retry: time.Minute},
		{fault: fake.BookingFault{Kind: fake.BookingCutBefore}, kind: booking.ConnectionLost, class: booking.OutcomeUnknown},
		{fault: fake.BookingFault{Kind: fake.BookingLateCommit, Delay: 10 * time.Minute}, kind: booking.ConnectionLost, class: booking.OutcomeUnknown, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingProblem, Problem: booking.SoldOut}, kind: booking.SoldOut, class: booking.Refused},
		{fault: fake.BookingFault{Kind: fake.BookingProblem, Problem: booking.Forbidden}, kind: booking.Forbidden, class: booking.Denied},
		{fault: fake.BookingFault{Kind: fake.BookingProblem, Problem: booking.InvalidPassenger}, kind: booking.InvalidPassenger, class: booking.Refused},
		{fault: fake.BookingFault{Kind: fake.BookingCutAfter}, kind: booking.ConnectionLost, class: booking.OutcomeUnknown, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingInternalAfter}, kind: booking.Internal, class: booking.OutcomeUnknown, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingLateAnswer, Delay: time.Minute}, kind: booking.TimedOut, class: booking.OutcomeUnknown, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingTruncated}, kind: booking.ConnectionLost, class: booking.OutcomeUnknown, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingMalformed}, kind: booking.BadAnswer, class: booking.OutcomeUnknown, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingWrongType}, kind: booking.BadAnswer, class: booking.OutcomeUnknown, effects: 1, later: 1},
		{fault: fake.BookingFault{Kind: fake.BookingHuge}, kind: booking.BadAnswer, class: booking.OutcomeUnknown, effects: 1, later: 1},
	} {
		name := fmt.Sprintf("%s %v %s", c.fault.Kind, c.fault.Delay, c.fault.Problem)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setup(t, fake.BookingOptions{})
				defer s.Close()
				injected := s.Inject(c.fault)
				_, err := s.client.Create(t.Context(), "k", request("r"))
				if c.kind == "" {
					must[int](t)(0, err)
				} else {
					wantKind(t, s.BookingServer, err, c.kind, c.class)
					var e *booking.Error
					if errors.As(err, &e); e.RetryAfter != c.retry {
						t.Errorf("RetryAfter %v, want %v", e.RetryAfter, c.retry)
					}
				}
				if n := s.CreatesInEffect("r"); n != c.effects || injected.Met() != 1 {
					t.Errorf("%d creates took effect at once, want %d\n%s", n, c.effects, s.Transcript())
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(s.Live("r")); n != c.later {
					t.Errorf("%d bookings later, want %d\n%s", n, c.later, s.Transcript())
				}
				injected.Remove()
				// The same key again: one booking in the end, but for the problem,
				// which the key keeps.
				again, err := s.client.Create(t.Context(), "k", request("r"))
				switch {
				case c.fault.Problem == booking.SoldOut || c.fault.Problem == booking.InvalidPassenger:
					wantKind(t, s.BookingServer, err, c.kind, c.class)
				case err != nil || again.Replayed != (c.later == 1) || s.CreatesInEffect("r") != 1:
					t.Errorf("repeated: %+v %v\n%s", again, err, s.Transcript())
				}
			})
		})
	}
}

func TestARequestThatLandsLateMeetsWhatItFindsThen(t *testing.T) {
	late := fake.BookingFault{Kind: fake.BookingLateCommit, Delay: time.Minute, Op: booking.OpCreate, Nth: 1}
	run := func(t *testing.T, meanwhile func(*testing.T, fixture), want string, live int) {
		synctest.Test(t, func(t *testing.T) {
			s := setup(t, fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone})
			defer s.Close()
			s.Inject(late)
			_, err := s.client.Create(t.Context(), "k", request("r"))
			wantKind(t, s.BookingServer, err, booking.ConnectionLost, booking.OutcomeUnknown)
			meanwhile(t, s)
			time.Sleep(time.Hour)
			synctest.Wait()
			if !strings.Contains(s.Transcript(), want) || len(s.Live("r")) != live {
				t.Errorf("want %q and %d live\n%s", want, live, s.Transcript())
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		run(t, func(*testing.T, fixture) {}, "landed late EFFECT", 1)
	})
	t.Run("its own key", func(t *testing.T) {
		run(t, func(t *testing.T, s fixture) {
			must[booking.Answer](t)(s.client.Create(t.Context(), "k", request("r")))
		}, "landed late replayed", 1)
	})
	t.Run("its own key forgotten", func(t *testing.T) {
		run(t, func(t *testing.T, s fixture) {
			must[booking.Answer](t)(s.client.Create(t.Context(), "k", request("r")))
			s.ForgetKeys()
		}, "landed late EFFECT", 2)
	})
	t.Run("a closed reference", func(t *testing.T) {
		run(t, func(t *testing.T, s fixture) {
			must[booking.Closed](t)(s.client.CloseReference(t.Context(), "c", "r"))
		}, "landed late reference-closed", 0)
	})
}

func TestAKeyThatRunsIsSaidToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, fake.BookingOptions{})
		defer s.Close()
		s.Inject(fake.BookingFault{Kind: fake.BookingLatency, Delay: 10 * time.Second, Nth: 1})
		first := make(chan booking.Answer)
		go func() {
			a, _ := s.client.Create(t.Context(), "k", request("r"))
			first <- a
		}()
		synctest.Wait()
		_, err := s.client.Create(t.Context(), "k", request("r"))
		wantKind(t, s.BookingServer, err, booking.KeyInProgress, booking.OutcomeUnknown)
		_, err = s.client.Create(t.Context(), "k", request("other"))
		wantKind(t, s.BookingServer, err, booking.KeyReused, booking.Refused)
		a := <-first
		again := must[booking.Answer](t)(s.client.Create(t.Context(), "k", request("r")))
		if !again.Replayed || !cmp.Equal(again.Booking, a.Booking) {
			t.Errorf("replay %+v of %+v", again, a)
		}
	})
}

func TestAReplayIsTheFirstAnswerAlsoWhereTheBookingHasMovedOn(t *testing.T) {
	s := setup(t, fake.BookingOptions{})
	ctx := t.Context()
	made := must[booking.Answer](t)(s.client.Create(ctx, "k", request("r"))).Booking
	must[booking.Answer](t)(s.client.Cancel(ctx, "c", made.ID, made.Version))
	again := must[booking.Answer](t)(s.client.Create(ctx, "k", request("r")))
	if !again.Replayed || !cmp.Equal(again.Booking, made) {
		t.Errorf("replayed %+v, want %+v", again, made)
	}
}

func TestAKeyIsForgottenAfterItsLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone, KeyLifetime: time.Hour})
		defer s.Close()
		create := func() bool {
			return must[booking.Answer](t)(s.client.Create(t.Context(), "k", request("r"))).Replayed
		}
		if create() {
			t.Error("the first was a replay")
		}
		time.Sleep(time.Hour - time.Second)
		if !create() {
			t.Error("forgotten within the lifetime")
		}
		time.Sleep(time.Second)
		if create() || s.CreatesInEffect("r") != 2 {
			t.Errorf("kept beyond the lifetime\n%s", s.Transcript())
		}
	})
}

func TestManyAtOnceWithOneKeyHaveOneEffect(t *testing.T) {
	s := setup(t, fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := s.client.Create(t.Context(), "k", request("r")); err != nil && !errors.Is(err, booking.KeyInProgress) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.CreatesInEffect("r"); n != 1 {
		t.Errorf("%d creates took effect\n%s", n, s.Transcript())
	}
}

func TestListsLagAndLookupsByIDDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, fake.BookingOptions{})
		defer s.Close()
		s.SetReferenceLag(time.Minute)
		ctx := t.Context()
		lookup := func() (statuses []booking.Status) {
			for _, b := range must[[]booking.Booking](t)(s.client.Lookup(ctx, "r")) {
				statuses = append(statuses, b.Status)
			}
			return statuses
		}
		made := must[booking.Answer](t)(s.client.Create(ctx, "k", request("r"))).Booking
		if got := lookup(); len(got) != 0 {
			t.Errorf("found at once: %v", got)
		}
		must[booking.Booking](t)(s.client.Get(ctx, made.ID))
		time.Sleep(time.Minute)
		if got := lookup(); !cmp.Equal(got, []booking.Status{booking.Confirmed}) {
			t.Errorf("after the lag: %v", got)
		}
		must[booking.Answer](t)(s.client.Cancel(ctx, "c", made.ID, made.Version))
		if got := lookup(); !cmp.Equal(got, []booking.Status{booking.Confirmed}) {
			t.Errorf("the cancellation shows at once: %v", got)
		}
		s.SetReferenceLag(0)
		if got := lookup(); !cmp.Equal(got, []booking.Status{booking.Cancelled}) {
			t.Errorf("without lag: %v", got)
		}
	})
}

func TestAFaultMeetsWhatItNames(t *testing.T) {
	for name, c := range map[string]struct {
		fault fake.BookingFault
		want  string // of eight creates, a to d and again: x is met
	}{
		"every":         {fake.BookingFault{}, "xxxxxxxx"},
		"reference":     {fake.BookingFault{Reference: "b"}, ".x...x.."},
		"nth":           {fake.BookingFault{Nth: 3}, "..x....."},
		"nth and times": {fake.BookingFault{Nth: 3, Times: 2}, "..xx...."},
		"times":         {fake.BookingFault{Times: 5}, "xxxxx..."},
		"nth of some":   {fake.BookingFault{Reference: "c", Nth: 2}, "......x."},
		"other op":      {fake.BookingFault{Op: booking.OpCancel}, "........"},
		"caller":        {fake.BookingFault{Caller: fake.CallerOf("one")}, "xxxxxxxx"},
		"other caller":  {fake.BookingFault{Caller: fake.CallerOf("two")}, "........"},
		"after":         {fake.BookingFault{After: 2500 * time.Millisecond}, "...xxxxx"},
		"window":        {fake.BookingFault{After: 2500 * time.Millisecond, For: 3 * time.Second}, "...xxx.."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setup(t, fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone})
				defer s.Close()
				c.fault.Kind = fake.BookingUnavailable
				s.Inject(c.fault)
				var got strings.Builder
				for i := range 8 {
					_, err := s.client.Create(t.Context(), fmt.Sprint("k", i), request(string(rune('a'+i%4))))
					got.WriteByte(map[bool]byte{true: 'x', false: '.'}[errors.Is(err, booking.Unavailable)])
					time.Sleep(time.Second)
				}
				if got.String() != c.want {
					t.Errorf("met %s, want %s", got.String(), c.want)
				}
			})
		})
	}
}

func TestADrawnFaultMeetsTheSameRequestsInWhateverOrderTheyCome(t *testing.T) {
	draw := func(seed uint64, refs ...string) map[string]bool {
		s := setup(t, fake.BookingOptions{Seed: seed})
		s.Inject(fake.BookingFault{Kind: fake.BookingInternal, Probability: 0.5})
		met := map[string]bool{}
		for _, r := range refs {
			_, err := s.client.Create(t.Context(), "k"+r, request(r))
			met[r] = err != nil
		}
		return met
	}
	there, back := make([]string, 64), make([]string, 64)
	for i := range there {
		there[i] = fmt.Sprint("r", i)
		back[63-i] = there[i]
	}
	first := draw(1, there...)
	if again := draw(1, back...); !cmp.Equal(first, again) {
		t.Error(cmp.Diff(first, again))
	}
	if other := draw(2, there...); cmp.Equal(first, other) {
		t.Error("two seeds drew the same")
	}
	n := 0
	for _, met := range first {
		if met {
			n++
		}
	}
	if n < 16 || n > 48 {
		t.Errorf("met %d of 64 with probability 0.5", n)
	}
}

func TestTheJournalReadsAsATranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		s := setup(t, fake.BookingOptions{Seed: 1, Log: func(e fake.BookingEntry) { fmt.Fprintln(&logged, e) }})
		defer s.Close()
		ctx := t.Context()
		s.Inject(fake.BookingFault{Kind: fake.BookingCutAfter, Nth: 1})
		check(t, "cut", second(s.client.Create(ctx, "k1", request("r"))), booking.ConnectionLost)
		time.Sleep(2 * time.Second)
		b := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("r"))).Booking
		check(t, "old version", second(s.client.Cancel(ctx, "k2", b.ID, "v9")), booking.VersionMismatch)
		check(t, "cancel", second(s.client.Cancel(ctx, "k3", b.ID, b.Version)), nil)
		synctest.Wait()
		caller := fake.CallerOf("one")
		want := strings.ReplaceAll(strings.ReplaceAll(`#1 +0s create caller=C ref=r key=k1 id=B cut EFFECT fault=cut-after
#2 +2s create caller=C ref=r key=k1 id=B 201 replayed
#3 +2s cancel caller=C ref=r key=k2 id=B 412 version-mismatch
#4 +2s cancel caller=C ref=r key=k3 id=B 200 EFFECT
`, "=C", "="+caller), "=B", "="+b.ID)
		if diff := cmp.Diff(want, s.Transcript()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want, logged.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWaitingForAnEntryEndsWithItsContext(t *testing.T) {
	s := setup(t, fake.BookingOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := s.Await(ctx, func(fake.BookingEntry) bool { return false }); !errors.Is(err, why) {
		t.Error(err)
	}
}

func TestAFaultIsReadAsWritten(t *testing.T) {
	got, err := fake.ParseBookingFault("late-commit:op=create,reference=r,booking-id=b,caller=c,nth=2,times=3,probability=0.5,after=1s,for=2s,delay=3s,retry-after=4s")
	want := fake.BookingFault{
		Kind: fake.BookingLateCommit, Op: booking.OpCreate, Reference: "r", BookingID: "b", Caller: "c", Nth: 2, Times: 3,
		Probability: 0.5, After: time.Second, For: 2 * time.Second, Delay: 3 * time.Second, RetryAfter: 4 * time.Second,
	}
	if err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	for spec, names := range map[string]string{
		"":                          "kind",
		"explode":                   "kind",
		"latency":                   "delay",
		"latency:delay=":            "name=value",
		"latency:delay=soon":        "delay",
		"latency:delay=-1s":         "delay",
		"internal:op=buy":           "op",
		"internal:nth=0":            "nth",
		"internal:probability=2":    "probability",
		"internal:probability=0":    "probability",
		"internal:when=now":         "when",
		"problem":                   "problem",
		"problem:problem=bad":       "problem",
		"internal:problem=sold-out": "problem",
		"internal:":                 "name=value",
	} {
		if f, err := fake.ParseBookingFault(spec); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%q: got %+v, %v, want an error that names %s", spec, f, err, names)
		}
	}
}

func FuzzParseBookingFault(f *testing.F) {
	f.Add("cut-after:op=create,nth=1")
	f.Add("latency:delay=1s,probability=0.5")
	f.Fuzz(func(t *testing.T, spec string) {
		if fault, err := fake.ParseBookingFault(spec); err == nil && fault.Validate() != nil {
			t.Errorf("%q is accepted and not valid", spec)
		}
	})
}
