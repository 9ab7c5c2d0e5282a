package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

// deploy is where the Ticket's definition and the samples are.
var deploy = filepath.Join("..", "..", "examples", "ticket-controller", "deploy")

// cluster is the control plane that all tests share, each in a namespace of its
// own, with the Ticket's definition. A test that stops a server or takes the
// definition away starts one for itself.
var cluster *controlplane.ControlPlane

// account is a ServiceAccount of the shared control plane that may do what a
// controller may.
var account *rest.Config

func TestMain(m *testing.M) {
	os.Exit(suite.Main(m, func(m *testing.M) (int, error) {
		suite.ManyAtOnce(8)
		return run(m)
	}))
}

func run(m *testing.M) (code int, err error) {
	programs, err = os.MkdirTemp("", "programs-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs)
	ctx, cancel := context.WithTimeout(context.Background(), suite.Setup)
	defer cancel()
	cluster, err = controlplane.Start(ctx, controlplane.Options{Audit: true})
	if err != nil {
		return 1, err
	}
	defer func() {
		if e := cluster.Stop(); err == nil {
			err = e
		}
	}()
	if err := define(ctx, cluster); err != nil {
		return 1, err
	}
	if account, err = grant(ctx, cluster); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// define applies the Ticket's definition, and waits until it is served.
func define(ctx context.Context, c *controlplane.ControlPlane) error {
	kubeconfig, err := c.AdminKubeconfig()
	if err != nil {
		return err
	}
	kubectl := c.Kubectl(kubeconfig)
	if _, err := kubectl.Run(ctx, "", "apply", "-f", filepath.Join(deploy, "crd.yaml")); err != nil {
		return err
	}
	_, err = kubectl.Run(ctx, "", "wait", "--for=condition=Established", "--timeout=30s", "crd/tickets.flights.com")
	return err
}

// world is what one test has for itself.
type world struct {
	cluster   *controlplane.ControlPlane
	account   *rest.Config // of who may do what a controller may
	namespace string
	kubectl   controlplane.Kubectl
	dynamic   dynamic.Interface
}

// setup makes a namespace, which goes with the control plane.
func setup(t *testing.T) *world {
	t.Helper()
	return setupOn(t, cluster, account)
}

func setupOn(t *testing.T, cluster *controlplane.ControlPlane, account *rest.Config) *world {
	t.Helper()
	core, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ns, err := core.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{cluster: cluster, account: account, namespace: ns.Name}
	if w.dynamic, err = dynamic.NewForConfig(cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl = cluster.Kubectl(kubeconfig)
	return w
}

var tickets = schema.GroupVersionResource{Group: "flights.com", Version: "v1", Resource: "tickets"}

// run runs kubectl in the test's namespace, and fails the test where it fails.
func (w *world) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.kubectl.Run(t.Context(), "", append([]string{"--namespace=" + w.namespace}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused runs kubectl, and fails the test unless it fails, with these words.
func (w *world) refused(t *testing.T, input string, words string, args ...string) {
	t.Helper()
	_, err := w.kubectl.Run(t.Context(), input, append([]string{"--namespace=" + w.namespace}, args...)...)
	if err == nil {
		t.Fatalf("kubectl %s was accepted", strings.Join(args, " "))
	}
	if !strings.Contains(err.Error(), words) {
		t.Errorf("kubectl %s was refused without the words %q:\n%v", strings.Join(args, " "), words, err)
	}
}

// apply applies the smallest Ticket, changed by a JSON merge patch.
func (w *world) apply(t *testing.T, name, patch string) {
	t.Helper()
	if _, err := w.kubectl.Run(t.Context(), ticket(t, name, patch), "--namespace="+w.namespace, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// create makes a Ticket as apply does, without a kubectl.
func (w *world) create(t *testing.T, name, patch string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(ticket(t, name, patch))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.dynamic.Resource(tickets).Namespace(w.namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// remove deletes a Ticket, and does not wait until it is gone.
func (w *world) remove(t *testing.T, name string) {
	t.Helper()
	if err := w.dynamic.Resource(tickets).Namespace(w.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}
