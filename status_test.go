package tether

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// thing is a type of a user's.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              map[string]string `json:"spec,omitempty"`
	Status            thingStatus       `json:"status,omitempty"`
}

type thingStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ID                 string             `json:"id,omitempty"`
	Tags               map[string]string  `json:"tags,omitempty"`
}

func (t *thing) DeepCopyObject() runtime.Object {
	var c thing
	raw, _ := json.Marshal(t)
	_ = json.Unmarshal(raw, &c)
	return &c
}

type pointed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            *thingStatus `json:"status,omitempty"`
}

func (p *pointed) DeepCopyObject() runtime.Object { c := *p; return &c }

type textStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            string `json:"status,omitempty"`
}

func (p *textStatus) DeepCopyObject() runtime.Object { c := *p; return &c }

type oddGeneration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            struct {
		ObservedGeneration string `json:"observedGeneration,omitempty"`
	} `json:"status,omitempty"`
}

func (p *oddGeneration) DeepCopyObject() runtime.Object { c := *p; return &c }

func found[T Object](t *testing.T) statusField[T] {
	t.Helper()
	f, wrong := findStatus[T]()
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return f
}

func TestATypeWithAStatusOfAnUnfitKindIsNamed(t *testing.T) {
	t.Parallel()
	_, a := findStatus[*textStatus]()
	_, b := findStatus[*oddGeneration]()
	for want, got := range map[string][]string{"make it a struct": a, "make it an int64": b} {
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if f := found[*corev1.ConfigMap](t); f.has() {
		t.Error("a ConfigMap has a status")
	}
	if f := found[*corev1.Pod](t); !f.has() || f.conditions != nil {
		t.Error("a Pod's own conditions are taken for ours")
	}
}

func TestAStatusPatchHoldsTheDifferenceAlone(t *testing.T) {
	t.Parallel()
	f := found[*thing](t)
	have := &thing{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Status: thingStatus{ID: "a", Tags: map[string]string{"x": "1", "y": "2"}}}
	want := have.DeepCopyObject().(*thing)
	if body, err := f.patch(have, want); body != nil || err != nil || !f.equal(have, want) {
		t.Fatalf("no difference gives %s, %v", body, err)
	}
	want.Status.ID = ""
	want.Status.Tags["y"] = "3"
	want.Status.ObservedGeneration = 4
	body, err := f.patch(have, want)
	if err != nil {
		t.Fatal(err)
	}
	const expected = `{"metadata":{"resourceVersion":"7"},"status":{"id":null,"observedGeneration":4,"tags":{"y":"3"}}}`
	if string(body) != expected {
		t.Fatalf("got  %s\nwant %s", body, expected)
	}
}

// what every shape of status can do
func TestStatusIsReadAndWrittenInEveryShape(t *testing.T) {
	t.Parallel()
	shape(t, &thing{})
	shape(t, &pointed{})
	shape(t, &unstructured.Unstructured{Object: map[string]any{"kind": "Thing"}})
}

func shape[T Object](t *testing.T, obj T) {
	t.Helper()
	f := found[T](t)
	if f.getObserved(obj) != 0 || len(f.getConditions(obj)) != 0 {
		t.Errorf("%T: an empty status is not empty", obj)
	}
	want := []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Reconciled", "yes", 3, early.Local().Truncate(time.Second))}
	f.setConditions(obj, want)
	f.setObserved(obj, 3)
	if got := f.getConditions(obj); len(got) != 1 || !got[0].LastTransitionTime.Equal(&want[0].LastTransitionTime) || got[0].Message != "yes" {
		t.Errorf("%T: %s", obj, cmp.Diff(want, got))
	}
	if f.getObserved(obj) != 3 {
		t.Errorf("%T: observed %d", obj, f.getObserved(obj))
	}
	other := obj.DeepCopyObject().(T)
	f.setObserved(other, 4)
	if _, sharing := any(obj).(*pointed); !sharing && f.equal(obj, other) {
		t.Errorf("%T: two that differ are equal", obj)
	}
	f.share(obj, other)
	if !f.equal(obj, other) {
		t.Errorf("%T: a shared status differs", obj)
	}
}

func TestAnEditOutsideStatusIsNamedByItsPath(t *testing.T) {
	t.Parallel()
	f := found[*thing](t)
	for _, c := range []struct {
		want string
		all  bool
		edit func(*thing)
	}{
		{"", true, func(*thing) {}},
		{"", true, func(o *thing) { o.Status.ID = "x" }},
		{"metadata.labels", false, func(o *thing) { o.Labels = map[string]string{"a": "b"} }},
		{"metadata.finalizers", false, func(o *thing) { o.Finalizers = []string{"x/y"} }},
		{"spec", true, func(o *thing) { o.Spec = map[string]string{"a": "b"} }},
		{"", false, func(o *thing) { o.Spec = map[string]string{"a": "b"} }},
	} {
		have := &thing{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		edited := have.DeepCopyObject().(*thing)
		c.edit(edited)
		if got := editedPath(f, have, edited, c.all); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	u := found[*unstructured.Unstructured](t)
	have := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}, "spec": map[string]any{"a": map[string]any{"b": int64(1)}}}}
	edited := have.DeepCopy()
	edited.Object["spec"].(map[string]any)["a"].(map[string]any)["b"] = int64(2)
	if got := editedPath(u, have, edited, true); got != "spec.a.b" {
		t.Errorf("got %q, want spec.a.b", got)
	}
}

func TestAChangeOfStatusIsDoneToWhatAnotherWriterHasMadeOfIt(t *testing.T) {
	t.Parallel()
	rebased(t, func() *thing { return &thing{} })
	rebased(t, func() *pointed { return &pointed{} })
	rebased(t, func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Thing"}}
	})
}

func rebased[T Object](t *testing.T, empty func() T) {
	t.Helper()
	f := found[T](t)
	with := func(observed int64, conditions ...metav1.Condition) T {
		obj := empty()
		f.setConditions(obj, conditions)
		f.setObserved(obj, observed)
		return obj
	}
	is := func(typ string, s metav1.ConditionStatus) metav1.Condition {
		return condition(typ, s, "R", "", 1, early.Local())
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, c := range map[string]struct {
		base, obj, fresh, want T
		judges                 bool
	}{
		"another's condition stays": {
			base: with(1, is("A", no)), obj: with(1, is("A", yes)), fresh: with(1, is("A", no), is("B", yes)), want: with(1, is("A", yes), is("B", yes)),
		},
		"what was taken off goes": {
			base: with(1, is("A", no), is("B", no)), obj: with(1, is("B", no)), fresh: with(1, is("A", no), is("B", yes)), want: with(1, is("B", yes)),
		},
		"what only another changed is another's": {
			base: with(1, is("Ready", no)), obj: with(1, is("Ready", no), is("A", yes)), fresh: with(2, is("Ready", yes)), want: with(2, is("Ready", yes), is("A", yes)),
		},
		"but for what this one judges": {
			base: with(2, is("Ready", no)), obj: with(2, is("Ready", no)), fresh: with(1, is("Ready", yes), is("Stalled", yes), is("A", yes)), judges: true,
			want: with(2, is("Ready", no), is("A", yes)),
		},
		"a status that was wiped": {
			base: with(1, is("Ready", no)), obj: with(2, is("Ready", yes)), fresh: empty(), judges: true, want: with(2, is("Ready", yes)),
		},
	} {
		if err := f.rebase(c.base, c.obj, c.fresh, c.judges); err != nil {
			t.Errorf("%T: %s: %v", c.obj, name, err)
		}
		if !f.equal(c.obj, c.want) {
			t.Errorf("%T: %s (-want +got):\n%s", c.obj, name, cmp.Diff(c.want, c.obj))
		}
	}
}

// numbered has a status with numbers that a float64 has no place for.
type numbered struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            struct {
		At  int64             `json:"at"`
		Of  map[string]uint64 `json:"of,omitempty"`
		Odd *string           `json:"odd"`
	} `json:"status"`
}

func (n *numbered) DeepCopyObject() runtime.Object { c := *n; return &c }

func TestNumbersOfAStatusAreExact(t *testing.T) {
	t.Parallel()
	f, _ := findStatus[*numbered]()
	have, want, other := &numbered{}, &numbered{}, &numbered{}
	have.ResourceVersion, have.Status.At, have.Status.Of = "1", big, map[string]uint64{"a": 1, "gone": 2}
	want.Status.At, want.Status.Of = big+1, map[string]uint64{"a": 1<<64 - 1}
	patch, err := f.patch(have, want)
	if got := `{"metadata":{"resourceVersion":"1"},"status":{"at":1700000000123456790,"of":{"a":18446744073709551615,"gone":null}}}`; err != nil || string(patch) != got {
		t.Errorf("%s, %v, want %s", patch, err, got)
	}
	other.Status.At, other.Status.Of = big, map[string]uint64{"a": 1, "theirs": 1 << 63}
	if err := f.rebase(have, want, other, false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]uint64{"a": 1<<64 - 1, "theirs": 1 << 63}, want.Status.Of); d != "" || want.Status.At != big+1 {
		t.Errorf("%d, (-want +got):\n%s", want.Status.At, d)
	}
}

func TestContentThatDiffersInALongNumberIsAnother(t *testing.T) {
	t.Parallel()
	f, _ := findStatus[*unstructured.Unstructured]()
	of := func(n int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"at": n}}}
	}
	if contentHash(f, of(big)) == contentHash(f, of(big+1)) {
		t.Error("two specs have one hash, and so one key for two updates")
	}
	if path := editedPath(f, of(big), of(big+1), true); path != "spec.at" {
		t.Errorf("the edit is at %q", path)
	}
}

func jsonOf(t *testing.T, o any) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
