package clients

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// onEach runs a test on each server.
func onEach(t *testing.T, test func(t *testing.T, cfg *rest.Config, ns string)) {
	t.Helper()
	ns := namespace(t)
	for _, h := range hosts {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			cfg := h.config()
			space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
			if _, err := clientset(t, cfg).CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			test(t, cfg, ns)
		})
	}
}

func clientset(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// next waits for what a channel brings.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

func TestInformersHearOfEverything(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg *rest.Config, ns string) {
		c := clientset(t, cfg)
		maps := c.CoreV1().ConfigMaps(ns)
		for _, name := range []string{"a", "b"} {
			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		heard := make(chan string, 100)
		factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(ns))
		informer := factory.Core().V1().ConfigMaps()
		if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { heard <- "added " + o.(*corev1.ConfigMap).Name },
			UpdateFunc: func(_, o any) { heard <- "updated " + o.(*corev1.ConfigMap).Name },
			DeleteFunc: func(o any) { heard <- "deleted " + o.(*corev1.ConfigMap).Name },
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer func() {
			cancel()
			factory.Shutdown()
		}()
		first := []string{next(t, heard), next(t, heard)}
		slices.Sort(first)
		if diff := cmp.Diff([]string{"added a", "added b"}, first); diff != "" {
			t.Errorf("at first (-want +got):\n%s", diff)
		}
		if _, err := maps.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := maps.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"updated a", "deleted b"}, []string{next(t, heard), next(t, heard)}); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
		all, err := informer.Lister().List(labels.Everything())
		if err != nil || len(all) != 1 || all[0].Data["k"] != "v" {
			t.Errorf("the store has %v, %v", all, err)
		}
	})
}

func TestTheDynamicClientMapsAndWatches(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg *rest.Config, ns string) {
		d, err := discovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		leases := c.Resource(mapping.Resource).Namespace(ns)
		w, err := leases.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		lease := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "l"}, "spec": map[string]any{"holderIdentity": "me"},
		}}
		applied, err := leases.Apply(t.Context(), "l", lease, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			t.Fatal(err)
		}
		ev := next(t, w.ResultChan())
		if diff := cmp.Diff(applied, ev.Object); ev.Type != "ADDED" || diff != "" {
			t.Errorf("%s (-want +got):\n%s", ev.Type, diff)
		}
		list, err := leases.List(t.Context(), metav1.ListOptions{Limit: 1})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("%v, %v", list, err)
		}
		if err := leases.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if ev := next(t, w.ResultChan()); ev.Type != "DELETED" {
			t.Errorf("%s", ev.Type)
		}
	})
}

func TestALeaderIsElectedAndAnotherFollows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg *rest.Config, ns string) {
		led := make(chan string, 10)
		run := func(ctx context.Context, name string) <-chan struct{} {
			lock := &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: ns, Name: "lock"}, Client: clientset(t, cfg).CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			}
			e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { led <- name },
					OnStoppedLeading: func() {},
				},
			})
			if err != nil {
				t.Error(err)
				return nil
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				e.Run(ctx)
			}()
			return ended
		}
		one, stopOne := context.WithCancel(t.Context())
		defer stopOne()
		two, stopTwo := context.WithCancel(t.Context())
		defer stopTwo()
		oneEnded := run(one, "one")
		if name := next(t, led); name != "one" {
			t.Errorf("%s leads", name)
		}
		twoEnded := run(two, "two")
		stopOne()
		next(t, oneEnded)
		if name := next(t, led); name != "two" {
			t.Errorf("%s leads", name)
		}
		lease, err := clientset(t, cfg).CoordinationV1().Leases(ns).Get(t.Context(), "lock", metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != "two" || *lease.Spec.LeaseTransitions < 1 {
			t.Errorf("%+v, %v", lease, err)
		}
		stopTwo()
		next(t, twoEnded)
	})
}
