package tether

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

func TestWhichChangesStartAPassAndHowUrgently(t *testing.T) {
	t.Parallel()
	c := newController(NewInformer(things, InformerOptions{}), Options{})
	base := &thing{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Generation: 1, ResourceVersion: "1"}}
	deleting := func(o *thing) { o.DeletionTimestamp = &metav1.Time{Time: early} }
	orphan := func(o *thing) { o.Annotations = map[string]string{"example.com/orphan": "true"} }
	for _, x := range []struct {
		name     string
		old, new func(*thing)
		want     queue.Cause
	}{
		{"resourceVersion", nil, func(o *thing) { o.ResourceVersion = "2" }, 0},
		{"managedFields", nil, func(o *thing) { o.ManagedFields = []metav1.ManagedFieldsEntry{{}} }, 0},
		{"status", nil, func(o *thing) { o.Status.ID = "x" }, queue.Restore},
		{"label", nil, func(o *thing) { o.Labels = map[string]string{"a": "b"} }, queue.Event},
		{"someone's finalizer", nil, func(o *thing) { o.Finalizers = []string{"x/y"} }, queue.Event},
		{"our finalizer", nil, func(o *thing) { o.Finalizers = []string{"example.com/thing"} }, queue.Change},
		{"the claim", nil, func(o *thing) { o.Annotations = map[string]string{"example.com/thing.claim": "{}"} }, queue.Change},
		{"generation", nil, func(o *thing) { o.Generation = 2 }, queue.Change},
		{"another UID", nil, func(o *thing) { o.UID = "v" }, queue.Change},
		{"deletion", nil, deleting, queue.Change},
		{"paused", nil, func(o *thing) { o.Annotations = map[string]string{"example.com/paused": "true"} }, queue.Change},
		{"reconcile-at", nil, func(o *thing) { o.Annotations = map[string]string{"example.com/reconcile-at": "now"} }, queue.Change},
		{"orphan while it lives", nil, orphan, queue.Change},
		{"orphan while it is deleted", deleting, func(o *thing) { deleting(o); orphan(o) }, queue.Release},
		{"deletion of an orphan", orphan, func(o *thing) { deleting(o); orphan(o) }, queue.Release},
	} {
		old, obj := base.DeepCopyObject().(*thing), base.DeepCopyObject().(*thing)
		if x.old != nil {
			x.old(old)
		}
		x.new(obj)
		if got := c.judge(store.Change[*thing]{Old: old, New: obj, HasOld: true, HasNew: true}); got != x.want {
			t.Errorf("%s: cause %d, want %d", x.name, got, x.want)
		}
	}
	for _, x := range []struct {
		name string
		ch   store.Change[*thing]
		want queue.Cause
	}{
		{"first list", store.Change[*thing]{New: base, HasNew: true, Initial: true}, queue.Initial},
		{"added", store.Change[*thing]{New: base, HasNew: true}, queue.Change},
		{"gone", store.Change[*thing]{Old: base, HasOld: true}, queue.Change},
	} {
		if got := c.judge(x.ch); got != x.want {
			t.Errorf("%s: cause %d, want %d", x.name, got, x.want)
		}
	}
}

func TestWhereThereIsNoGenerationTheContentStandsForIt(t *testing.T) {
	t.Parallel()
	c := newController(NewInformer(configMaps, InformerOptions{}), Options{})
	old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}, Data: map[string]string{"a": "1"}}
	same, other := old.DeepCopy(), old.DeepCopy()
	same.ResourceVersion = "2"
	other.Data["a"] = "2"
	for want, obj := range map[queue.Cause]*corev1.ConfigMap{0: same, queue.Change: other} {
		if got := c.judge(store.Change[*corev1.ConfigMap]{Old: old, New: obj, HasOld: true, HasNew: true}); got != want {
			t.Errorf("cause %d, want %d", got, want)
		}
	}
}

func TestASecondaryStartsNothingWhenNothingRelevantChanged(t *testing.T) {
	t.Parallel()
	a := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}, Data: map[string]string{"a": "1"}}
	b := a.DeepCopy()
	b.ResourceVersion, b.ManagedFields = "2", []metav1.ManagedFieldsEntry{{}}
	if differs(a, b) {
		t.Error("versions alone count as a difference")
	}
	b.Data["a"] = "2"
	if !differs(a, b) {
		t.Error("data does not count as a difference")
	}
	if a.ResourceVersion != "1" || b.ResourceVersion != "2" {
		t.Error("the shared objects were changed")
	}
}

// copying counts its deep copies.
type copying struct {
	thing
	Copies *int `json:"-"`
}

func (c *copying) DeepCopyObject() runtime.Object {
	*c.Copies++
	return &copying{*c.thing.DeepCopyObject().(*thing), c.Copies}
}

func TestAnEventMakesNoDeepCopy(t *testing.T) {
	t.Parallel()
	resource := Resource[*copying]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "things"}
	c := newController(NewInformer(resource, InformerOptions{}), Options{})
	copies := 0
	for name, generation := range map[string]int64{"a generation": 1, "no generation": 0} {
		old := &copying{thing{ObjectMeta: metav1.ObjectMeta{Name: "n", Generation: generation, Labels: map[string]string{"a": "b"}}}, &copies}
		obj := &copying{thing{ObjectMeta: metav1.ObjectMeta{Name: "n", Generation: generation}}, &copies}
		if got := c.judge(store.Change[*copying]{Old: old, New: obj, HasOld: true, HasNew: true}); got != queue.Event {
			t.Errorf("%s: cause %d", name, got)
		}
		if !differs(old, obj) || old.Labels["a"] != "b" {
			t.Errorf("%s: the shared objects were changed", name)
		}
	}
	if copies > 0 {
		t.Errorf("%d deep copies", copies)
	}
}

func TestJudgingAnUnstructuredObjectLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	loose := Resource[*unstructured.Unstructured]{GroupVersion: things.GroupVersion, Kind: "Thing", Plural: "things"}
	c := newController(NewInformer(loose, InformerOptions{}), Options{})
	c.live = &liveInformer[*unstructured.Unstructured]{served: kube.Served{Status: true}}
	make1 := func(label, status, spec string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "n", "resourceVersion": label, "labels": map[string]any{"a": label}, "managedFields": []any{}},
			"spec":     map[string]any{"a": spec}, "status": map[string]any{"b": status},
		}}
	}
	for _, x := range []struct {
		obj  *unstructured.Unstructured
		want queue.Cause
	}{
		{make1("1", "1", "2"), queue.Change},
		{make1("2", "1", "1"), queue.Event},
		{make1("1", "2", "1"), queue.Restore},
	} {
		old := make1("1", "1", "1")
		given := x.obj.DeepCopy()
		if got := c.judge(store.Change[*unstructured.Unstructured]{Old: old, New: x.obj, HasOld: true, HasNew: true}); got != x.want {
			t.Errorf("cause %d, want %d", got, x.want)
		}
		if d := cmp.Diff(given, x.obj) + cmp.Diff(make1("1", "1", "1"), old); d != "" {
			t.Errorf("the shared objects were changed:\n%s", d)
		}
	}
}

// clock has fields that only their own package may look into.
type clock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		At time.Time `json:"at"`
	} `json:"spec,omitempty"`
	Status struct {
		Seen time.Time `json:"seen"`
	} `json:"status,omitempty"`
}

func (c *clock) DeepCopyObject() runtime.Object { d := *c; return &d }

func TestATypeWithFieldsThatNobodyMayLookIntoIsComparedAllTheSame(t *testing.T) {
	t.Parallel()
	resource := Resource[*clock]{GroupVersion: things.GroupVersion, Kind: "Clock", Plural: "clocks"}
	c := newController(NewInformer(resource, InformerOptions{}), Options{})
	for want, edit := range map[queue.Cause]func(*clock){
		0:             func(o *clock) { o.ResourceVersion = "2" },
		queue.Change:  func(o *clock) { o.Spec.At = later },
		queue.Restore: func(o *clock) { o.Status.Seen = later },
	} {
		old := &clock{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}}
		obj := old.DeepCopyObject().(*clock)
		edit(obj)
		if got := c.judge(store.Change[*clock]{Old: old, New: obj, HasOld: true, HasNew: true}); got != want {
			t.Errorf("cause %d, want %d", got, want)
		}
		path := editedPath(c.status, old, obj, true)
		if (path == "spec.at") != (want == queue.Change) {
			t.Errorf("cause %d: an edit of %q", want, path)
		}
	}
}

// primaries notes what a changed secondary starts.
type primaries struct{ added map[Key]queue.Cause }

func (p *primaries) owner() any                   { return p }
func (p *primaries) known(k Key) bool             { return k.Name != "unknown" }
func (p *primaries) add(k Key, cause queue.Cause) { p.added[k] = cause }
func (p *primaries) recovered(string)             {}

func TestHowUrgentlyAChangedSecondaryStartsAPass(t *testing.T) {
	t.Parallel()
	of := func(name, version string) *thing {
		return &thing{ObjectMeta: metav1.ObjectMeta{Name: version}, Spec: map[string]string{"for": name}}
	}
	keys := func(o *thing) iter.Seq[Key] { return slices.Values([]Key{{Name: o.Spec["for"]}}) }
	me := &primaries{}
	for name, x := range map[string]struct {
		ch   store.Change[*thing]
		want map[Key]queue.Cause
	}{
		"first list":              {store.Change[*thing]{New: of("a", "1"), HasNew: true, Initial: true}, map[Key]queue.Cause{{Name: "a"}: queue.Initial}},
		"made":                    {store.Change[*thing]{New: of("a", "1"), HasNew: true}, map[Key]queue.Cause{{Name: "a"}: queue.Related}},
		"changed":                 {store.Change[*thing]{Old: of("a", "1"), New: of("b", "2"), HasOld: true, HasNew: true}, map[Key]queue.Cause{{Name: "a"}: queue.Related, {Name: "b"}: queue.Related}},
		"changed in a later list": {store.Change[*thing]{Old: of("a", "1"), New: of("a", "2"), HasOld: true, HasNew: true, Initial: true}, map[Key]queue.Cause{{Name: "a"}: queue.Related}},
		"gone":                    {store.Change[*thing]{Old: of("a", "1"), HasOld: true}, map[Key]queue.Cause{{Name: "a"}: queue.Related}},
		"of one that is not here": {store.Change[*thing]{New: of("unknown", "1"), HasNew: true}, map[Key]queue.Cause{}},
		"made by its own pass":    {store.Change[*thing]{New: of("a", "1"), HasNew: true, By: &store.Origin{Owner: me, Key: Key{Name: "a"}}}, map[Key]queue.Cause{}},
		"made by another's pass":  {store.Change[*thing]{New: of("a", "1"), HasNew: true, By: &store.Origin{Owner: me, Key: Key{Name: "b"}}}, map[Key]queue.Cause{{Name: "a"}: queue.Related}},
		"for another controller":  {store.Change[*thing]{New: of("a", "1"), HasNew: true, Only: "another"}, map[Key]queue.Cause{}},
	} {
		me.added = map[Key]queue.Cause{}
		related(me, x.ch, keys)
		if d := cmp.Diff(x.want, me.added); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestAChangeThatIsToldAgainIsForItsWriterAlone(t *testing.T) {
	t.Parallel()
	c := newController(NewInformer(things, InformerOptions{}), Options{})
	for name, x := range map[string]struct {
		only any
		want int
	}{"everybody": {nil, 1}, "this one": {c, 1}, "another": {"another", 0}} {
		c.queue = queue.New[Key](queue.Options{})
		c.heard(store.Change[*thing]{New: newThing(nil), HasNew: true, Only: x.only})
		if got := c.queue.Stats().Ready[queue.People]; got != x.want {
			t.Errorf("for %s: %d keys were queued", name, got)
		}
		c.queue.Close()
	}
}

func TestWhereThereIsNoGenerationAHashOfTheContentStandsForIt(t *testing.T) {
	t.Parallel()
	c := newController(NewInformer(things, InformerOptions{}), Options{})
	base := &thing{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}, Spec: map[string]string{"a": "1"}}
	for name, x := range map[string]struct {
		edit func(*thing)
		same bool
	}{
		"status":          {func(o *thing) { o.Status.ID = "x" }, true},
		"resourceVersion": {func(o *thing) { o.ResourceVersion = "2" }, true},
		"managedFields":   {func(o *thing) { o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }, true},
		"our finalizer":   {func(o *thing) { o.Finalizers = []string{"example.com/thing"} }, true},
		"the claim":       {func(o *thing) { o.Annotations = map[string]string{"example.com/thing.claim": "{}"} }, true},
		"spec":            {func(o *thing) { o.Spec["a"] = "2" }, false},
	} {
		obj := base.DeepCopyObject().(*thing)
		x.edit(obj)
		if g := c.generation(obj); g <= 0 || (g == c.generation(base)) != x.same {
			t.Errorf("%s: %d becomes %d", name, c.generation(base), g)
		}
	}
	if g := c.generation(&thing{ObjectMeta: metav1.ObjectMeta{Generation: 7}}); g != 7 {
		t.Errorf("a generation of 7 became %d", g)
	}
}
