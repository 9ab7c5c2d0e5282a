package realcluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// ready waits until pods may be made and will run: every node is ready, and the
// ServiceAccount is there that pods have by default.
func (c *Cluster) ready(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	core := client.CoreV1()
	for _, n := range c.nodes {
		err := c.await(ctx, core.RESTClient(), "nodes", "", n.name, &corev1.Node{}, func(o runtime.Object) bool {
			node, ok := o.(*corev1.Node)
			return ok && isReady(node)
		})
		if err != nil {
			return fmt.Errorf("%w; what it said last:\n%s", err, n.Log(10))
		}
	}
	return c.await(ctx, core.RESTClient(), "serviceaccounts", metav1.NamespaceDefault, "default", &corev1.ServiceAccount{},
		func(runtime.Object) bool { return true })
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// await waits until an object is as wanted, or a program of the cluster ends.
func (c *Cluster) await(ctx context.Context, client cache.Getter, resource, namespace, name string, of runtime.Object, wanted func(runtime.Object) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := c.Ended(ctx); err != nil {
			cancel(err)
		}
	}()
	lw := cache.NewListWatchFromClient(client, resource, namespace, fields.OneTermEqualSelector("metadata.name", name))
	_, err := watchtools.UntilWithSync(ctx, lw, of, nil, func(e watch.Event) (bool, error) {
		return e.Type != watch.Deleted && wanted(e.Object), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s %s: %w (%w)", resource, name, err, context.Cause(ctx))
	}
	return nil
}
