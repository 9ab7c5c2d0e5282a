package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether"
)

// builder is a user's controller: it keeps a Part for each name in a Gadget's spec,
// owned by it, and takes off those that are not there any more.
type builder struct {
	owned  *tether.Index[*Part]
	client *tether.Client[*Part]
}

func (b *builder) Reconcile(ctx context.Context, g *Gadget) (tether.Result, error) {
	for p := range b.owned.Lookup(string(g.UID)) {
		if !slices.Contains(g.Spec.Parts, p.Spec.For) {
			if err := b.client.Delete(ctx, p); err != nil && !apierrors.IsNotFound(err) {
				return tether.Done, err
			}
		}
	}
	for _, name := range g.Spec.Parts {
		_, err := b.client.Apply(ctx, &Part{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name + "-" + name, OwnerReferences: []metav1.OwnerReference{gadgets.OwnerReference(g)}},
			Spec:       PartSpec{Material: g.Spec.Color, For: name},
		})
		if err != nil {
			return tether.Done, err
		}
	}
	g.Status.Count = 0
	for range b.owned.Lookup(string(g.UID)) { // as written, whether or not an event has come
		g.Status.Count++
	}
	return tether.Done, nil
}

func TestAControllerKeepsWhatItMakesAsItIsWantedWithoutWakingItself(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in, material := tether.NewInformer(gadgets, s.here()), tether.NewInformer(parts, s.here())
	b := &builder{client: tether.NewClient(material, tether.ClientOptions{})}
	b.owned = tether.NewIndex(material, func(p *Part) []string {
		if ref := metav1.GetControllerOf(p); ref != nil {
			return []string{string(ref.UID)}
		}
		return nil
	})
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(in, b, tether.Options{Name: "builder", Workers: 1, Watches: []tether.Watch{tether.Owned(material)}}))
	s.wire.holdEvents(func(e event) bool { return e.Resource == "parts" && e.Type != "BOOKMARK" })
	s.gadget(t, "car", `{"spec":{"color":"steel","parts":["wheel","door"]}}`)
	hooks.ending(t, 1, "car")
	if g := s.get(t, "car"); g.Status.Count != 2 {
		t.Errorf("the pass counted %d parts of its own making", g.Status.Count)
	}
	s.patch(t, "car", `{"spec":{"color":"wood","parts":["door"]}}`)
	hooks.ending(t, 2, "car")
	if g := s.get(t, "car"); g.Status.Count != 1 {
		t.Errorf("the pass counted %d parts", g.Status.Count)
	}
	s.wire.lift()
	// Now the events of all that come, and none of them is news.
	s.partsHeard(t, material)
	s.quiet(t, hooks)
	if n := len(hooks.passes.all(passesOf("car"))); n != 2 {
		t.Errorf("%d passes, two of which a person asked for", n)
	}
	door := s.awaitOf(t, served("parts"), "car-door", "of wood", func(u *unstructured.Unstructured) bool {
		material, _, _ := unstructured.NestedString(u.Object, "spec", "material")
		return material == "wood"
	})
	if managers := door.GetManagedFields(); len(managers) != 1 || managers[0].Manager != "builder" || managers[0].Operation != "Apply" {
		t.Errorf("its fields are managed by %+v", managers)
	}
	s.gone(t, served("parts"), "car-wheel", "")

	// Someone else's hand is.
	s.patchOf(t, served("parts"), "car-door", `{"spec":{"material":"paper"}}`)
	hooks.ending(t, 3, "car")
	if err := s.on(served("parts")).Delete(t.Context(), "car-door", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	hooks.ending(t, 4, "car")
	if p, ok := material.Get(s.key("car-door")); !ok || p.Spec.Material != "wood" {
		t.Errorf("the part is %+v", p)
	}
	s.partsHeard(t, material)
	s.quiet(t, hooks)
	if n := len(hooks.passes.all(passesOf("car"))); n != 4 {
		t.Errorf("%d passes, four of which someone asked for", n)
	}
}

// partsHeard waits until what happened to Parts before this call has been heard.
func (s *stage) partsHeard(t *testing.T, in *tether.Informer[*Part]) {
	t.Helper()
	u := s.make(t, served("parts"), "Part", "", `{"metadata":{"generateName":"mark-"}}`)
	mark := func(e event) bool { return e.Resource == "parts" && e.Name == u.GetName() }
	s.wire.came(t, "the event of the mark", mark)
	// One more event says that the one before it was taken.
	s.patchOf(t, served("parts"), u.GetName(), `{"spec":{"material":"ink"}}`)
	s.wire.events.nth(t, 2, "the second event of the mark", mark)
	if _, ok := in.Get(s.key(u.GetName())); !ok {
		t.Error("the mark is not there")
	}
}

// asked is a stage on which passes of Gadgets do what a test asks with a Client.
func asked(t *testing.T, o tether.ClientOptions, do func(ctx context.Context, c *tether.Client[*Part], in *tether.Informer[*Part], g *Gadget) error) *rig {
	t.Helper()
	s := setup(t)
	material := tether.NewInformer(parts, s.here())
	client := tether.NewClient(material, o)
	return rigOn(t, s, rigging{also: material, options: never, reconcile: func(ctx context.Context, g *Gadget, _ int) (tether.Result, error) {
		return tether.Done, do(ctx, client, material, g)
	}})
}

func TestAClientsWritesAreInTheStoreWhenItReturns(t *testing.T) {
	t.Parallel()
	r := asked(t, tether.ClientOptions{FieldOwner: "me"}, func(ctx context.Context, c *tether.Client[*Part], in *tether.Informer[*Part], g *Gadget) error {
		key := tether.Key{Namespace: g.Namespace, Name: "wheel"}
		if _, err := c.Get(ctx, key); !apierrors.IsNotFound(err) {
			return fmt.Errorf("a Get of nothing: %w", err)
		}
		made, err := c.Create(ctx, &Part{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "wheel"}, Spec: PartSpec{Material: "wood"}})
		if err != nil {
			return err
		}
		if p, ok := in.Get(key); !ok || p.UID != made.UID || p.Spec.Material != "wood" {
			return fmt.Errorf("after Create the store has %+v", p)
		}
		made.Spec.Material = "mine" // what was returned is the caller's
		if _, err := c.Create(ctx, made); !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("a second Create: %w", err)
		}
		if _, err := c.Apply(ctx, &Part{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "wheel"}, Spec: PartSpec{Material: "steel", For: "one"}}); err != nil {
			return err
		}
		if p, _ := in.Get(key); p.Spec.Material != "steel" || p.Spec.For != "one" {
			return fmt.Errorf("after Apply the store has %+v", p)
		}
		other := &Part{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "wheel", UID: "of-another"}}
		if err := c.Delete(ctx, other); !apierrors.IsConflict(err) {
			return fmt.Errorf("a Delete of another object of the name: %w", err)
		}
		if _, ok := in.Get(key); !ok {
			return fmt.Errorf("after a Delete that failed the store has nothing")
		}
		if err := c.Delete(ctx, made); err != nil {
			return err
		}
		if p, ok := in.Get(key); ok {
			return fmt.Errorf("after Delete the store has %+v", p)
		}
		if err := c.Delete(ctx, made); !apierrors.IsNotFound(err) {
			return fmt.Errorf("a second Delete: %w", err)
		}
		return nil
	})
	r.wire.holdEvents(func(e event) bool { return e.Resource == "parts" && e.Type != "BOOKMARK" })
	r.gadget(t, "one", `{}`)
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "done" {
		t.Errorf("%s", condition(r.get(t, "one"), "Ready").Message)
	}
	// What comes late of it brings nothing back.
	r.wire.lift()
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	if p := r.hooks.ending(t, 2, "one"); p.Outcome != "done" {
		t.Errorf("%s", condition(r.get(t, "one"), "Ready").Message)
	}
	for _, e := range r.wire.log.all(ended(writes("parts"))) {
		if e.Method != http.MethodDelete && e.Query.Get("fieldManager") != "me" {
			t.Errorf("%s by %q", e, e.Query.Get("fieldManager"))
		}
	}
}

func TestAClientReadsConsistentlyAndTheStoreKeepsWhatItRead(t *testing.T) {
	t.Parallel()
	r := asked(t, tether.ClientOptions{}, func(ctx context.Context, c *tether.Client[*Part], in *tether.Informer[*Part], g *Gadget) error {
		if g.Spec.Size == 0 {
			return nil
		}
		key := tether.Key{Namespace: g.Namespace, Name: "wheel"}
		if p, ok := in.Get(key); ok {
			return fmt.Errorf("its event has come already: %+v", p)
		}
		got, err := c.Get(ctx, key)
		if err != nil || got.Spec.Material != "wood" {
			return fmt.Errorf("%+v, %w", got, err)
		}
		got.Spec.Material = "mine"
		if p, ok := in.Get(key); !ok || p.Spec.Material != "wood" {
			return fmt.Errorf("after Get the store has %+v", p)
		}
		return nil
	})
	r.wire.holdEvents(of("parts", "wheel"))
	r.make(t, served("parts"), "Part", "wheel", `{"spec":{"material":"wood"}}`)
	r.gadget(t, "one", `{"spec":{"size":1}}`)
	if p := r.hooks.ending(t, 1, "one"); p.Outcome != "done" {
		t.Errorf("%s", condition(r.get(t, "one"), "Ready").Message)
	}
}

func TestApplyTakesBackWhatSomeoneElseChangedAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	r := asked(t, tether.ClientOptions{}, func(ctx context.Context, c *tether.Client[*Part], _ *tether.Informer[*Part], g *Gadget) error {
		_, err := c.Apply(ctx, &Part{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "wheel"}, Spec: PartSpec{Material: g.Spec.Color}})
		return err
	})
	r.gadget(t, "one", `{"spec":{"color":"wood"}}`)
	r.hooks.ending(t, 1, "one")
	r.patchOf(t, served("parts"), "wheel", `{"metadata":{"labels":{"theirs":"stays"}},"spec":{"material":"paper","for":"somebody"}}`)
	r.patch(t, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	r.hooks.ending(t, 2, "one")
	u := r.awaitOf(t, served("parts"), "wheel", "there", func(*unstructured.Unstructured) bool { return true })
	if p := as[Part](t, u); p.Spec.Material != "wood" || p.Spec.For != "somebody" || p.Labels["theirs"] != "stays" {
		t.Errorf("it is %+v", p)
	}
	applied := r.wire.log.all(ended(to(http.MethodPatch, "parts", "wheel")))[0]
	var body map[string]any
	if err := json.Unmarshal([]byte(applied.Body), &body); err != nil {
		t.Fatal(err)
	}
	if applied.Query.Get("fieldManager") != "gadget" || body["status"] != nil || body["kind"] != "Part" {
		t.Errorf("applied by %s: %s", applied.Query.Get("fieldManager"), applied.Body)
	}
}

func TestAClientWorksBesidePassesAndOnlyWhileItsInformerRuns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	material := tether.NewInformer(parts, s.here())
	client := tether.NewClient(material, tether.ClientOptions{})
	wheel := &Part{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "wheel"}}
	if _, err := client.Create(t.Context(), wheel); err == nil || !strings.Contains(err.Error(), "its informer does not run") {
		t.Errorf("before Run: %v", err)
	}
	r := rigOn(t, s, rigging{also: material, reconcile: done})
	if _, err := client.Create(t.Context(), wheel); err != nil {
		t.Error(err)
	}
	if err := r.run.end(t); err != nil {
		t.Error(err)
	}
	if err := client.Delete(t.Context(), wheel); err == nil || !strings.Contains(err.Error(), "its informer does not run") {
		t.Errorf("after Run: %v", err)
	}
}
