package realcluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// Freeze stops everything on the node where it stands: kubelet, containerd, and
// the processes of its pods. Nobody is told: connections stay open and say
// nothing.
func (n *Node) Freeze(ctx context.Context) error { return n.machine.Freeze(ctx) }

// Thaw has a node that was frozen go on.
func (n *Node) Thaw(ctx context.Context) error { return n.machine.Thaw(ctx) }

// SignalContainer sends a signal to the first process of a container of a pod that
// runs. Nobody is told: what the kubelet sees after SIGKILL is a container that
// ended by itself, and after SIGSTOP one that hangs.
func (c *Cluster) SignalContainer(ctx context.Context, pod *corev1.Pod, container string, signal syscall.Signal) error {
	n, err := c.nodeOf(pod)
	if err != nil {
		return err
	}
	for _, s := range pod.Status.ContainerStatuses {
		if id, ok := strings.CutPrefix(s.ContainerID, "containerd://"); ok && s.Name == container {
			_, err := n.ctr(ctx, "tasks", "kill", "--signal="+strconv.Itoa(int(signal)), id)
			return err
		}
	}
	return fmt.Errorf("no container %s of the pod %s/%s runs", container, pod.Namespace, pod.Name)
}

// ReadProjected reads a file of a projected volume as a pod's containers have it.
func (c *Cluster) ReadProjected(ctx context.Context, pod *corev1.Pod, volume, file string) (string, error) {
	n, err := c.nodeOf(pod)
	if err != nil {
		return "", err
	}
	// It is mounted on the machine alone.
	return n.machine.Run(ctx, "", "cat", filepath.Join(n.file("kubelet"), "pods", string(pod.UID), "volumes", "kubernetes.io~projected", volume, file))
}

func (c *Cluster) nodeOf(pod *corev1.Pod) (*Node, error) {
	for _, n := range c.nodes {
		if n.name == pod.Spec.NodeName {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the pod %s/%s is on %q, which is no node of this cluster", pod.Namespace, pod.Name, pod.Spec.NodeName)
}
