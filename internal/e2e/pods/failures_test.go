package pods

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestALeaderWhoseContainerIsKilledDuringACallIsFollowedAndThereIsOneBookingEach(t *testing.T) {
	operator(t)
	f, first, began := newFlights(t), holder(t), time.Now()
	leads := inCall(t, f)
	if err := cluster.SignalContainer(t.Context(), leads, "controller", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	f.book(t, "two", "three")
	awaitHolder(t, "another leader", func(h string) bool { return h != "" && h != first })
	t.Logf("another one led %v after the kill", time.Since(killed).Round(100*time.Millisecond))
	f.exactlyOnce(t, 3)
	t.Logf("all was booked %v after the kill", time.Since(killed).Round(100*time.Millisecond))
	restarted(t, leads)
	f.exactlyOnce(t, 3)
	// Whichever led then, the container that ran anew perhaps: a booking that the first
	// one had asked for was found, and not asked for again.
	if n := site.creates(began); n != 3 {
		t.Errorf("three Tickets were booked by %d requests", n)
	}
}

func TestALeaderThatHangsIsFollowedAndTheKubeletRestartsItsContainer(t *testing.T) {
	operator(t)
	f, first := newFlights(t), holder(t)
	leads := inCall(t, f)
	if err := cluster.SignalContainer(t.Context(), leads, "controller", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	f.book(t, "two", "three")
	awaitHolder(t, "another leader", func(h string) bool { return h != "" && h != first })
	t.Logf("another one led after %v", time.Since(stopped).Round(100*time.Millisecond))
	await(t, podResource, namespace, "a pod that is not ready", func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.Name == leads.Name {
				return !ready(p)
			}
		}
		return false
	})
	t.Logf("the kubelet took it out after %v", time.Since(stopped).Round(100*time.Millisecond))
	f.exactlyOnce(t, 3)
	restarted(t, leads)
	t.Logf("its container ran anew after %v", time.Since(stopped).Round(100*time.Millisecond))
	await(t, eventResource, namespace, "an Event of the liveness probe", func(events []*corev1.Event) bool {
		for _, e := range events {
			if e.InvolvedObject.Name == leads.Name && e.Reason == "Unhealthy" && strings.HasPrefix(e.Message, "Liveness probe failed") {
				return true
			}
		}
		return false
	})
	f.exactlyOnce(t, 3)
}

func TestADrainMovesTheLeaderAndNeverTakesTheLastPod(t *testing.T) {
	operator(t)
	f, first := newFlights(t), holder(t)
	f.book(t, "one")
	f.exactlyOnce(t, 1)
	leads, stands := leader(t)
	t.Cleanup(func() {
		for _, p := range []*corev1.Pod{leads, stands} {
			if _, err := kubectl.Run(context.WithoutCancel(t.Context()), "", "uncordon", p.Spec.NodeName); err != nil {
				t.Error(err)
			}
		}
	})
	// With no node left for another pod, the second one is the last.
	must(t, "cordon", stands.Spec.NodeName)
	f.book(t, "two")
	begin := time.Now()
	must(t, "drain", leads.Spec.NodeName, "--timeout=100s")
	t.Logf("the drain took %v", time.Since(begin).Round(100*time.Millisecond))
	awaitHolder(t, "the other pod to lead", func(h string) bool { return h != first && strings.HasPrefix(h, stands.Name+"_") })
	t.Logf("the other pod led %v after the drain began", time.Since(begin).Round(100*time.Millisecond))
	f.book(t, "three")
	f.exactlyOnce(t, 3)

	_, err := kubectl.Run(patiently(t, "a drain"), "", "drain", stands.Spec.NodeName, "--timeout=8s")
	if err == nil || !strings.Contains(err.Error(), "would violate the pod's disruption budget") {
		t.Errorf("draining the last pod's node: %v", err)
	}
	if p := pod(t, stands.Name); !ready(p) || p.DeletionTimestamp != nil {
		t.Error("the last pod was taken")
	}
	f.book(t, "four")
	f.exactlyOnce(t, 4)

	must(t, "uncordon", leads.Spec.NodeName)
	must(t, "uncordon", stands.Spec.NodeName)
	for _, p := range readyPods(t) {
		if p.Name != stands.Name && p.Spec.NodeName != leads.Spec.NodeName {
			t.Errorf("the new pod is on %s", p.Spec.NodeName)
		}
	}
	f.exactlyOnce(t, 4)
}

func TestALeaderOnAFrozenNodeIsReplacedAndDoesNothingWhenItIsBack(t *testing.T) {
	operator(t)
	f, first := newFlights(t), holder(t)
	leads := inCall(t, f)
	its := node(t, leads)
	frozen := time.Now()
	if err := its.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a node that goes on is told nothing by it
		if err := its.Thaw(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	f.book(t, "two", "three")
	awaitHolder(t, "another leader", func(h string) bool { return h != "" && h != first })
	t.Logf("another one led after %v", time.Since(frozen).Round(100*time.Millisecond))
	f.exactlyOnce(t, 3)
	await(t, podResource, namespace, "two pods that are ready on the other node", func(pods []*corev1.Pod) bool {
		n := 0
		for _, p := range pods {
			if p.Spec.NodeName != its.Name() && ready(p) && p.DeletionTimestamp == nil {
				n++
			}
		}
		return n == 2
	})
	t.Logf("two pods were ready on the other node after %v", time.Since(frozen).Round(100*time.Millisecond))

	thawed := time.Now()
	if err := its.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.book(t, "four") // something to do for whoever believes that it leads
	readyPods(t)
	t.Logf("what had been on the node was gone %v after it went on", time.Since(thawed).Round(100*time.Millisecond))
	must(t, "wait", "--for=condition=Ready", "node/"+its.Name(), "--timeout=60s")
	f.exactlyOnce(t, 4)
	for _, c := range site.callsFrom(leads.Status.PodIP, thawed) {
		if c.acts() {
			t.Errorf("back from the ice, the old leader sent %s %s", c.method, c.path)
		}
	}
}

// inCall has a Ticket booked, and returns the pod that leads while it waits for the
// answer.
func inCall(t *testing.T, f flights) *corev1.Pod {
	t.Helper()
	leads, _ := leader(t)
	reached := site.answerLate(t, 4*time.Second) // less than the call's time, which is five
	f.book(t, "one")
	reached()
	return leads
}

// restarted waits until a pod's container runs anew and the pod is ready again.
func restarted(t *testing.T, which *corev1.Pod) {
	t.Helper()
	await(t, podResource, namespace, "a container that runs anew", func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.Name == which.Name {
				return ready(p) && p.Status.ContainerStatuses[0].RestartCount == which.Status.ContainerStatuses[0].RestartCount+1
			}
		}
		return false
	})
}
