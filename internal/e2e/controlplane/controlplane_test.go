package controlplane_test

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

func setup(t *testing.T, o controlplane.Options) (*controlplane.ControlPlane, kubernetes.Interface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first time, it is built
	defer cancel()
	c, err := controlplane.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c, client(t, c.RESTConfig())
}

func client(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestARestartKeepsObjectsAndForgetsEvents(t *testing.T) {
	t.Parallel()
	c, core := setup(t, controlplane.Options{Progress: io.Discard})
	maps := core.CoreV1().ConfigMaps("default")
	before, err := maps.Create(t.Context(), configMap("before"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), configMap("after"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err == nil {
		defer w.Stop()
		event := <-w.ResultChan()
		if event.Type != watch.Error {
			t.Fatalf("the watch goes on with %s", event.Type)
		}
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("the watch from before the restart: %v", err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	c, core := setup(t, controlplane.Options{Progress: io.Discard})
	kubeconfig, err := c.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the kubeconfig file has mode %o", mode)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, cfg).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the kubeconfig file does not work: %v", err)
	}
	for range 2 { // a second time does no harm
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := core.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the API server answers")
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := controlplane.Start(t.Context(), controlplane.Options{Progress: io.Discard, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended") || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("%v", err)
	}
}

func TestAServiceAccountMayDoWhatItsRoleSaysAlsoThroughAProxy(t *testing.T) {
	t.Parallel()
	c, core := setup(t, controlplane.Options{Progress: io.Discard, Audit: true})
	ctx := t.Context()
	if _, err := core.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.RbacV1().Roles("default").Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: "default"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg, err := c.ServiceAccount(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := c.ServingCertificate()
	if err != nil {
		t.Fatal(err)
	}
	requests, err := proxy.ListenHTTP(proxy.HTTPOptions{Name: "api", Target: c.URL(), Certificate: &certificate, Trust: c.CAPool()})
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close()
	address, err := url.Parse(requests.URL())
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := proxy.ListenTCP(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer bytes.Close()
	cfg.Host = "https://" + bytes.Addr()
	cfg.UserAgent = "the-reader"

	maps := client(t, cfg).CoreV1().ConfigMaps("default")
	if _, err := maps.List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("it may not read: %v", err)
	}
	if _, err := maps.Create(ctx, configMap("no"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("it may write: %v", err)
	}
	if got, want := requests.Journal().String(), "   1 api GET /api/v1/namespaces/default/configmaps → 200\n   2 api POST /api/v1/namespaces/default/configmaps → 403\n"; got != want {
		t.Errorf("the journal:\n%s", got)
	}
	audit, err := c.Audit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := audit.Requests(func(r controlplane.Request) bool { return r.UserAgent == "the-reader" })
	if err != nil {
		t.Fatal(err)
	}
	if got := controlplane.ByVerb(controlplane.Complete(recorded)); len(got) != 2 || got["list configmaps"] != 1 || got["create configmaps"] != 1 {
		t.Errorf("the audit log has %v", got)
	}
	if last := recorded[len(recorded)-1]; last.Response.Code != 403 || last.User.Name != "system:serviceaccount:default:reader" {
		t.Errorf("the last record is %+v", last)
	}
}
