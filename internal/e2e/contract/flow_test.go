package contract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tetherkube/tether"
)

// busy is a stage with old objects, and a rig whose one worker is held by the first
// of them until the gate opens.
func busy(t *testing.T, old int) (r *rig, gate chan struct{}) {
	t.Helper()
	s := setup(t)
	for i := range old {
		s.gadget(t, fmt.Sprint("old-", i), `{}`)
	}
	gate = make(chan struct{})
	r = rigOn(t, s, rigging{reconcile: opened(gate)})
	r.passes.await(t, 1, "the first pass", nil)
	return r, gate
}

// Line 12.
func TestWhatPeopleChangeGoesBeforeTheInitialList(t *testing.T) {
	t.Parallel()
	r, gate := busy(t, 12)
	r.gadget(t, "new", `{}`)
	r.patch(t, "old-11", `{"spec":{"size":2}}`)
	r.heard(t)
	if ready := r.hooks.now().Queues[0].Ready; ready["background"] < 10 || ready["people"] < 2 {
		t.Errorf("in the queue: %v", ready)
	}
	close(gate)
	all := r.passes.await(t, 3, "the passes after it", nil)
	got := map[string]bool{all[1].Object.Name: true, all[2].Object.Name: true}
	// old-11 may have been the first of the list, which was being held.
	if all[0].Object.Name != "old-11" && !(got["new"] && got["old-11"]) {
		t.Errorf("the passes were of %s, %s, %s", all[0].Object.Name, all[1].Object.Name, all[2].Object.Name)
	}
	if lane := r.hooks.ending(t, 1, "new").Lane; lane != "people" {
		t.Errorf("the new one was in lane %s", lane)
	}
	r.passes.await(t, 13, "all passes", nil)
	if lane := r.hooks.passes.nth(t, 1, "the first pass's end", nil).Lane; lane != "background" {
		t.Errorf("the initial list was in lane %s", lane)
	}
}

// Line 12.
func TestALowerLaneWaitsForABoundedNumberOfHigherPasses(t *testing.T) {
	t.Parallel()
	r, gate := busy(t, 3)
	const news = 20
	for i := range news {
		r.gadget(t, fmt.Sprint("new-", i), `{}`)
	}
	r.heard(t)
	close(gate)
	since := 0
	for _, p := range r.passes.await(t, news+3, "all passes", nil)[1:] {
		since++
		if !strings.HasPrefix(p.Object.Name, "old-") {
			continue
		}
		if since > 17 { // sixteen of others, and itself
			t.Errorf("%s had to wait for %d passes", p.Object.Name, since-1)
		}
		return
	}
	t.Error("no old one was seen before the new ones were done")
}

// Line 14.
func TestFirstPollsAreSpreadOverTheInterval(t *testing.T) {
	t.Parallel()
	const poll = 2 * time.Second
	r := rigUp(t, rigging{reconcile: done, options: tether.Options{Poll: poll, Workers: 4}})
	const n = 20
	for i := range n {
		r.gadget(t, fmt.Sprint("one-", i), `{}`)
	}
	early := 0
	for i := range n {
		name := fmt.Sprint("one-", i)
		wait := r.pass(t, 2, name).At.Sub(r.pass(t, 1, name).At)
		if wait < poll/10 {
			t.Errorf("%s was polled after %v", name, wait)
		}
		if wait < poll*85/100 {
			early++
		}
		if lane := r.hooks.ending(t, 2, name).Lane; lane != "background" {
			t.Errorf("a poll was in lane %s", lane)
		}
	}
	if early < 3 { // of about 16
		t.Errorf("%d of %d were polled before the interval was over", early, n)
	}
}
