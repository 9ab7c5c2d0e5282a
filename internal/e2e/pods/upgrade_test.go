package pods

import (
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
			l := f.Load(t.Context(), 50)
			first := holder(t)
			upgrade(t)
			rolledOut(t)
			awaitHolder(t, "another leader", func(h string) bool { return h != "" && h != first })
			left, made, err := l.Stop()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d Tickets were made in %v, of which %d are left", made, time.Since(begin).Round(time.Second), left)
			f.exactlyOnce(t, left)
		})
	}
}
