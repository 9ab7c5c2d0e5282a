package clients

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

// host is an API server that clients are driven against.
type host struct {
	name       string
	config     func() *rest.Config
	kubeconfig string   // a file
	env        []string // of a kubectl
}

// hosts are the real one and the fake, in this order.
var hosts []host

// kubectl is the path of a kubectl of the real server's version.
var kubectl string

func TestMain(m *testing.M) { os.Exit(suite.Main(m, run)) }

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), suite.Setup)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	file, err := cluster.AdminKubeconfig()
	if err != nil {
		return 1, err
	}
	kubectl = filepath.Join(cluster.BinDir(), "kubectl")
	hosts = append(hosts, host{"the real server", cluster.RESTConfig, file, cluster.KubectlEnv(file)})

	dir, err := os.MkdirTemp("", "fake-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	// No controller manager runs beside the real one either.
	s := fake.NewAPIServer(fake.APIOptions{TLS: true, NoControllers: true})
	defer s.Close()
	if err := s.Start("127.0.0.1:0"); err != nil {
		return 1, err
	}
	content, err := s.Kubeconfig()
	if err != nil {
		return 1, err
	}
	file = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return 1, err
	}
	env := append(cluster.KubectlEnv(file), "KUBECACHEDIR="+filepath.Join(dir, "cache"))
	hosts = append(hosts, host{"the fake", s.Config, file, env})
	return m.Run(), nil
}
