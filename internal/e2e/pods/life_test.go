package pods

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTwoPodsBookUnderTheRestrictedProfile(t *testing.T) {
	operator(t)
	if got := must(t, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); got != "restricted" {
		t.Errorf("Pod Security enforces %q", got)
	}
	must(t, "get", "networkpolicy", "-n", namespace, "ticket-controller") // accepted, and enforced by nobody here
	leads, stands := leader(t)
	for _, p := range []*corev1.Pod{leads, stands} {
		if got := p.Spec.Containers[0].Image; got != installed {
			t.Errorf("pod %s runs %s", p.Name, got)
		}
	}

	f, begin := newFlights(t), time.Now()
	f.book(t, "one", "two", "three")
	f.exactlyOnce(t, 3)
	t.Logf("three Tickets were booked after %v", time.Since(begin).Round(time.Millisecond))
	if err := f.Change(t.Context(), "two", "other"); err != nil {
		t.Fatal(err)
	}
	f.exactlyOnce(t, 3)
	if calls := site.callsFrom(leads.Status.PodIP, begin); len(calls) < 4 {
		t.Errorf("the pod that leads made %d calls: %v", len(calls), calls)
	}
	if calls := site.callsFrom(stands.Status.PodIP, time.Time{}); len(calls) > 0 {
		t.Errorf("the pod that does not lead made calls: %v", calls)
	}
	for _, p := range []*corev1.Pod{leads, stands} {
		if got, had := pod(t, p.Name).Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].RestartCount; got != had {
			t.Errorf("pod %s was restarted %d times meanwhile", p.Name, got-had)
		}
	}
	if log := must(t, "logs", "-n", namespace, leads.Name); !strings.Contains(log, `"controllers run"`) {
		t.Errorf("kubectl logs has not that controllers run:\n%s", log)
	}
}

func TestTheKubeletProbesEveryPod(t *testing.T) {
	operator(t)
	for _, p := range readyPods(t) {
		for _, kind := range []string{"Liveness", "Readiness"} {
			eventually(t, fmt.Sprintf("a %s probe of %s", kind, p.Name), func(ctx context.Context) (bool, error) {
				counted, err := kubectl.Run(ctx, "", "get", "--raw", "/api/v1/nodes/"+p.Spec.NodeName+"/proxy/metrics/probes")
				return probed(counted, p.Name, kind), err
			})
		}
	}
	// That it heeds them too is shown by a container that hangs.
}

// probed tells whether a kubelet has counted a probe of a pod that succeeded.
func probed(metrics, pod, kind string) bool {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "prober_probe_total{") && strings.Contains(line, `pod="`+pod+`"`) &&
			strings.Contains(line, `probe_type="`+kind+`"`) && strings.Contains(line, `result="successful"`) {
			return true
		}
	}
	return false
}
