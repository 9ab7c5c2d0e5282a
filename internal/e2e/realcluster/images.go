package realcluster

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
)

// LoadImage loads the images in an archive, as `docker save` and package image
// write it, on every node. Pods name them as the archive does, and with an
// imagePullPolicy other than Always: there is nowhere to pull from.
func (c *Cluster) LoadImage(ctx context.Context, file string) error {
	errs := make(chan error, len(c.nodes))
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		wg.Go(func() { errs <- n.loadImage(ctx, file) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) loadImage(ctx context.Context, file string) error {
	path, err := filepath.Abs(file) // the machine has another current folder
	if err != nil {
		return err
	}
	if _, err := n.ctr(ctx, "images", "import", path); err != nil {
		return fmt.Errorf("loading the image %s: %w", file, err)
	}
	return nil
}

// ctr runs containerd's client on what the kubelet sees.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	return n.machine.Run(ctx, "", n.cluster.nodeSet.Ctr(), append([]string{"--address=" + containerdAt, "--namespace=k8s.io"}, args...)...)
}
