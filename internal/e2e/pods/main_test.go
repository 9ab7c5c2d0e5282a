package pods

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/image"
	"github.com/tetherkube/tether/internal/e2e/realcluster"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

// slow has tests wait for what takes a quarter of an hour.
var slow = flag.Bool("slow", false, "wait until the kubelet renews a token, which takes a quarter of an hour")

const namespace = "ticket-controller"

// The names that the same program has on the nodes: the one of install.yaml, and
// a next version's.
const (
	installed = "registry.example.com/ticket-controller:v0.2.0"
	next      = "registry.example.com/ticket-controller:v0.2.1"
)

var deploy = suite.Deploy()

// What all tests share. Each begins with the operator as `operator` leaves it, and
// so they run one after the other.
var (
	cluster   *realcluster.Cluster
	kubectl   controlplane.Kubectl
	core      kubernetes.Interface
	resources *dynamic.DynamicClient
	site      *bookingSite
)

func TestMain(m *testing.M) { os.Exit(suite.Main(m, run)) }

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), suite.Setup)
	defer cancel()
	work, err := os.MkdirTemp("", "pods-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	images, err := buildImages(ctx, work)
	if err != nil {
		return 1, err
	}
	if cluster, err = realcluster.Start(ctx, realcluster.Options{Nodes: 2, Images: images, ShortTolerations: true}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if site, err = startSite(ctx, cluster); err != nil {
		return 1, err
	}
	defer site.stop()
	if err := connect(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// buildImages compiles the controller, and writes it as the files of two images.
func buildImages(ctx context.Context, work string) (files []string, err error) {
	program := filepath.Join(work, "ticket-controller")
	if err := suite.BuildController(ctx, program); err != nil {
		return nil, err
	}
	for _, name := range []string{installed, next} {
		file := filepath.Join(work, fmt.Sprintf("%d.tar", len(files)))
		if err := image.Write(file, image.Options{Name: name, Program: program}); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func connect() error {
	kubeconfig, err := cluster.AdminKubeconfig()
	if err != nil {
		return err
	}
	kubectl = cluster.Kubectl(kubeconfig)
	if core, err = cluster.Client(); err != nil {
		return err
	}
	resources, err = dynamic.NewForConfig(cluster.RESTConfig())
	return err
}
