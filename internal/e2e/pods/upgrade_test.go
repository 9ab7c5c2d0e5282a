package pods

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

func TestARollingUpgradeUnderLoadBooksNothingTwiceAndLosesNothing(t *testing.T) {
	for name, upgrade := range map[string]func(*testing.T){
		"the same pods anew": func(t *testing.T) {
			must(t, "rollout", "restart", "-n", namespace, "deployment/ticket-controller")
		},
		"another version and back": func(t *testing.T) {
			must(t, "set", "image", "-n", namespace, "deployment/ticket-controller", "controller="+next)
			rolledOut(t)
			for _, p := range readyPods(t) {
				if got := p.Spec.Containers[0].Image; got != next {
					t.Errorf("pod %s runs %s", p.Name, got)
				}
			}
			must(t, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(deploy, "install.yaml"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			operator(t)
			f, begin := newFlights(t), time.Now()
			l := f.load(t)
			first := holder(t)
			upgrade(t)
			rolledOut(t)
			awaitHolder(t, "another leader", func(h string) bool { return h != "" && h != first })
			left, made := l.stop(t)
			t.Logf("%d Tickets were made in %v, of which %d are left", made, time.Since(begin).Round(time.Second), left)
			if made < 50 {
				t.Errorf("no load: %d Tickets were made", made)
			}
			f.exactlyOnce(t, left)
		})
	}
}

// load makes, changes and deletes Tickets until it is stopped.
type load struct {
	cancel context.CancelFunc
	ended  chan error
	left   int
	made   int
}

const loadEvery = 100 * time.Millisecond

// load starts one: every Ticket is changed when the next one is there, which may be
// before or after it was booked, and three of four are deleted a little later.
func (f flights) load(t *testing.T) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel, ended: make(chan error, 1)}
	name := func(n int) string { return fmt.Sprintf("t%d", n) }
	go func() {
		tick := time.NewTicker(loadEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				l.ended <- nil
				return
			}
			n := l.made
			// Not to be cut in the middle: what was made is counted.
			err := f.create(t.Context(), name(n))
			l.made, l.left = n+1, l.left+1
			if n >= 1 {
				err = errors.Join(err, f.change(t.Context(), name(n-1), name(n)))
			}
			if gone := n - 8; gone >= 0 && gone%4 > 0 {
				err = errors.Join(err, f.remove(t.Context(), name(gone)))
				l.left--
			}
			if err != nil {
				l.ended <- err
				return
			}
		}
	}()
	t.Cleanup(cancel)
	return l
}

// stop ends it, and tells how many Tickets it made and left.
func (l *load) stop(t *testing.T) (left, made int) {
	t.Helper()
	l.cancel()
	if err := <-l.ended; err != nil {
		t.Fatal(err)
	}
	return l.left, l.made
}
