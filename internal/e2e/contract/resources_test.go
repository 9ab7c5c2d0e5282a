package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether"
)

var configs = tether.Resource[*corev1.ConfigMap]{GroupVersion: corev1.SchemeGroupVersion, Kind: "ConfigMap", Plural: "configmaps"}

func TestABuiltInTypeIsReconciledAndFinalized(t *testing.T) {
	t.Parallel()
	s := setup(t)
	const finalizer = "tests.example.com/keeper"
	o := s.here()
	o.LabelSelector = "kept=yes"
	k := &keeper{finalizer: finalizer}
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(tether.NewInformer(configs, o), k, tether.Options{Name: "keeper", Domain: "tests.example.com", Workers: 1}))
	s.make(t, configMaps, "ConfigMap", "one", `{"metadata":{"labels":{"kept":"yes"}},"data":{"a":"1"}}`)
	if got := k.seen.nth(t, 1, "the first pass", nil); got != "reconcile a=1" {
		t.Errorf("it was %q", got)
	}
	if err := s.on(configMaps).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := k.seen.nth(t, 2, "the finalization", nil); got != "finalize a=1" {
		t.Errorf("it was %q", got)
	}
	s.gone(t, configMaps, "one", "")
}

// keeper is a user's controller of a built-in type.
type keeper struct {
	finalizer string
	seen      record[string]
	err       error
}

func (k *keeper) note(what string, cm *corev1.ConfigMap) (tether.Result, error) {
	if !slices.Contains(cm.Finalizers, k.finalizer) {
		what += " without its finalizer"
	}
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		what += fmt.Sprintf(" %s=%s", key, cm.Data[key])
	}
	k.seen.add(what)
	return tether.Done, k.err
}

// Reconcile notes what it was given.
func (k *keeper) Reconcile(_ context.Context, cm *corev1.ConfigMap) (tether.Result, error) {
	return k.note("reconcile", cm)
}

// Finalize notes what it was given.
func (k *keeper) Finalize(_ context.Context, cm *corev1.ConfigMap) (tether.Result, error) {
	return k.note("finalize", cm)
}

// Line 9.
func TestWhereTheAPIServerKeepsNoGenerationTheContentStandsForIt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	k := &keeper{finalizer: "tests.example.com/keeper", err: tether.Terminal(errSold)}
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(tether.NewInformer(configs, s.here()), k, tether.Options{Name: "keeper", Domain: "tests.example.com", Workers: 1}))
	s.make(t, configMaps, "ConfigMap", "one", `{"data":{"a":"1"}}`)
	hooks.ending(t, 1, "one")
	for _, change := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"example.com/a":"b"}}}`} {
		s.patchOf(t, configMaps, "one", change)
	}
	s.make(t, configMaps, "ConfigMap", "two", `{}`)
	hooks.ending(t, 1, "two")
	if ready := hooks.now().Queues[0].Ready; len(k.seen.all(nil)) != 2 || ready["people"]+ready["retry"]+ready["background"] > 0 {
		t.Errorf("a stalled one had passes for its metadata: %v, %v", k.seen.all(nil), ready)
	}
	s.patchOf(t, configMaps, "one", `{"data":{"a":"2"}}`)
	if got := k.seen.nth(t, 3, "a pass for the new content", nil); got != "reconcile a=2" {
		t.Errorf("it was %q", got)
	}
}

func TestAnUnstructuredTypeIsReconciledWithConditions(t *testing.T) {
	t.Parallel()
	s := setup(t)
	loose := tether.Resource[*unstructured.Unstructured]{GroupVersion: groupVersion, Kind: "Gadget", Plural: "gadgets"}
	in := tether.NewInformer(loose, s.here())
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(in, reconciles[*unstructured.Unstructured](func(_ context.Context, u *unstructured.Unstructured) (tether.Result, error) {
		color, _, err := unstructured.NestedString(u.Object, "spec", "color")
		if err == nil && color == "red" {
			err = tether.Terminal(tether.Reason("TooRed", errSold))
		}
		if err == nil {
			err = unstructured.SetNestedField(u.Object, "painted "+color, "status", "note")
		}
		return tether.Done, err
	}), tether.Options{Workers: 1}))
	s.gadget(t, "one", `{"spec":{"color":"red"}}`)
	g := s.await(t, "one", "stalled", is("Stalled", metav1.ConditionTrue, "TooRed"))
	if g.Status.ObservedGeneration != 1 {
		t.Errorf("status is %+v", g.Status)
	}
	s.patch(t, "one", `{"spec":{"color":"blue"}}`)
	if g = s.await(t, "one", "ready", ready); g.Status.Note != "painted blue" || g.Status.ObservedGeneration != 2 || len(g.Status.Conditions) != 1 {
		t.Errorf("status is %+v", g.Status)
	}
	hooks.ending(t, 2, "one")
	s.quiet(t, hooks)
	if n := len(hooks.passes.all(passesOf("one"))); n != 2 {
		t.Errorf("%d passes", n)
	}
	if u, ok := in.Get(s.key("one")); !ok || u.GetKind() != "Gadget" || u.GetManagedFields() != nil {
		t.Errorf("the informer shows %v", u)
	}
}

func TestAnUnstructuredTypeWithoutAStatusSubresourceHasNoneWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	loose := tether.Resource[*unstructured.Unstructured]{GroupVersion: groupVersion, Kind: "Part", Plural: "parts"}
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(tether.NewInformer(loose, s.here()), reconciles[*unstructured.Unstructured](func(context.Context, *unstructured.Unstructured) (tether.Result, error) {
		return tether.Done, nil
	}), tether.Options{}))
	s.make(t, served("parts"), "Part", "one", `{}`)
	if p := hooks.ending(t, 1, "one"); p.Outcome != "done" {
		t.Errorf("the pass ended in %+v", p)
	}
	if got := s.wire.lines(writes("parts")); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
}

func TestAClusterScopedTypeWithoutConditionsIsReconciled(t *testing.T) {
	t.Parallel()
	s := setup(t)
	o := tether.InformerOptions{FieldSelector: "metadata.name=" + s.namespace}
	in := tether.NewInformer(depots, o)
	c := tether.New(in, reconciles[*Depot](func(ctx context.Context, d *Depot) (tether.Result, error) {
		tether.Event(ctx, corev1.EventTypeNormal, "Greeted", "said hello")
		d.Status = &DepotStatus{Greeting: "hello " + d.Spec.City}
		return tether.Done, nil
	}), tether.Options{})
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, c)
	s.make(t, served("depots"), "Depot", s.namespace, `{"spec":{"city":"Incheon"}}`)
	hooks.ending(t, 1, s.namespace)
	u := s.awaitOf(t, served("depots"), s.namespace, "greeted", func(u *unstructured.Unstructured) bool {
		greeting, _, _ := unstructured.NestedString(u.Object, "status", "greeting")
		return greeting == "hello Incheon"
	})
	if status, _, _ := unstructured.NestedMap(u.Object, "status"); len(status) != 1 {
		t.Errorf("status is %v", status)
	}
	if d, ok := in.Get(tether.Key{Name: s.namespace}); !ok || d.Status.Greeting != "hello Incheon" {
		t.Errorf("the informer shows %+v", d)
	}
	// The Event of a cluster-scoped object is in namespace default.
	ctx, cancel := patience(t, "the Event")
	defer cancel()
	w, err := admin.Resource(events).Namespace("default").Watch(ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + s.namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := received(t, w.ResultChan(), "the Event").Object.(*unstructured.Unstructured)
	if e.Object["reason"] != "Greeted" || e.Object["note"] != "said hello" {
		t.Errorf("the Event is %v", e.Object)
	}
}

func TestAnInformerSeesTheNamespacesAndSelectorsItWasGivenAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespaces []int // which of three
		options    tether.InformerOptions
		want       []string
	}{
		"two namespaces": {[]int{1, 2}, tether.InformerOptions{}, []string{"1/blue", "1/red", "2/blue", "2/red"}},
		"a label":        {[]int{1, 3}, tether.InformerOptions{LabelSelector: "color in (red,green)"}, []string{"1/red", "3/red"}},
		"a field":        {[]int{1}, tether.InformerOptions{FieldSelector: "spec.color=blue"}, []string{"1/blue"}},
		"a name":         {[]int{2}, tether.InformerOptions{FieldSelector: "metadata.name=red"}, []string{"2/red"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := []*stage{setup(t), setup(t), setup(t)}
			for _, n := range c.namespaces {
				c.options.Namespaces = append(c.options.Namespaces, all[n-1].namespace)
			}
			number := map[string]string{all[0].namespace: "1", all[1].namespace: "2", all[2].namespace: "3"}
			var seen record[string]
			in := tether.NewInformer(gadgets, c.options)
			r := all[0].start(t, tether.RunOptions{}, tether.New(in, reconciles[*Gadget](func(_ context.Context, g *Gadget) (tether.Result, error) {
				seen.add(number[g.Namespace] + "/" + g.Name)
				return tether.Done, nil
			}), tether.Options{}))
			all[0].log.line(t, "controllers run")
			for _, s := range all {
				for _, color := range []string{"red", "blue"} {
					s.gadget(t, color, fmt.Sprintf(`{"metadata":{"labels":{"color":%q}},"spec":{"color":%q}}`, color, color))
				}
			}
			// The last of each namespace that is seen comes after all others of it.
			seen.await(t, len(c.want), "the passes", nil)
			var got []string
			for g := range in.List("") {
				got = append(got, number[g.Namespace]+"/"+g.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("the informer shows %v, want %v", got, c.want)
			}
			passed := seen.all(nil)
			slices.Sort(passed)
			if !slices.Equal(passed, c.want) {
				t.Errorf("passes of %v, want %v", passed, c.want)
			}
			if err := r.end(t); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnObjectThatNoLongerMatchesASelectorIsGoneForTheController(t *testing.T) {
	t.Parallel()
	s := setup(t)
	o := s.here()
	o.LabelSelector = "mine=yes"
	in, all := tether.NewInformer(gadgets, o), tether.NewInformer(gadgets, s.here())
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(in, reconciles[*Gadget](func(context.Context, *Gadget) (tether.Result, error) {
		return tether.Done, nil
	}), tether.Options{Workers: 1, Reads: []tether.Reads{all}}))
	s.gadget(t, "one", `{"metadata":{"labels":{"mine":"yes"}}}`)
	hooks.ending(t, 1, "one")
	s.patch(t, "one", `{"metadata":{"labels":{"mine":"no"}}}`)
	s.gadget(t, "two", `{"metadata":{"labels":{"mine":"yes"}}}`)
	hooks.ending(t, 1, "two")
	if _, ok := in.Get(s.key("one")); ok {
		t.Error("it is still shown")
	}
	if n := len(hooks.passes.all(passesOf("one"))); n != 1 {
		t.Errorf("it has had %d passes", n)
	}
}

func TestAResourceThatNamesNothingIsAMistake(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in := tether.NewInformer(tether.Resource[*Gadget]{GroupVersion: schema.GroupVersion{}}, tether.InformerOptions{LabelSelector: "a in ("})
	r := s.start(t, tether.RunOptions{}, tether.New(in, reconciles[*Gadget](nil), tether.Options{}))
	err := received(t, r.ended, "the end of the Run")
	for _, field := range []string{"Resource.GroupVersion", "Resource.Kind", "Resource.Plural", "InformerOptions.LabelSelector"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("the error lacks %s: %v", field, err)
		}
	}
	if got := s.wire.log.all(nil); len(got) > 0 {
		t.Errorf("something was started: %v", got)
	}
}
