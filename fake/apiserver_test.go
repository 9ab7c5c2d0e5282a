package fake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/fake"
)

// boxes is a definition for tests.
const boxes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1}}}
          status: {type: object, properties: {phase: {type: string}}}
`

// api is a server and clients over memory.
type api struct {
	*fake.APIServer
	kube  kubernetes.Interface
	boxes dynamic.ResourceInterface
}

func apiSetup(t *testing.T, o fake.APIOptions) api {
	t.Helper()
	o.Manifests = append([]string{boxes}, o.Manifests...)
	s := fake.NewAPIServer(o)
	t.Cleanup(s.Close)
	return api{s, must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(s.Config())), boxesOf(t, s.Config())}
}

func boxesOf(t *testing.T, cfg *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	d := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(cfg))
	return d.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boxes"}).Namespace("default")
}

func box(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Box", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(2)},
	}}
}

func (a api) create(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return must[*unstructured.Unstructured](t)(a.boxes.Create(t.Context(), u, metav1.CreateOptions{}))
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}
}

func TestTheServerIsReachedOverMemoryAndOverTCPWithAndWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, tls := range []bool{false, true} {
		a := apiSetup(t, fake.APIOptions{TLS: tls})
		if _, err := a.kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}); err != nil {
			t.Errorf("memory, TLS %v: %v", tls, err)
		}
		if _, err := a.Kubeconfig(); err == nil || !strings.Contains(err.Error(), "not started") {
			t.Errorf("a kubeconfig for other processes, before Start: %v", err)
		}
		if err := a.Start("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		cfg := must[*rest.Config](t)(clientcmd.RESTConfigFromKubeConfig(must[[]byte](t)(a.Kubeconfig())))
		c := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(cfg))
		if _, err := c.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}); err != nil {
			t.Errorf("TCP, TLS %v: %v", tls, err)
		}
		c.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	}
}

func TestASeedFixesWhatIsDrawn(t *testing.T) {
	t.Parallel()
	drawn := func(seed uint64) []string {
		a := apiSetup(t, fake.APIOptions{Seed: seed})
		u := box("")
		u.SetGenerateName("b-")
		made := a.create(t, u)
		if !regexp.MustCompile(`^b-[bcdfghjklmnpqrstvwxz2456789]{5}$`).MatchString(made.GetName()) {
			t.Errorf("a generated name: %s", made.GetName())
		}
		ns := must[*corev1.Namespace](t)(a.kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}))
		return []string{made.GetName(), string(made.GetUID()), string(ns.UID)}
	}
	one, again, other := drawn(1), drawn(1), drawn(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	for i := range one {
		if one[i] == other[i] {
			t.Errorf("two seeds drew the same: %s", one[i])
		}
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	t.Parallel()
	err := fake.APIOptions{
		HistoryLimit: -1, BookmarkInterval: -1, RBAC: true, Admission: []fake.APIAdmission{nil}, Users: map[string]fake.APIUser{"": {}},
	}.Validate()
	for _, field := range []string{"HistoryLimit", "BookmarkInterval", "Users", "Admission[0]"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
	if err := (fake.APIOptions{RBAC: true}).Validate(); err == nil || !strings.Contains(err.Error(), "RBAC") {
		t.Errorf("rights of nobody: %v", err)
	}
	if err := (fake.APIOptions{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestAdmissionChangesAndRefusesInPlaceOfCEL(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{Admission: []fake.APIAdmission{func(w fake.APIWrite) error {
		if w.Resource.Resource != "boxes" {
			return nil
		}
		if w.Operation == "DELETE" {
			return errors.New("boxes stay")
		}
		if size, _, _ := unstructured.NestedInt64(w.Object.Object, "spec", "size"); size > 9 {
			return apierrors.NewBadRequest("too big")
		}
		w.Object.SetLabels(map[string]string{"seen": strings.ToLower(w.Operation)})
		return nil
	}}})
	made := a.create(t, box("a"))
	if got := made.GetLabels()["seen"]; got != "create" {
		t.Errorf("the label says %q", got)
	}
	got, err := a.boxes.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"size":10}}`), metav1.PatchOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("%v, %v", got, err)
	}
	err = a.boxes.Delete(t.Context(), "a", metav1.DeleteOptions{})
	if want := `boxes.example.com "a" is forbidden: boxes stay`; !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestObjectsInTheOptionsAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	crates := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("boxes", "crates", "Box", "Crate").Replace(boxes)), &crates.Object); err != nil {
		t.Fatal(err)
	}
	given := crates.DeepCopy()
	a := apiSetup(t, fake.APIOptions{
		Manifests: []string{
			"apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n",
			"apiVersion: example.com/v1\nkind: Crate\nmetadata: {name: d, namespace: space}\n",
		},
		Objects: []runtime.Object{configMap("c"), box("b"), crates},
	})
	a.mustHave(t, "a", "b")
	if diff := cmp.Diff(given, crates); diff != "" {
		t.Errorf("a definition among the objects was changed (-want +got):\n%s", diff)
	}
	d := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(a.Config())).Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crates"})
	if crate := must[*unstructured.Unstructured](t)(d.Namespace("space").Get(t.Context(), "d", metav1.GetOptions{})); crate.GetName() != "d" {
		t.Errorf("%v", crate.Object)
	}
	if _, err := a.kube.CoreV1().ConfigMaps("default").Get(t.Context(), "c", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "Odd") {
			t.Errorf("an object of no kind: %v", r)
		}
	}()
	fake.NewAPIServer(fake.APIOptions{Manifests: []string{"apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: a}\n"}})
}

// mustHave wants exactly these boxes.
func (a api) mustHave(t *testing.T, want ...string) {
	t.Helper()
	var names []string
	for _, u := range must[*unstructured.UnstructuredList](t)(a.boxes.List(t.Context(), metav1.ListOptions{})).Items {
		names = append(names, u.GetName())
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("boxes (-want +got):\n%s", diff)
	}
}

func owned(name string, owner *unstructured.Unstructured, blocks bool) *unstructured.Unstructured {
	u := box(name)
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &blocks,
	}})
	return u
}

func TestDependentsGoOrStayAsThePolicySays(t *testing.T) {
	t.Parallel()
	for policy, want := range map[metav1.DeletionPropagation][]string{
		metav1.DeletePropagationBackground: {"other"},
		metav1.DeletePropagationForeground: {"other"},
		metav1.DeletePropagationOrphan:     {"dependent", "grandchild", "other"},
	} {
		a := apiSetup(t, fake.APIOptions{})
		owner := a.create(t, box("owner"))
		dependent := a.create(t, owned("dependent", owner, true))
		a.create(t, owned("grandchild", dependent, true))
		a.create(t, box("other"))
		if err := a.boxes.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		a.mustHave(t, want...)
	}
}

func TestAForegroundDeletionWaitsForWhatBlocksIt(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	owner := a.create(t, box("owner"))
	held := owned("held", owner, true)
	held.SetFinalizers([]string{"example.com/f"})
	a.create(t, held)
	policy := metav1.DeletePropagationForeground
	if err := a.boxes.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	a.mustHave(t, "held", "owner")
	if _, err := a.boxes.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a.mustHave(t)
}

func TestADependentOfTwoOwnersLosesOneAndStays(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	one, two := a.create(t, box("one")), a.create(t, box("two"))
	dependent := owned("dependent", one, false)
	dependent.SetOwnerReferences(append(dependent.GetOwnerReferences(), owned("x", two, false).GetOwnerReferences()...))
	a.create(t, dependent)
	if err := a.boxes.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := must[*unstructured.Unstructured](t)(a.boxes.Get(t.Context(), "dependent", metav1.GetOptions{}))
	if refs := got.GetOwnerReferences(); len(refs) != 1 || refs[0].Name != "two" {
		t.Errorf("owners: %v", refs)
	}
}

func TestANamespaceEmptiesAndWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	ctx := t.Context()
	if _, err := a.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	held := configMap("held")
	held.Finalizers = []string{"example.com/f"}
	for _, c := range []*corev1.ConfigMap{held, configMap("free")} {
		if _, err := a.kube.CoreV1().ConfigMaps("n").Create(ctx, c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.kube.CoreV1().Namespaces().Delete(ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns := must[*corev1.Namespace](t)(a.kube.CoreV1().Namespaces().Get(ctx, "n", metav1.GetOptions{}))
	left := must[*corev1.ConfigMapList](t)(a.kube.CoreV1().ConfigMaps("n").List(ctx, metav1.ListOptions{}))
	if ns.Status.Phase != corev1.NamespaceTerminating || len(left.Items) != 1 {
		t.Errorf("%s with %d", ns.Status.Phase, len(left.Items))
	}
	_, err := a.kube.CoreV1().ConfigMaps("n").Create(ctx, configMap("new"), metav1.CreateOptions{})
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("new content: %v", err)
	}
	if _, err := a.kube.CoreV1().ConfigMaps("n").Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.kube.CoreV1().Namespaces().Get(ctx, "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

func TestWithoutControllersNothingIsDoneBehindTheBack(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{NoControllers: true})
	owner := a.create(t, box("owner"))
	a.create(t, owned("dependent", owner, true))
	if err := a.boxes.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.mustHave(t, "dependent")
}

func TestInformersFollowInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(a.kube, time.Hour)
		seen := make(chan string, 10)
		if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { seen <- "add " + o.(*corev1.ConfigMap).Name },
			DeleteFunc: func(o any) { seen <- "delete " + o.(*corev1.ConfigMap).Name },
		}); err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		maps := a.kube.CoreV1().ConfigMaps("default")
		if _, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour) // watches end and begin again meanwhile
		if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"add a", "delete a"} {
			if got := <-seen; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		cancel()
		factory.Shutdown()
	})
}

func TestASlowWatchIsDroppedWith410AndHoldsUpNoWriter(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{HistoryLimit: 20})
	stream := must[io.ReadCloser](t)(a.kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/configmaps").Param("watch", "1").
		Param("resourceVersion", fmt.Sprint(a.Version())).Stream(t.Context()))
	defer stream.Close()
	for i := range 200 { // would hang here if it waited for who reads nothing
		c := configMap(fmt.Sprint("c", i))
		c.Data["k"] = strings.Repeat("x", 1000)
		if _, err := a.kube.CoreV1().ConfigMaps("default").Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := stream.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			break // the server ends it
		}
	}
	lines := strings.Split(strings.TrimSpace(all.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"type":"ERROR"`) || !strings.Contains(last, `"code":410`) || !strings.Contains(last, `"reason":"Expired"`) {
		t.Errorf("the last event is %.200s", last)
	}
}

func TestTheServersClockMayBeAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{ClockAhead: time.Hour})
		if got := time.Until(a.create(t, box("a")).GetCreationTimestamp().Time); got != time.Hour {
			t.Errorf("created %v from now", got)
		}
		a.SetClockAhead(-time.Minute)
		if got := time.Until(a.create(t, box("b")).GetCreationTimestamp().Time); got != -time.Minute {
			t.Errorf("created %v from now", got)
		}
	})
}

func TestTheJournalTellsWhoDidWhatToWhat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		a := apiSetup(t, fake.APIOptions{
			Users: map[string]fake.APIUser{"token": {Name: "alice", Groups: []string{"system:masters"}}},
			Log:   func(e fake.APIEntry) { logged = append(logged, e.Verb) },
		})
		alice := boxesOf(t, a.ConfigFor("token"))
		ctx := t.Context()
		must[*unstructured.Unstructured](t)(alice.Create(ctx, box("a"), metav1.CreateOptions{}))
		time.Sleep(2 * time.Second)
		must[*unstructured.Unstructured](t)(alice.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"phase":"Up"}}`), metav1.PatchOptions{}, "status"))
		must[*unstructured.Unstructured](t)(alice.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":2}}`), metav1.PatchOptions{}))
		must[*unstructured.Unstructured](t)(alice.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":3}}`), metav1.PatchOptions{DryRun: []string{"All"}}))
		if _, err := alice.Get(ctx, "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		if err := alice.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		want := `#1 +0s alice create boxes default/a 201 created
#2 +2s alice patch boxes/status default/a 200 status.phase
#3 +2s alice patch boxes default/a 200
#4 +2s alice patch boxes default/a dry-run 200
#5 +2s alice get boxes default/b 404 NotFound
#6 +2s alice delete boxes default/a 200 gone
`
		if diff := cmp.Diff(want, a.Transcript()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{"create": 1, "delete": 1}, a.Writes("boxes")); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"create", "patch", "patch", "patch", "get", "delete"}, logged); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
		e := must[fake.APIEntry](t)(a.Await(ctx, func(e fake.APIEntry) bool { return e.Verb == "patch" && e.Resource == "boxes/status" && e.Done }))
		if !strings.Contains(string(e.After), `"phase":"Up"`) || strings.Contains(string(e.Before), `"phase"`) {
			t.Errorf("before %s\nafter %s", e.Before, e.After)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := a.Await(short, func(fake.APIEntry) bool { return false }); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "#6") {
			t.Errorf("what does not come: %v", err)
		}
	})
}

func TestClosingEndsWatchesAndRefusesWhatComesAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		w := must[watch.Interface](t)(a.boxes.Watch(t.Context(), metav1.ListOptions{}))
		a.Close()
		a.Close() // no harm
		for range w.ResultChan() {
		}
		if _, err := a.boxes.List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("a closed server answers")
		}
		if err := a.Start("127.0.0.1:0"); err == nil {
			t.Error("a closed server starts")
		}
		if _, err := (&http.Client{Transport: a.Transport()}).Get(a.URL() + "/version"); err == nil { //nolint:bodyclose,noctx // there is no answer
			t.Error("a closed server answers")
		}
	})
}

func definitionsOf(t *testing.T, a api) dynamic.ResourceInterface {
	t.Helper()
	d := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(a.Config()))
	return d.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func TestADefinitionThatChangesEndsWatchesAndServesWhatItSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.create(t, box("a"))
		definitions := definitionsOf(t, a)
		w := must[watch.Interface](t)(a.boxes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(a.Version())}))
		patch := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color","value":{"type":"string","default":"red"}}]`
		must[*unstructured.Unstructured](t)(definitions.Patch(t.Context(), "boxes.example.com", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}))
		begin := time.Now()
		if seen := events(w, 0); len(seen) > 0 || time.Since(begin) != 0 {
			t.Errorf("the watch went on for %v: %v", time.Since(begin), seen)
		}
		// A default is filled in at reading, also into what was stored before.
		got := must[*unstructured.Unstructured](t)(a.boxes.Get(t.Context(), "a", metav1.GetOptions{}))
		if color, _, _ := unstructured.NestedString(got.Object, "spec", "color"); color != "red" {
			t.Errorf("the color is %q", color)
		}
	})
}

func TestANameThatBecomesFreeIsTaken(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{Manifests: []string{strings.NewReplacer("boxes", "crates").Replace(boxes)}})
	definitions := definitionsOf(t, a)
	established := func() bool {
		u := must[*unstructured.Unstructured](t)(definitions.Get(t.Context(), "crates.example.com", metav1.GetOptions{}))
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range list {
			if m := c.(map[string]any); m["type"] == "Established" {
				return m["status"] == "True"
			}
		}
		return false
	}
	if established() {
		t.Error("two definitions have one kind")
	}
	if err := definitions.Delete(t.Context(), "boxes.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !established() {
		t.Error("the other one does not get it")
	}
}

func TestBodiesInProtobufAreRead(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	cfg := a.Config()
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	maps := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(cfg)).CoreV1().ConfigMaps("default")
	made := must[*corev1.ConfigMap](t)(maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}))
	made.Data["k"] = "w"
	made = must[*corev1.ConfigMap](t)(maps.Update(t.Context(), made, metav1.UpdateOptions{}))
	if made.Data["k"] != "w" {
		t.Errorf("%v", made.Data)
	}
	other := types.UID("other")
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("options in protobuf were not read: %v", err)
	}
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestALeaderIsElected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		leads := make(chan string, 2)
		var wg sync.WaitGroup
		candidate := func(ctx context.Context, id string) {
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "l"}, Client: a.kube.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: id},
				},
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leads <- id },
					OnStoppedLeading: func() {},
				},
			})
		}
		first, stopFirst := context.WithCancel(ctx)
		wg.Go(func() { candidate(first, "one") })
		if got := <-leads; got != "one" {
			t.Errorf("%s leads", got)
		}
		wg.Go(func() { candidate(ctx, "two") })
		time.Sleep(time.Hour)
		if len(leads) > 0 {
			t.Error("two lead")
		}
		stopFirst()
		if got := <-leads; got != "two" {
			t.Errorf("%s leads", got)
		}
		cancel()
		wg.Wait()
	})
}

func TestAMetadataInformerSeesNoSpec(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.create(t, box("a"))
		ctx, cancel := context.WithCancel(t.Context())
		factory := metadatainformer.NewSharedInformerFactory(must[metadata.Interface](t)(metadata.NewForConfig(a.Config())), 0)
		in := factory.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boxes"})
		seen := make(chan *metav1.PartialObjectMetadata, 2)
		must[cache.ResourceEventHandlerRegistration](t)(in.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { seen <- o.(*metav1.PartialObjectMetadata) },
		}))
		factory.Start(ctx.Done())
		if o := <-seen; o.Name != "a" {
			t.Errorf("%+v", o)
		}
		a.create(t, box("b"))
		if o := <-seen; o.Name != "b" || o.UID == "" {
			t.Errorf("%+v", o)
		}
		cancel()
		factory.Shutdown()
	})
}
