package tether

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/internal/kube"
)

func (c *controller[T]) wantsClusterID() bool {
	return c.external != nil && c.external.opts.ClusterID == ""
}

var namespaces = kube.Resource{GroupVersion: corev1.SchemeGroupVersion, Kind: "Namespace", Plural: "namespaces", ClusterScoped: true}

func forbiddenClusterID(err error) error {
	return fmt.Errorf(`the cluster's id is the UID of namespace kube-system, and reading it is forbidden: %w; grant "get" on resource "namespaces" with resourceNames ["kube-system"], or set ManageOptions.ClusterID`, err)
}

// ClusterID is what stands for a cluster in references where
// ManageOptions.ClusterID is not set: the UID of namespace kube-system. It makes one
// request, and closes what it opened.
func ClusterID(ctx context.Context, cfg *rest.Config) (string, error) {
	conn, err := kube.Dial(cfg, nil)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	client, err := kube.NewClient[*corev1.Namespace](conn, namespaces)
	if err != nil {
		return "", err
	}
	ns, err := client.Get(ctx, Key{Name: metav1.NamespaceSystem})
	switch {
	case apierrors.IsForbidden(err):
		return "", forbiddenClusterID(err)
	case err != nil:
		return "", fmt.Errorf("the cluster's id is the UID of namespace kube-system: %w", err)
	}
	return string(ns.UID), nil
}

// findCluster reads the UID of namespace kube-system, once: what references of
// this cluster begin with. Where that is forbidden, waiting helps nobody.
func (r *running) findCluster(ctx context.Context) bool {
	client, err := kube.NewClient[*corev1.Namespace](r.env.conn, namespaces)
	if err != nil {
		r.env.fail(err)
		return false
	}
	for wait, said := 250*time.Millisecond, false; ; wait = min(2*wait, 5*time.Second) {
		ns, err := client.Get(ctx, Key{Name: metav1.NamespaceSystem})
		switch {
		case err == nil:
			r.env.cluster = string(ns.UID)
			return true
		case ctx.Err() != nil:
			return false
		case apierrors.IsForbidden(err):
			r.env.fail(fmt.Errorf("Run: %w", forbiddenClusterID(err)))
			return false
		case !said:
			said = true
			r.env.log.Info("waiting for the cluster's id", "cause", err.Error())
		}
		r.note("waiting for the cluster's id: "+err.Error(), true)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails: see its documentation
	return hex.EncodeToString(b[:])
}
