package operator

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

var root, deploy = suite.Root(), suite.Deploy()

// What all tests share: a control plane on which install.yaml was applied as it
// stands, its clients with all rights, and the controller's program.
var (
	cluster   *controlplane.ControlPlane
	kubectl   controlplane.Kubectl
	core      *kubernetes.Clientset
	resources *dynamic.DynamicClient
	program   string
)

func TestMain(m *testing.M) { os.Exit(suite.Main(m, run)) }

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), suite.Setup)
	defer cancel()
	work, err := os.MkdirTemp("", "operator-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	program = filepath.Join(work, "ticket-controller")
	if err := suite.BuildController(ctx, program); err != nil {
		return 1, err
	}
	if cluster, err = controlplane.Start(ctx, controlplane.Options{Audit: true}); err != nil {
		return 1, err
	}
	defer func() {
		if e := cluster.Stop(); err == nil {
			err = e
		}
	}()
	if err := connect(); err != nil {
		return 1, err
	}
	if _, err := kubectl.Run(ctx, "", "apply", "--server-side", "-f", filepath.Join(deploy, "install.yaml")); err != nil {
		return 1, err
	}
	if _, err := kubectl.Run(ctx, "", "wait", "--for=condition=Established", "--timeout=30s", "crd/tickets.flights.com"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func connect() error {
	kubeconfig, err := cluster.AdminKubeconfig()
	if err != nil {
		return err
	}
	kubectl = cluster.Kubectl(kubeconfig)
	if core, err = kubernetes.NewForConfig(cluster.RESTConfig()); err != nil {
		return err
	}
	resources, err = dynamic.NewForConfig(cluster.RESTConfig())
	return err
}
