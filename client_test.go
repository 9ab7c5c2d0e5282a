package tether

import (
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asked is an informer whose clients ask the test's function.
func asked[T Object](t *testing.T, in *Informer[T], say answer) *wire {
	t.Helper()
	s := &wire{}
	if err := in.open(s.environment(t, say)); err != nil {
		t.Fatal(err)
	}
	close(in.live.Load().ready)
	t.Cleanup(in.close)
	return s
}

// big is a number that a float64 has no place for.
const big = 1700000000123456789

func TestAClientSendsNumbersAsTheyAre(t *testing.T) {
	t.Parallel()
	loose := Resource[*unstructured.Unstructured]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "things"}
	in := NewInformer(loose, InformerOptions{})
	var sent string
	asked(t, in, func(r *http.Request) (int, string) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		return http.StatusCreated, sent
	})
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "n", "resourceVersion": "7"}, "spec": map[string]any{"at": int64(big), "share": 0.5}, "status": map[string]any{"a": "b"},
	}}
	got, err := NewClient(in, ClientOptions{}).Create(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"n","namespace":"ns"},"spec":{"at":1700000000123456789,"share":0.5}}`; sent != want {
		t.Errorf("sent %s, want %s", sent, want)
	}
	if at, _, _ := unstructured.NestedInt64(got.Object, "spec", "at"); at != big {
		t.Errorf("got %v", got.Object)
	}
}

func TestAClientKeepsWhatTheInformerWatchesAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		o    InformerOptions
		edit func(*thing)
		kept bool
	}{
		"all":                    {kept: true},
		"a namespace":            {o: InformerOptions{Namespaces: []string{"ns"}}, kept: true},
		"another namespace":      {o: InformerOptions{Namespaces: []string{"other"}}},
		"a label":                {o: InformerOptions{LabelSelector: "a=b"}, edit: func(o *thing) { o.Labels = map[string]string{"a": "b"} }, kept: true},
		"another label":          {o: InformerOptions{LabelSelector: "a=b"}, edit: func(o *thing) { o.Labels = map[string]string{"a": "c"} }},
		"a name":                 {o: InformerOptions{FieldSelector: "metadata.name=n"}, kept: true},
		"another name":           {o: InformerOptions{FieldSelector: "metadata.name=other"}},
		"a field of another one": {o: InformerOptions{FieldSelector: "spec.a=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := NewInformer(things, test.o)
			obj := newThing(test.edit)
			raw := jsonOf(t, obj)
			asked(t, in, func(*http.Request) (int, string) { return http.StatusOK, raw })
			c := NewClient(in, ClientOptions{})
			for verb, ask := range map[string]func() error{
				"Get":    func() error { _, err := c.Get(t.Context(), Key{Namespace: "ns", Name: "n"}); return err },
				"Create": func() error { _, err := c.Create(t.Context(), obj); return err },
				"Apply":  func() error { _, err := c.Apply(t.Context(), obj); return err },
			} {
				if err := ask(); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
				if _, ok := in.Get(Key{Namespace: "ns", Name: "n"}); ok != test.kept {
					t.Errorf("after %s the informer has it: %v, want %v", verb, ok, test.kept)
				}
				in.live.Load().store.Remove(obj)
			}
		})
	}
}

func TestAnObjectThatTheServerNamesIsKeptUnderItsName(t *testing.T) {
	t.Parallel()
	in := NewInformer(things, InformerOptions{})
	named := newThing(func(o *thing) { o.Name, o.GenerateName = "n-x7", "n-" })
	raw := jsonOf(t, named)
	asked(t, in, func(*http.Request) (int, string) { return http.StatusCreated, raw })
	if _, err := NewClient(in, ClientOptions{}).Create(t.Context(), &thing{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "n-"}}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for o := range in.List("") {
		names = append(names, o.Name)
	}
	if got, _ := in.Get(Key{Namespace: "ns", Name: "n-x7"}); strings.Join(names, ",") != "n-x7" || got == nil {
		t.Errorf("the informer has %q", names)
	}
}
