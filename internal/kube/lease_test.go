package kube

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// shelf is a Lease object in memory, with the API server's optimistic concurrency.
type shelf struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	down    bool
	slow    time.Duration // how long the answer to a write takes
}

// held is one process's lock on the shelf.
type held struct {
	*shelf
	identity string
	read     int // the version read last
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (h *held) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down:
		return nil, nil, errors.New("connection refused")
	case h.record == nil:
		return nil, nil, apierrors.NewNotFound(leases, "l")
	}
	h.read = h.version
	r := *h.record
	raw, err := json.Marshal(r)
	return &r, raw, err
}

func (h *held) Create(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return h.put(r, true)
}

func (h *held) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	return h.put(r, false)
}

func (h *held) put(r resourcelock.LeaderElectionRecord, fresh bool) error {
	defer time.Sleep(h.slow)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down:
		return errors.New("connection refused")
	case fresh != (h.record == nil), !fresh && h.read != h.version:
		return apierrors.NewConflict(leases, "l", errors.New("changed"))
	}
	h.version++
	h.read = h.version
	h.record = &r
	return nil
}

func (h *held) RecordEvent(string) {}
func (h *held) Identity() string   { return h.identity }
func (h *held) Describe() string   { return "l" }

func elector(s *shelf, identity string) *Elector {
	e := &Elector{
		opts: LeaseOptions{Namespace: "ns", Name: "l", Identity: identity, Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 750 * time.Millisecond},
		gone: make(chan struct{}),
	}
	e.lock = &watchedLock{Interface: &held{shelf: s, identity: identity}, elector: e}
	return e
}

// lead runs an elector until its term ends, and tells how.
type led struct {
	*Elector
	began, ended time.Time
	cause        error
	result       error
	done         chan struct{}
	leading      chan struct{}
}

func lead(ctx context.Context, e *Elector) *led {
	l := &led{Elector: e, done: make(chan struct{}), leading: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.result = e.Run(ctx, func(ctx context.Context) {
			l.began = time.Now()
			close(l.leading)
			<-ctx.Done()
			l.ended, l.cause = time.Now(), context.Cause(ctx)
		})
	}()
	return l
}

func TestACleanStopHandsOverInUnderTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		ctxA, stopA := context.WithCancel(t.Context())
		a := lead(ctxA, elector(s, "a"))
		<-a.leading
		ctxB, stopB := context.WithCancel(t.Context())
		defer stopB()
		b := lead(ctxB, elector(s, "b"))
		time.Sleep(time.Minute) // a renews, b waits
		if err := a.Held(); err != nil {
			t.Fatalf("a, which renews, does not hold it: %v", err)
		}
		if err := b.Held(); err == nil {
			t.Fatal("both hold it")
		}
		stopA()
		<-a.done
		<-b.leading
		if a.result != nil || a.ended.After(b.began) || b.began.Sub(a.ended) > 2*time.Second {
			t.Fatalf("a ended with %v at %v, b began at %v", a.result, a.ended, b.began)
		}
		stopB()
		<-b.done
	})
}

func TestALeaseThatIsNotRenewedIsLostAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		a := lead(t.Context(), elector(s, "a"))
		<-a.leading
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.down = true
		s.mu.Unlock()
		cut := time.Now()
		<-a.done
		if !errors.Is(a.result, ErrLeaseLost) || !errors.Is(a.cause, ErrLeaseLost) {
			t.Fatalf("result %v, cause %v; want the lost lease", a.result, a.cause)
		}
		if d := a.ended.Sub(cut); d > 10*time.Second || d < 9*time.Second {
			t.Fatalf("passes went on for %v, want the renew deadline less a renewal", d)
		}
		if err := a.Held(); !errors.Is(err, ErrLeaseLost) {
			t.Fatalf("held: %v", err)
		}
	})
}

func TestAnotherHolderEndsTheTermAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		a := lead(t.Context(), elector(s, "a"))
		<-a.leading
		s.mu.Lock()
		s.version++
		s.record.HolderIdentity = "b"
		s.mu.Unlock()
		taken := time.Now()
		<-a.done
		if !errors.Is(a.result, ErrLeaseLost) || !strings.Contains(a.result.Error(), `"b"`) {
			t.Fatalf("result %v, want one that names b", a.result)
		}
		if d := a.ended.Sub(taken); d > 2*time.Second {
			t.Fatalf("passes went on for %v after b was to be seen", d)
		}
	})
}

// client-go's release gives back whatever Lease it reads, also a successor's.
func TestALeaderWhoseTermIsOverLeavesItsSuccessorsLeaseAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		a := lead(t.Context(), elector(s, "a"))
		<-a.leading
		s.mu.Lock()
		s.version++
		s.record.HolderIdentity, s.record.RenewTime.Time = "b", time.Now()
		s.mu.Unlock()
		<-a.done
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.record.HolderIdentity != "b" {
			t.Fatalf("the lease names %q, want b", s.record.HolderIdentity)
		}
	})
}

// A process that was frozen and thawed finds its term over before it has read who
// holds the Lease now.
func TestAThawedLeaderWritesNothingToTheLease(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	e := elector(s, "a")
	if err := e.lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}); err != nil {
		t.Fatal(err)
	}
	e.renewed = at(e.renewed.monotonic.Add(-time.Hour))
	for name, r := range map[string]resourcelock.LeaderElectionRecord{"renewal": {HolderIdentity: "a"}, "release": {}} {
		if err := e.lock.Update(t.Context(), r); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s: %v, want the lost lease", name, err)
		}
	}
	if s.version != 1 {
		t.Errorf("it was written %d times, want once", s.version)
	}
}

// A process that was frozen has timers that fire late: what is asked right before
// a send must not depend on them. Wall and monotonic clock count each by itself.
func TestALateLeaseIsNotHeldByEitherClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := now.Add(-11 * time.Second)
	for name, renewed := range map[string]instant{
		"monotonic": {monotonic: ago, wall: now.Round(0)},
		"wall":      {monotonic: now, wall: ago.Round(0)},
	} {
		e := elector(&shelf{}, "a")
		e.renewed = renewed
		if err := e.Held(); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s: %v, want the lost lease", name, err)
		}
		e.renewed = at(now) // a renewal that comes later changes nothing
		if err := e.Held(); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s: held again: %v", name, err)
		}
	}
	e := elector(&shelf{}, "a")
	if err := e.Held(); err == nil {
		t.Error("one that was never taken is held")
	}
	e.renewed = at(now)
	if err := e.Held(); err != nil {
		t.Errorf("one that was just renewed is not held: %v", err)
	}
}

func TestOneThatIsStoppedBeforeItLeadsNeverLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		ctxA, stopA := context.WithCancel(t.Context())
		a := lead(ctxA, elector(s, "a"))
		<-a.leading
		ctxB, stopB := context.WithCancel(t.Context())
		b := lead(ctxB, elector(s, "b"))
		time.Sleep(5 * time.Second)
		stopB()
		<-b.done
		if b.result != nil || !b.began.IsZero() {
			t.Fatalf("b: %v, began %v", b.result, b.began)
		}
		stopA()
		<-a.done
	})
}

// The API server may have taken it at once, and others count from then.
func TestARenewalCountsFromWhenItWasSent(t *testing.T) {
	t.Parallel()
	for name, renew := range map[string]bool{"taken": false, "renewed": true} {
		synctest.Test(t, func(t *testing.T) {
			s := &shelf{}
			e := elector(s, "a")
			mine := resourcelock.LeaderElectionRecord{HolderIdentity: "a"}
			write := e.lock.Create
			if renew {
				if err := e.lock.Create(t.Context(), mine); err != nil {
					t.Fatal(err)
				}
				write = e.lock.Update
			}
			s.slow = 6 * time.Second
			sent := time.Now()
			if err := write(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			if err := e.Held(); err != nil {
				t.Errorf("%s: after the answer: %v", name, err)
			}
			<-e.gone
			if took := time.Since(sent); took != e.opts.RenewDeadline {
				t.Errorf("%s: it was lost %v after it was sent", name, took)
			}
		})
	}
}
