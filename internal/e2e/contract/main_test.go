package contract

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

// cluster is the control plane that all tests share, each in a namespace of its own.
var cluster *controlplane.ControlPlane

// admin may do anything on it; no fault of a test touches its requests.
var admin dynamic.Interface

func TestMain(m *testing.M) {
	os.Exit(suite.Main(m, func(m *testing.M) (int, error) {
		suite.ManyAtOnce(12)
		code, err := run(m)
		if err == nil && code == 0 {
			err = goleak.Find()
		}
		return code, err
	}))
}

func run(m *testing.M) (code int, err error) {
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
	var client *http.Client
	if client, err = rest.HTTPClientFor(cluster.RESTConfig()); err != nil {
		return 1, err
	}
	defer client.CloseIdleConnections()
	if admin, err = dynamic.NewForConfigAndClient(cluster.RESTConfig(), client); err != nil {
		return 1, err
	}
	for _, d := range []definition{
		{Group: groupVersion.Group, Kind: "Gadget", Plural: "gadgets"},
		{Group: groupVersion.Group, Kind: "Depot", Plural: "depots", ClusterScoped: true},
		{Group: groupVersion.Group, Kind: "Part", Plural: "parts", NoStatus: true},
	} {
		if err := define(ctx, d); err != nil {
			return 1, err
		}
	}
	if err := defineTickets(ctx); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// defineTickets applies the definition that is shipped.
func defineTickets(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "ticket-controller", "deploy", "crd.yaml"))
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		return err
	}
	return defineObject(ctx, crd)
}

// define makes a definition, and waits until it is served.
func define(ctx context.Context, d definition) error {
	return defineObject(ctx, &unstructured.Unstructured{Object: d.object()})
}

func defineObject(ctx context.Context, crd *unstructured.Unstructured) error {
	if _, err := admin.Resource(definitions).Create(ctx, crd, created); err != nil {
		return err
	}
	_, err := watched(ctx, admin.Resource(definitions), crd.GetName(), func(u *unstructured.Unstructured) bool {
		return conditionOf(u, "Established") == "True"
	})
	return err
}
