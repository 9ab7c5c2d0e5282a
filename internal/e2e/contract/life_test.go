package contract

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether"
)

// Line 15.
func TestAStopLetsRunningPassesEndWithTheirContextAliveAndBeginsNone(t *testing.T) {
	t.Parallel()
	gate, alive := make(chan struct{}), make(chan error, 1)
	r := rigUp(t, rigging{reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
		<-gate
		alive <- ctx.Err()
		g.Status.Note = "ended"
		return tether.Done, nil
	}})
	r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	r.run.stop()
	r.log.line(t, "stopping")
	r.gadget(t, "two", `{}`)
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	r.heard(t) // what a pass reads stays true until it ends
	if g, ok := r.in.Get(r.key("one")); !ok || g.Labels["a"] != "b" {
		t.Errorf("the informer shows %+v", g)
	}
	close(gate)
	if err := received(t, alive, "the pass"); err != nil {
		t.Errorf("its context had ended: %v", err)
	}
	if err := r.run.end(t); err != nil {
		t.Error(err)
	}
	if g := r.get(t, "one"); g.Status.Note != "ended" || !ready(g) {
		t.Errorf("status is %+v", g.Status)
	}
	r.passed(t, 1, "one")
	r.passed(t, 0, "two")
	if _, ok := r.in.Get(r.key("one")); ok {
		t.Error("the informer shows something after Run has returned")
	}
}

// lease is the Lease of a test, with times that fit one.
func (s *stage) lease(identity string) *tether.Lease {
	return &tether.Lease{
		Namespace: s.namespace, Name: "shop", Identity: identity,
		Duration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
	}
}

// replica is one of several rigs on one stage, with a wire and a log of its own.
func (s *stage) replica(t *testing.T, lease *tether.Lease, health *tether.Health, reconcile step) *rig {
	t.Helper()
	own := &stage{namespace: s.namespace, wire: newWire(), log: &logbook{}}
	return rigOn(t, own, rigging{reconcile: reconcile, run: tether.RunOptions{Lease: lease, Health: health}, standby: true})
}

// Line 15. This one is about time, so that it runs alone.
func TestALeaseIsHandedOverWithinTwoSecondsAndNeverUnderARunningPass(t *testing.T) {
	s := setup(t)
	var at, most atomic.Int32
	var leftAt atomic.Int64
	gate := make(chan struct{})
	pass := func(wait <-chan struct{}) step {
		return func(_ context.Context, g *Gadget, n int) (tether.Result, error) {
			most.Store(max(most.Load(), at.Add(1)))
			<-wait
			at.Add(-1)
			leftAt.Store(time.Now().UnixNano())
			return tether.Done, nil
		}
	}
	open := make(chan struct{})
	close(open)
	standing := func(identity string) *tether.Lease { // with the default times
		return &tether.Lease{Namespace: s.namespace, Name: "shop", Identity: identity}
	}
	s.gadget(t, "one", `{}`)
	first := s.replica(t, standing("first"), nil, pass(gate))
	first.log.line(t, "controllers run")
	first.pass(t, 1, "one")

	health := &tether.Health{}
	second := s.replica(t, standing("second"), health, pass(open))
	tries := func(r *rig) int { return len(r.wire.lines(to(http.MethodGet, "leases", "shop"))) }
	second.wire.log.await(t, 1, "the second's look at the lease", ended(to(http.MethodGet, "leases", "shop")))
	second.heard(t)
	if code, body := probe(health, "/readyz?verbose"); code != http.StatusOK || !strings.Contains(body, "[+]lease/"+s.namespace+"/shop ok") || !strings.Contains(body, "[+]controller/gadget ok") {
		t.Errorf("a synced standby is not ready: %d\n%s", code, body)
	}

	first.run.stop()
	first.log.line(t, "stopping")
	// While the pass ends, the lease is still held.
	second.wire.log.await(t, tries(second)+2, "two more looks", ended(to(http.MethodGet, "leases", "shop")))
	second.passed(t, 0, "one")
	close(gate)
	if err := first.run.end(t); err != nil {
		t.Error(err)
	}
	taken := second.pass(t, 1, "one").At
	if took := taken.Sub(time.Unix(0, leftAt.Load())); took > 2*time.Second {
		t.Errorf("the hand-over took %v", took)
	}
	if most.Load() != 1 {
		t.Errorf("%d passes of one object ran at once", most.Load())
	}
	if err := second.run.end(t); err != nil {
		t.Error(err)
	}
	s.awaitOf(t, leases, "shop", "given back", func(u *unstructured.Unstructured) bool {
		holder, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
		return holder == ""
	})
}

// usurp writes another holder into the Lease, as a process does that thinks the
// lease has run out.
func (s *stage) usurp(t *testing.T) {
	t.Helper()
	now := metav1.NowMicro().UTC().Format(metav1.RFC3339Micro)
	s.patchOf(t, leases, "shop", `{"spec":{"holderIdentity":"intruder","renewTime":"`+now+`","acquireTime":"`+now+`"}}`)
}

// Line 15.
func TestALostLeaseCancelsThePassWritesNothingAndEndsRunWithAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry time.Duration
		lose  func(*testing.T, *rig)
		says  string
	}{
		"another holder": {200 * time.Millisecond, func(t *testing.T, r *rig) { r.usurp(t) }, `"intruder" holds it`},
		// With so long a time between two tries, a loss that is noticed by one comes late.
		"not renewed": {2400 * time.Millisecond, func(_ *testing.T, r *rig) {
			r.wire.lose(before, always, func(q request) bool { return q.Resource == "leases" })
		}, "not renewed for 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, cause := setup(t), make(chan error, 1)
			lease := s.lease("first")
			lease.RetryPeriod = c.retry
			material := tether.NewInformer(parts, s.here())
			client := tether.NewClient(material, tether.ClientOptions{})
			var applied atomic.Value
			var lost atomic.Int64
			r := rigOn(t, s, rigging{
				run: tether.RunOptions{Lease: lease},
				reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
					<-ctx.Done()
					lost.Store(time.Now().UnixNano())
					cause <- context.Cause(ctx)
					g.Status.Note = "too late"
					_, err := client.Create(ctx, &Part{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "late"}})
					applied.Store(err)
					return tether.Done, nil
				},
				also: material,
			})
			r.gadget(t, "one", `{}`)
			r.pass(t, 1, "one")
			c.lose(t, r)
			if err := received(t, cause, "the pass's cancellation"); !strings.Contains(err.Error(), "the lease is lost") {
				t.Errorf("the cause is %v", err)
			}
			renewed := r.wire.log.all(func(e exchange) bool { return e.Resource == "leases" && e.Method != http.MethodGet && e.Code/100 == 2 })
			if took := time.Unix(0, lost.Load()).Sub(renewed[len(renewed)-1].Began); took > 4200*time.Millisecond {
				t.Errorf("it was noticed %v after the last renewal", took)
			}
			err := received(t, r.run.ended, "the end of the Run")
			if err == nil || !strings.Contains(err.Error(), "the lease is lost: "+c.says) {
				t.Errorf("Run returned %v", err)
			}
			if err, ok := applied.Load().(error); !ok || err == nil {
				t.Error("a Client wrote after the loss")
			}
			if got := r.wire.lines(func(q request) bool { return q.Method != http.MethodGet && q.Resource != "leases" }); len(got) > 0 {
				t.Errorf("written: %v", got)
			}
			if g := r.get(t, "one"); g.Status.Note != "" {
				t.Errorf("status says %q", g.Status.Note)
			}
		})
	}
}

// Line 15.
func TestAfterALostLeaseNoEffectIsStarted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	b := manageOn(t, &bench{stage: s, shop: newWorkshop(s.wire)}, managing{run: tether.RunOptions{Lease: s.lease("first")}})
	b.book(t, "one", `{"spec":{"color":"red","size":1}}`)
	reached, release := make(chan struct{}), make(chan struct{})
	b.shop.next("observe", after, func(context.Context) error { // which does not heed its context
		close(reached)
		<-release
		return nil
	})
	b.patch(t, "one", `{"spec":{"color":"blue"}}`)
	received(t, reached, "the look")
	already := len(b.wire.lines(about("one")))
	b.usurp(t)
	b.log.line(t, "passes are cancelled")
	close(release)
	if err := received(t, b.run.ended, "the end of the Run"); err == nil || !strings.Contains(err.Error(), `"intruder" holds it`) {
		t.Errorf("Run returned %v", err)
	}
	if got := b.wire.lines(about("one"))[already:]; len(got) > 0 {
		t.Errorf("after the loss: %v", got)
	}
	if m := b.shop.standing(); len(m) != 1 || m[0].Color != "red" {
		t.Errorf("machines %+v", m)
	}
}

// Line 16.
func TestALeaseThatCannotBeHadIsToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	s, health := setup(t), &tether.Health{}
	lift := s.wire.refuse(always, http.StatusForbidden, func(q request) bool { return q.Resource == "leases" })
	r := rigOn(t, s, rigging{reconcile: done, run: tether.RunOptions{Lease: s.lease("first"), Health: health}, standby: true})
	s.wire.log.await(t, 2, "two refusals", func(e exchange) bool { return e.Resource == "leases" && e.Code == http.StatusForbidden })
	r.heard(t)
	code, body := probe(health, "/readyz?verbose")
	if line := "[-]lease/" + s.namespace + "/shop failed: refused by the test"; code != http.StatusServiceUnavailable || !strings.Contains(body, line) {
		t.Errorf("readiness is %d, without %q:\n%s", code, line, body)
	}
	if code, _ := probe(health, "/livez"); code != http.StatusOK {
		t.Errorf("liveness is %d", code)
	}
	lift()
	r.gadget(t, "one", `{}`)
	r.await(t, "one", "ready", ready)
	if code, body := probe(health, "/readyz?verbose"); code != http.StatusOK {
		t.Errorf("readiness is %d:\n%s", code, body)
	}
}

// Line 15.
func TestALeaseThatIsLostDuringAStopCutsItShortAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	s, cause := setup(t), make(chan error, 1)
	r := rigOn(t, s, rigging{
		run: tether.RunOptions{Lease: s.lease("first"), StopTimeout: time.Hour},
		reconcile: func(ctx context.Context, g *Gadget, n int) (tether.Result, error) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			g.Status.Note = "too late"
			return tether.Done, nil
		},
	})
	r.gadget(t, "one", `{}`)
	r.pass(t, 1, "one")
	r.run.stop()
	r.log.line(t, "stopping")
	r.usurp(t)
	if err := received(t, cause, "the pass's cancellation"); !strings.Contains(err.Error(), `the lease is lost: "intruder" holds it`) {
		t.Errorf("the cause is %v", err)
	}
	if err := received(t, r.run.ended, "the end of the Run"); err == nil || !strings.Contains(err.Error(), "the lease is lost") {
		t.Errorf("Run returned %v", err)
	}
	if g := r.get(t, "one"); g.Status.Note != "" {
		t.Errorf("status says %q", g.Status.Note)
	}
}
