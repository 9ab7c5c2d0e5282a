package controllerruntime

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

const finalizer = "example.com/mirror"

// widgets is a definition whose objects the controller mirrors into ConfigMaps.
const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"text":{"type":"string","default":"none"}}},
"status":{"type":"object","properties":{"mirrored":{"type":"string"}}}}}}}]}}`

var kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func widget(name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(kind)
	w.SetNamespace("default")
	w.SetName(name)
	return w
}

// mirror is the controller.
type mirror struct{ client.Client }

// Reconcile makes the ConfigMap say what the widget does, and the status what was
// mirrored. The ConfigMap of a deleted widget goes before it.
func (m mirror) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := widget(req.Name)
	if err := m.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if w.GetDeletionTimestamp() != nil {
		if err := m.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		before := w.DeepCopy()
		controllerutil.RemoveFinalizer(w, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(m.Patch(ctx, w, client.MergeFrom(before)))
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		return ctrl.Result{}, m.Update(ctx, w)
	}
	text, _, err := unstructured.NestedString(w.Object, "spec", "text")
	if err != nil {
		return ctrl.Result{}, err
	}
	if _, err := controllerutil.CreateOrUpdate(ctx, m.Client, c, func() error {
		c.Data = map[string]string{"text": text}
		return controllerutil.SetControllerReference(w, c, m.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := w.DeepCopy()
	if err := unstructured.SetNestedField(w.Object, text, "status", "mirrored"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, m.Status().Patch(ctx, w, client.MergeFrom(before))
}

// started runs the manager for as long as the test, and returns a client that
// reads without a cache, and watches.
func started(t *testing.T, cfg *rest.Config) client.WithWatch {
	t.Helper()
	direct, err := client.NewWithWatch(cfg, client.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	define(t, direct)
	again := true
	m, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: clientscheme.Scheme, Cache: cache.Options{}, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "mirror", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		Controller: config.Controller{SkipNameValidation: &again}, // two servers, one process
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(m).For(widget("")).Owns(&corev1.ConfigMap{}).Complete(mirror{m.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
	return direct
}

// define makes the definition, and waits until it is served.
func define(t *testing.T, c client.WithWatch) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON([]byte(widgets)); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	await(t, c, crd, func(u *unstructured.Unstructured) bool {
		if u == nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions") // none is none yet
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return true
			}
		}
		return false
	})
	// Established is no promise that discovery lists it already.
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("discovery does not list it"))
	defer cancel()
	gvk := widget("").GroupVersionKind()
	for {
		_, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err == nil {
			return
		}
		if !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx), err)
		}
	}
}

// await reads an object, and goes on by watching until it is what is looked for;
// nil is one that is not there.
func await(t *testing.T, c client.WithWatch, like *unstructured.Unstructured, is func(*unstructured.Unstructured) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("it does not come to that"))
	defer cancel()
	list := &unstructured.UnstructuredList{}
	gvk := like.GroupVersionKind()
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	that := []client.ListOption{client.InNamespace(like.GetNamespace()), client.MatchingFields{"metadata.name": like.GetName()}}
	if err := c.List(ctx, list, that...); err != nil {
		t.Fatal(err)
	}
	var now *unstructured.Unstructured
	if len(list.Items) > 0 {
		now = &list.Items[0]
	}
	if is(now) {
		return
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	w, err := c.Watch(ctx, list, append(that, from)...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for {
		select {
		case ev, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch ends")
			}
			u, ok := ev.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("%s %v", ev.Type, ev.Object)
			}
			if ev.Type == "DELETED" {
				u = nil
			}
			if is(u) {
				return
			}
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}

func TestAControllerOfControllerRuntimeWorksOnBothServers(t *testing.T) {
	t.Parallel()
	log.SetLogger(logr.Discard()) // of the process, and only once
	for name, config := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := started(t, config)
			w := widget("a")
			w.Object["spec"] = map[string]any{} // whose default is filled in
			if err := c.Create(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			mirrored := func(text string) func(*unstructured.Unstructured) bool {
				return func(u *unstructured.Unstructured) bool {
					if u == nil {
						return false
					}
					got, _, _ := unstructured.NestedString(u.Object, "status", "mirrored") // none is none yet
					return got == text
				}
			}
			await(t, c, w, mirrored("none"))
			if err := c.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"other"}}`))); err != nil {
				t.Fatal(err)
			}
			await(t, c, w, mirrored("other"))
			copied := &corev1.ConfigMap{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), copied); err != nil {
				t.Fatal(err)
			}
			yes := true
			if diff := cmp.Diff([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: "a", UID: w.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}},
				copied.OwnerReferences); diff != "" || copied.Data["text"] != "other" {
				t.Errorf("%v, owners (-want +got):\n%s", copied.Data, diff)
			}
			// What somebody else does to the copy is put right.
			if err := c.Delete(t.Context(), copied); err != nil {
				t.Fatal(err)
			}
			again := &unstructured.Unstructured{}
			again.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			again.SetNamespace("default")
			again.SetName("a")
			await(t, c, again, func(u *unstructured.Unstructured) bool { return u != nil && u.GetUID() != copied.UID })
			if err := c.Delete(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			await(t, c, again, func(u *unstructured.Unstructured) bool { return u == nil })
			await(t, c, w, func(u *unstructured.Unstructured) bool { return u == nil })
		})
	}
}

// servers are the real one and the fake.
func servers(t *testing.T) map[string]*rest.Config {
	t.Helper()
	// The first time, the programs are built.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := fake.NewAPIServer(fake.APIOptions{})
	t.Cleanup(s.Close)
	return map[string]*rest.Config{"the real server": cluster.RESTConfig(), "the fake": s.Config()}
}
