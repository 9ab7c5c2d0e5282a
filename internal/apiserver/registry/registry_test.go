package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// fixture is a registry with a definition of boxes.
type fixture struct {
	*registry.Registry
	t *testing.T
}

func options() registry.Options {
	return registry.Options{Store: storage.New(100), Catalog: catalog.New(), Now: time.Now, Seed: 1}
}

func setup(t *testing.T) fixture {
	t.Helper()
	return setupWith(t, options())
}

func setupWith(t *testing.T, o registry.Options) fixture {
	t.Helper()
	f := fixture{registry.New(o), t}
	f.define()
	return f
}

// define makes the definition of boxes.
func (f fixture) define() {
	f.t.Helper()
	f.create(definitions, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"boxes.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"boxes","kind":"Box"},
		"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object",
		"properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"},"list":{"type":"array","items":{"type":"string"}}}}}}}}]}}`)
}

// request is one for a resource, told as plural.version.group; what is namespaced
// is in default.
func (f fixture) request(resource, name string) *registry.Request {
	f.t.Helper()
	gvr, _ := schema.ParseResourceArg(resource)
	res := f.Catalog.Find(*gvr)
	if res == nil {
		f.t.Fatalf("there is no resource %s", resource)
	}
	q := &registry.Request{Resource: res, Name: name, Manager: "test"}
	if res.Namespaced {
		q.Namespace = "default"
	}
	return q
}

func (f fixture) tryCreate(resource, body string) (registry.Result, error) {
	f.t.Helper()
	q := f.request(resource, "")
	obj, err := q.Read("application/json", []byte(body))
	if err != nil {
		f.t.Fatal(err)
	}
	return f.Create(q, obj)
}

func (f fixture) create(resource, body string) *storage.Object {
	f.t.Helper()
	made, err := f.tryCreate(resource, body)
	if err != nil {
		f.t.Fatal(err)
	}
	return made.Object
}

const (
	boxes       = "boxes.v1.example.com"
	secrets     = "secrets.v1." // of the group without a name
	definitions = "customresourcedefinitions.v1.apiextensions.k8s.io"
)

// redefine changes the definition of boxes by a JSON patch.
func (f fixture) redefine(patch string) {
	f.t.Helper()
	if _, err := f.Patch(f.request(definitions, "boxes.example.com"), types.JSONPatchType, []byte(patch), false, nil); err != nil {
		f.t.Fatal(err)
	}
}

// servesWhatIsStored fails the test where boxes are served as an older definition says.
func (f fixture) servesWhatIsStored() {
	f.t.Helper()
	stored, _ := f.Catalog.Of("boxes.example.com")
	o := f.Store.Get(catalog.Definitions, storage.Key{Name: "boxes.example.com"})
	if o == nil || stored == nil {
		f.t.Fatalf("the definition is there: %v; it is served: %v", o != nil, stored != nil)
	}
	var definition struct {
		Metadata struct{ Generation int64 }
	}
	if err := json.Unmarshal(o.Data, &definition); err != nil {
		f.t.Fatal(err)
	}
	if definition.Metadata.Generation != stored.Generation || stored.DefinitionUID != o.UID {
		f.t.Errorf("generation %d of %s is served, and %d of %s is stored", stored.Generation, stored.DefinitionUID, definition.Metadata.Generation, o.UID)
	}
}

func box(name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":%q%s},"spec":{"size":1}}`, name, more)
}

// It is not parallel: klog is the whole process's.
func TestAnObjectThatIsRefusedLeavesNothingInTheLog(t *testing.T) {
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	var said []string
	klog.SetLogger(funcr.New(func(prefix, args string) { said = append(said, prefix+args) }, funcr.Options{}))
	f := setup(t)
	f.create(boxes, box("a", ""))
	before := f.Store.Get("boxes.example.com", storage.Key{Namespace: "default", Name: "a"})
	for _, wrong := range []string{`{"spec":{"size":"big"}}`, `{"spec":{"list":{"a":"b"}}}`, `{"spec":[]}`, `{"spec":{"size":1.5}}`} {
		if _, err := f.Patch(f.request(boxes, "a"), types.MergePatchType, []byte(wrong), false, nil); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", wrong, err)
		}
		created := strings.Replace(box("b", ""), `"spec":{"size":1}`, strings.Trim(wrong, "{}")+strings.Repeat("}", strings.Count(wrong, "}")-1), 1)
		if _, err := f.tryCreate(boxes, created); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", created, err)
		}
	}
	if now := f.Store.Get("boxes.example.com", before.Key); now != before || len(said) > 0 {
		t.Errorf("the log has %q, and the object is %s", said, now.Data)
	}
}

func TestGeneratedNamesAndUIDsAreAsTheSeedSays(t *testing.T) {
	t.Parallel()
	made := func() string {
		f := setup(t)
		o := f.create(boxes, strings.Replace(box("", ""), `"name":""`, `"generateName":"x-"`, 1))
		return o.Name + " " + o.UID
	}
	if a, b := made(), made(); a != b || !strings.HasPrefix(a, "x-") {
		t.Errorf("%s and %s", a, b)
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(boxes, box("a", ""))
	version := f.Store.Version()
	q := f.request(boxes, "a")
	q.DryRun = true
	if _, err := f.Patch(q, types.MergePatchType, []byte(`{"spec":{"size":2}}`), false, nil); err != nil {
		t.Error(err)
	}
	if _, err := f.Delete(q, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if f.Store.Version() != version {
		t.Errorf("version %d, was %d", f.Store.Version(), version)
	}
}

// Of all built-in types with fields that selectors may name, objects are written at
// once; that it is safe is for the race detector to say.
func TestObjectsOfOneTypeAreWrittenAtTheSameTime(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for resource, body := range map[string]string{
		"events.v1.":              `{"apiVersion":"v1","kind":"Event","metadata":{"name":"core%d"},"involvedObject":{"namespace":"default","name":"a"},"source":{"component":"c"}}`,
		"events.v1.events.k8s.io": `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"new%d"},"regarding":{"namespace":"default","name":"a"}}`,
		"pods.v1.":                `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		secrets:                   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a%d"}}`,
		"namespaces.v1.":          `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a%d"}}`,
	} {
		var wg sync.WaitGroup
		for i := range 4 {
			q := f.request(resource, "")
			obj, err := q.Read("application/json", fmt.Appendf(nil, body, i))
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				if _, err := f.Create(q, obj); err != nil {
					t.Errorf("%s: %v", resource, err)
				}
			})
		}
		wg.Wait()
	}
	list, err := f.Store.List("events", storage.Selection{Match: func(o *storage.Object) bool { return o.Fields["source"] == "c" }})
	if err != nil || len(list.Objects) != 4 {
		t.Errorf("%d events by their source, %v", len(list.Objects), err)
	}
}

func TestADefinitionThatServesNoVersionTakesItsObjectsWithIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(boxes, box("a", ""))
	held := f.create(boxes, box("held", `,"finalizers":["example.com/f"]`))
	f.redefine(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	q := f.request(definitions, "boxes.example.com")
	if _, err := f.Delete(q, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := f.Store.Len(held.Form.(*catalog.Resource).Table); n != 1 {
		t.Fatalf("%d boxes are left, want the one with a finalizer", n)
	}
	f.redefine(`[{"op":"replace","path":"/spec/versions/0/served","value":true}]`)
	if _, err := f.Patch(f.request(boxes, "held"), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), false, nil); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(f.Store.Tables(), "boxes.example.com") || f.Store.Get(catalog.Definitions, storage.Key{Name: "boxes.example.com"}) != nil {
		t.Errorf("tables: %q", f.Store.Tables())
	}
	f.define()
	if n := f.Store.Len("boxes.example.com"); n != 0 {
		t.Errorf("%d boxes came back", n)
	}
}

// Each case does something while another change of the definition, which was stored
// before it, has not been looked at.
func TestAChangeThatIsLookedAtLateBringsBackNoOlderDefinition(t *testing.T) {
	t.Parallel()
	describe := `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"new"}]`
	remove := func(f fixture) error {
		_, err := f.Delete(f.request(definitions, "boxes.example.com"), metav1.DeleteOptions{})
		return err
	}
	for name, c := range map[string]struct {
		held    bool // by a box with a finalizer
		between storage.Change
		then    func(fixture)
	}{
		"changed while it goes":            {true, storage.Modified, func(f fixture) { f.redefine(describe) }},
		"there again once it is gone":      {false, storage.Deleted, func(f fixture) { f.define() }},
		"there again, and changed at once": {false, storage.Deleted, func(f fixture) { f.define(); f.redefine(describe) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			var f fixture
			waits := false
			o.Changed = func(res *catalog.Resource, e *storage.Event) {
				if waits && res.Table == catalog.Definitions && e.Change == c.between {
					waits = false
					c.then(f)
				}
			}
			f = setupWith(t, o)
			if c.held {
				f.create(boxes, box("held", `,"finalizers":["example.com/f"]`))
			}
			watch, err := f.Store.Watch("boxes.example.com", f.Store.Version())
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			waits = true
			if err := remove(f); err != nil || waits {
				t.Fatalf("%v, nothing came between: %v", err, waits)
			}
			f.servesWhatIsStored()
			var changed <-chan struct{}
			for err == nil && changed == nil {
				_, _, changed, err = watch.Next()
			}
			if !errors.Is(err, storage.ErrDropped) {
				t.Errorf("a watch of what the definition said before goes on: %v", err)
			}
			if !c.held {
				f.create(boxes, box("a", ""))
			}
		})
	}
}

func TestOfTwoChangesOfADefinitionAtOnceTheLaterOneIsServed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.request(definitions, "boxes.example.com")
	for i := range 50 {
		var wg sync.WaitGroup
		for j := range 3 {
			wg.Go(func() {
				own := *q
				patch := fmt.Appendf(nil, `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"%d %d"}]`, i, j)
				if _, err := f.Patch(&own, types.JSONPatchType, patch, false, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		f.servesWhatIsStored()
	}
}

func TestWhatIsOwnedGoesWithTheLastOfItsOwners(t *testing.T) {
	t.Parallel()
	f := setup(t)
	owner := func(o *storage.Object) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Box","name":%q,"uid":%q}`, o.Name, o.UID)
	}
	one, two := f.create(boxes, box("one", "")), f.create(boxes, box("two", ""))
	f.create(boxes, box("owned", `,"ownerReferences":[`+owner(one)+`,`+owner(two)+`]`))
	for i, name := range []string{"one", "two"} {
		if _, err := f.Delete(f.request(boxes, name), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if there := f.Store.Get("boxes.example.com", storage.Key{Namespace: "default", Name: "owned"}) != nil; there != (i == 0) {
			t.Errorf("without %s it is there: %v", name, there)
		}
	}
}

// kept is what a registry has, as it is kept.
func kept(s *storage.Store) registry.Kept {
	k := registry.Kept{Version: s.Version(), Objects: map[string][][]byte{}}
	for _, table := range s.Tables() {
		list, _ := s.List(table, storage.Selection{}) // the table is there
		for _, o := range list.Objects {
			k.Objects[table] = append(k.Objects[table], o.Data)
		}
	}
	return k
}

func TestARegistryIsRestoredAsItWas(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create(boxes, box("a", `,"labels":{"l":"1"},"finalizers":["example.com/f"]`))
	f.create(secrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"v"}}`)
	o := options()
	again, err := registry.Restore(o, kept(f.Store))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept(f.Store), kept(o.Store)); diff != "" {
		t.Error(diff)
	}
	for _, table := range f.Store.Tables() {
		list, _ := f.Store.List(table, storage.Selection{}) // the table is there
		for _, was := range list.Objects {
			is := o.Store.Get(table, was.Key)
			if is == nil || is.UID != was.UID || fmt.Sprint(is.Labels, is.Fields, is.Owners) != fmt.Sprint(was.Labels, was.Fields, was.Owners) {
				t.Errorf("%s %v: %+v, was %+v", table, was.Key, is, was)
			}
		}
	}
	g := fixture{again, t}
	if made := g.create(boxes, box("b", "")); made.Version != f.Store.Version()+1 {
		t.Errorf("the next version is %d, after %d", made.Version, f.Store.Version())
	}
}

func TestWhatCannotBeRestoredIsSaid(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(registry.Kept){
		"1 objects of nothings: there is no such resource": func(k registry.Kept) { k.Objects["nothings"] = [][]byte{[]byte(`{}`)} },
		"an object of secrets: it has no resourceVersion":  func(k registry.Kept) { k.Objects["secrets"] = [][]byte{[]byte(`{"metadata":{"name":"a"}}`)} },
		"an object of secrets: it has no name or no UID": func(k registry.Kept) {
			k.Objects["secrets"] = [][]byte{[]byte(`{"metadata":{"name":"a","resourceVersion":"1"}}`)}
		},
		"an object of secrets: unexpected end": func(k registry.Kept) { k.Objects["secrets"] = [][]byte{[]byte(`{`)} },
	} {
		k := kept(setup(t).Store)
		change(k)
		if _, err := registry.Restore(options(), k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
