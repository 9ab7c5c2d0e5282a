package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	events      = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

	created = metav1.CreateOptions{FieldManager: "a-person"}
)

func served(plural string) schema.GroupVersionResource { return at(groupVersion.Group, plural) }

func at(group, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
}

// stage is what one test has for itself: a namespace, and a wire to the API server.
type stage struct {
	namespace string
	wire      *wire
	log       *logbook
}

// setup makes a namespace, which goes with the control plane. When the test fails,
// it shows what went over the wire, and the log.
func setup(t *testing.T) *stage {
	t.Helper()
	ns, err := admin.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", map[string]any{"metadata": map[string]any{"generateName": "test-"}}), created)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{namespace: ns.GetName(), wire: newWire(), log: &logbook{}}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		var lines []string
		for _, e := range s.wire.log.all(nil) {
			lines = append(lines, e.Began.Format("05.000 ")+e.String()+" "+e.Body)
		}
		t.Logf("what went over the wire:\n%s", strings.Join(lines, "\n"))
		t.Logf("the log:\n%s", strings.Join(s.log.all(nil), "\n"))
	})
	return s
}

// config is what Run is given: the rights of an admin, over the stage's wire.
func (s *stage) config() *rest.Config {
	cfg := cluster.RESTConfig()
	cfg.WrapTransport = s.wire.wrap
	return cfg
}

// here restricts an informer to the stage's namespace.
func (s *stage) here() tether.InformerOptions {
	return tether.InformerOptions{Namespaces: []string{s.namespace}}
}

func (s *stage) key(name string) tether.Key { return tether.Key{Namespace: s.namespace, Name: name} }

func object(apiVersion, kind, name string, rest map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(rest)}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if name != "" {
		u.SetName(name)
	}
	return u
}

// on is the admin's client for a resource in the stage's namespace; cluster-scoped
// ones have none.
func (s *stage) on(r schema.GroupVersionResource) dynamic.ResourceInterface {
	switch r {
	case served("depots"), namespaces, definitions:
		return admin.Resource(r)
	}
	return admin.Resource(r).Namespace(s.namespace)
}

// as turns what the API server says into a user's type.
func as[T any](t *testing.T, u *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// make creates an object from JSON, of which kind and name are added.
func (s *stage) make(t *testing.T, r schema.GroupVersionResource, kind, name, content string) *unstructured.Unstructured {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(content), &fields); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	got, err := s.on(r).Create(t.Context(), object(r.GroupVersion().String(), kind, name, fields), created)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// gadget creates a Gadget from JSON.
func (s *stage) gadget(t *testing.T, name, content string) *Gadget {
	t.Helper()
	return as[Gadget](t, s.make(t, served("gadgets"), "Gadget", name, content))
}

// patchOf patches an object of any kind, as a person would.
func (s *stage) patchOf(t *testing.T, r schema.GroupVersionResource, name, patch string, sub ...string) *unstructured.Unstructured {
	t.Helper()
	got, err := s.on(r).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "a-person"}, sub...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// patch patches a Gadget, as a person would.
func (s *stage) patch(t *testing.T, name, patch string, sub ...string) *Gadget {
	t.Helper()
	return as[Gadget](t, s.patchOf(t, served("gadgets"), name, patch, sub...))
}

// get reads a Gadget.
func (s *stage) get(t *testing.T, name string) *Gadget {
	t.Helper()
	u, err := s.on(served("gadgets")).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return as[Gadget](t, u)
}

// remove deletes a Gadget, and does not wait.
func (s *stage) remove(t *testing.T, name string) {
	t.Helper()
	if err := s.on(served("gadgets")).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// watched watches one object until it is as wanted; nil stands for one that is gone.
func watched(ctx context.Context, client dynamic.ResourceInterface, name string, wanted func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	// Without a version, a watch begins with what stands now.
	w, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var last *unstructured.Unstructured
	for {
		select {
		case e, ok := <-w.ResultChan():
			u, is := e.Object.(*unstructured.Unstructured)
			if !ok || !is {
				return last, fmt.Errorf("the watch of %s ended: %v", name, e.Object)
			}
			if last = u; e.Type == watch.Deleted {
				u = nil
			}
			if e.Type != watch.Bookmark && wanted(u) {
				return last, nil
			}
		case <-ctx.Done():
			return last, context.Cause(ctx)
		}
	}
}

// awaitOf watches an object of any kind until it is as wanted.
func (s *stage) awaitOf(t *testing.T, r schema.GroupVersionResource, name, what string, wanted func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := patience(t, r.Resource+" "+name+" that is "+what)
	defer cancel()
	last, err := watched(ctx, s.on(r), name, func(u *unstructured.Unstructured) bool { return u != nil && wanted(u) })
	if err != nil {
		seen, _ := json.MarshalIndent(last, "", " ") // of what came as JSON
		t.Fatalf("%v; as last seen: %s", err, seen)
	}
	return last
}

// await watches a Gadget until it is as wanted.
func (s *stage) await(t *testing.T, name, what string, wanted func(*Gadget) bool) *Gadget {
	t.Helper()
	return as[Gadget](t, s.awaitOf(t, served("gadgets"), name, what, func(u *unstructured.Unstructured) bool { return wanted(as[Gadget](t, u)) }))
}

// awaitGone watches until a Gadget is gone.
func (s *stage) awaitGone(t *testing.T, uid types.UID, name string) {
	t.Helper()
	s.gone(t, served("gadgets"), name, uid)
}

// gone watches until an object is gone; with a UID, that very one.
func (s *stage) gone(t *testing.T, r schema.GroupVersionResource, name string, uid types.UID) {
	t.Helper()
	ctx, cancel := patience(t, "the end of "+r.Resource+" "+name)
	defer cancel()
	// One that is gone already shows in no event: the end of what stands now does.
	w, err := s.on(r).Watch(ctx, metav1.ListOptions{
		FieldSelector:     fields.OneTermEqualSelector("metadata.name", name).String(),
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	there := false
	for {
		select {
		case e := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			is := ok && (uid == "" || u.GetUID() == uid)
			switch {
			case !ok:
				t.Fatalf("the watch of %s ended: %v", name, e.Object)
			case e.Type == watch.Bookmark && !there, e.Type == watch.Deleted && is:
				return
			case e.Type != watch.Bookmark && is:
				there = true
			}
		case <-ctx.Done():
			u, err := s.on(r).Get(t.Context(), name, metav1.GetOptions{})
			t.Fatalf("%v; it is %v, %v", context.Cause(ctx), u, err)
		}
	}
}

// awaitEvents watches until n Events about an object have the reason; the series
// of one Event counts as often as it says.
func (s *stage) awaitEvents(t *testing.T, n int, name, reason string) []*unstructured.Unstructured {
	t.Helper()
	ctx, cancel := patience(t, "the Event "+reason)
	defer cancel()
	w, err := s.on(events).Watch(ctx, metav1.ListOptions{FieldSelector: fields.Set{"regarding.name": name, "reason": reason}.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	latest := map[string]*unstructured.Unstructured{}
	for {
		select {
		case e := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("the watch of Events ended: %v", e.Object)
			}
			latest[u.GetName()] = u
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
		total, all := int64(0), []*unstructured.Unstructured{}
		for _, u := range latest {
			count, found, _ := unstructured.NestedInt64(u.Object, "series", "count")
			if !found {
				count = 1
			}
			total, all = total+count, append(all, u)
		}
		if total >= int64(n) {
			return all
		}
	}
}

// conditionOf is the status of a condition of any object, "" where it has none.
func conditionOf(u *unstructured.Unstructured, kind string) string {
	if u == nil {
		return ""
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
