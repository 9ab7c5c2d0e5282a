package contract

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
)

// sentinel is the pass of an object that nothing is asked of: it tells what stood
// in the queue when its turn came. It is how a test knows that nothing happens
// without waiting for a time: what was changed before the sentinel was made comes
// before it in the watch.
type sentinel struct {
	name  string
	stood tether.Snapshot
}

const sentinelName = "sentinel-"

// post makes a sentinel. It is paused, so that no author hears of it.
func (s *stage) post(t *testing.T) (name string) {
	t.Helper()
	u, err := s.on(served("gadgets")).Create(t.Context(), object(groupVersion.String(), "Gadget", "", map[string]any{
		"metadata": map[string]any{
			"generateName": sentinelName,
			"annotations":  map[string]any{groupVersion.Group + "/paused": "true"},
		},
	}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetName()
}

// look tells what stands in the queue when all that changed before has been heard.
func (s *stage) look(t *testing.T, h *hooks) tether.Snapshot {
	t.Helper()
	name := s.post(t)
	return h.sentinels.nth(t, 1, "the pass of "+name, func(s sentinel) bool { return s.name == name }).stood
}

// quiet makes sure that no pass is on its way: all that changed before has been
// heard, and nothing is ready. It wants one worker, so that nothing else runs.
func (s *stage) quiet(t *testing.T, h *hooks) {
	t.Helper()
	for _, q := range s.look(t, h).Queues {
		for lane, n := range q.Ready {
			if n != 0 {
				t.Errorf("%d keys are ready in lane %s", n, lane)
			}
		}
	}
}
