package pods

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/e2e/realcluster"
)

// must runs kubectl, and fails the test where it fails.
func must(t *testing.T, args ...string) string {
	t.Helper()
	return mustWith(t, "", args...)
}

// mustWith is must with something to read.
func mustWith(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := kubectl.Run(patiently(t, "kubectl "+args[0]), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// operator leaves the operator installed by steps 2 to 4 of its README, with its
// two pods ready, one on each node. What the test does with it is taken away at its end,
// also where it fails, and after it has told why.
func operator(t *testing.T) {
	t.Helper()
	install(t)
	t.Cleanup(func() { takeAway(t) })
	t.Cleanup(func() {
		if t.Failed() {
			explain(t)
		}
	})
	rolledOut(t)
	pods := readyPods(t)
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		// The scheduler prefers to spread them, and does not move what runs.
		must(t, "delete", "pod", "-n", namespace, pods[0].Name)
		pods = readyPods(t)
	}
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Fatalf("both pods are on %s", pods[0].Spec.NodeName)
	}
}

// install applies install.yaml and what an administrator says of the booking
// server.
func install(t *testing.T) {
	t.Helper()
	// Also where a test has changed it by other means.
	must(t, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(deploy, "install.yaml"))
	must(t, "wait", "--for=condition=Established", "--timeout=30s", "crd/tickets.flights.com")
	for _, args := range [][]string{
		// What is unknown is looked up after five seconds instead of a minute, and
		// the booking server bears a load.
		{
			"create", "configmap", "ticket-controller", "--from-literal=TICKET_CONTROLLER_BOOKING_URL=" + site.url,
			"--from-literal=TICKET_CONTROLLER_CALL_TIMEOUT=5s", "--from-literal=TICKET_CONTROLLER_SETTLE=5s",
			"--from-literal=TICKET_CONTROLLER_BOOKING_RATE=100",
		},
		{"create", "secret", "generic", "ticket-controller-booking", "--from-literal=token=token-of-the-tests"},
	} {
		made := must(t, append(args, "-n", namespace, "--dry-run=client", "-o", "yaml")...)
		mustWith(t, made, "apply", "--server-side", "-f", "-")
	}
}

func rolledOut(t *testing.T) {
	t.Helper()
	must(t, "rollout", "status", "-n", namespace, "deployment/ticket-controller", "--timeout=100s")
}

// readyPods waits until there are two pods, both ready, and no other.
func readyPods(t *testing.T) []*corev1.Pod {
	t.Helper()
	return await(t, podResource, namespace, "two pods that are ready", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if !ready(pod) || pod.DeletionTimestamp != nil {
				return false
			}
		}
		return len(pods) == 2
	})
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// leader waits until one of the two pods leads, and returns it and the other one.
func leader(t *testing.T) (leads, stands *corev1.Pod) {
	t.Helper()
	pods := readyPods(t)
	awaitHolder(t, "a leader", func(holder string) bool {
		for i, pod := range pods {
			// The identity is the host's name, which is the pod's, and a random part.
			if strings.HasPrefix(holder, pod.Name+"_") {
				leads, stands = pod, pods[1-i]
			}
		}
		return leads != nil
	})
	return leads, stands
}

// holder is the identity that holds the Lease.
func holder(t *testing.T) (is string) {
	t.Helper()
	awaitHolder(t, "a leader", func(h string) bool { is = h; return h != "" })
	return is
}

func awaitHolder(t *testing.T, what string, wanted func(holder string) bool) {
	t.Helper()
	await(t, leaseResource, namespace, what, func(leases []*coordinationv1.Lease) bool {
		return len(leases) == 1 && leases[0].Spec.HolderIdentity != nil && wanted(*leases[0].Spec.HolderIdentity)
	})
}

// node is the one that a pod is on.
func node(t *testing.T, pod *corev1.Pod) *realcluster.Node {
	t.Helper()
	for _, n := range cluster.Nodes() {
		if n.Name() == pod.Spec.NodeName {
			return n
		}
	}
	t.Fatalf("pod %s is on no node: %q", pod.Name, pod.Spec.NodeName)
	return nil
}

// pod is a pod as it is now.
func pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p, err := core.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// explain logs what there is to know about a test that failed.
func explain(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, args := range [][]string{
		{"get", "nodes,pods,leases,tickets", "-A", "-o", "wide"},
		{"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
		{"logs", "-n", namespace, "-l", "app.kubernetes.io/name=ticket-controller", "--tail=40", "--prefix"},
	} {
		out, err := kubectl.Run(ctx, "", args...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
