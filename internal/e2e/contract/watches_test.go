package contract

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether"
)

// shop is a rig of Gadgets with an informer of Parts.
type shop struct {
	*rig
	material *tether.Informer[*Part]
	came     *record[string] // Parts, on their way into the store
}

func shopUp(t *testing.T, watch func(*tether.Informer[*Part], *rigging) tether.Watch) *shop {
	t.Helper()
	s := setup(t)
	v := &shop{material: tether.NewInformer(parts, s.here()), came: &record[string]{}}
	tether.NewIndex(v.material, func(p *Part) []string { v.came.add(p.Name); return nil })
	m := rigging{reconcile: done}
	m.options.Watches = []tether.Watch{watch(v.material, &m)}
	v.rig = rigOn(t, s, m)
	for _, name := range []string{"one", "two"} {
		v.gadget(t, name, `{"spec":{"parts":["wheel"]}}`)
		v.hooks.ending(t, 1, name)
	}
	return v
}

func (s *shop) part(t *testing.T, name, content string) {
	t.Helper()
	s.make(t, served("parts"), "Part", name, content)
}

// settled waits until what happened to Parts before this call has been heard, and
// makes sure of how many passes each Gadget has had.
func (s *shop) settled(t *testing.T, one, two int) {
	t.Helper()
	mark := s.make(t, served("parts"), "Part", "", `{"metadata":{"generateName":"mark-"}}`).GetName()
	s.came.await(t, 1, "the arrival of "+mark, func(name string) bool { return name == mark })
	s.quiet(t)
	for name, want := range map[string]int{"one": one, "two": two} {
		s.hooks.passes.await(t, want, fmt.Sprint("pass ", want, " of ", name), passesOf(name))
		s.passed(t, want, name)
	}
}

func byFunction(in *tether.Informer[*Part], _ *rigging) tether.Watch {
	return tether.Watches(in, ofGadget)
}

func TestAChangedSecondaryStartsThePassesThatAFunctionNames(t *testing.T) {
	t.Parallel()
	s := shopUp(t, byFunction)
	s.part(t, "wheel", `{"spec":{"for":"one"}}`)
	s.pass(t, 2, "one")
	s.settled(t, 2, 1)
	s.patchOf(t, served("parts"), "wheel", `{"spec":{"material":"steel"}}`)
	s.pass(t, 3, "one")
	// The keys of both the old and the new one are queued.
	s.patchOf(t, served("parts"), "wheel", `{"spec":{"for":"two"}}`)
	s.pass(t, 4, "one")
	s.pass(t, 2, "two")
	s.settled(t, 4, 2)
	if err := s.on(served("parts")).Delete(t.Context(), "wheel", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.pass(t, 3, "two")
	s.settled(t, 4, 3)
	if p := s.hooks.ending(t, 3, "two"); p.Lane != "people" {
		t.Errorf("it came in lane %s", p.Lane)
	}
}

func TestASecondaryStartsNothingWhereNothingRelevantChanged(t *testing.T) {
	t.Parallel()
	s := shopUp(t, byFunction)
	s.part(t, "wheel", `{"spec":{"for":"one","material":"steel"}}`)
	s.pass(t, 2, "one")
	s.part(t, "of-none", `{}`)
	s.part(t, "of-nobody", `{"spec":{"for":"nobody"}}`)
	// Another owner of the same value: managedFields and resourceVersion change alone.
	before := s.patchOf(t, served("parts"), "wheel", `{}`).GetResourceVersion()
	after, err := s.on(served("parts")).Patch(t.Context(), "wheel", types.ApplyPatchType,
		[]byte(`{"apiVersion":"shop.example.com/v1","kind":"Part","spec":{"material":"steel"}}`), metav1.PatchOptions{FieldManager: "another"})
	if err != nil || after.GetResourceVersion() == before {
		t.Fatalf("%v; the version stays %s", err, before)
	}
	s.settled(t, 2, 1)
}

func TestAChangedSecondaryStartsThePassOfItsOwner(t *testing.T) {
	t.Parallel()
	s := shopUp(t, func(in *tether.Informer[*Part], _ *rigging) tether.Watch { return tether.Owned(in) })
	ref := gadgets.OwnerReference(s.get(t, "one"))
	if ref.Kind != "Gadget" || ref.APIVersion != "shop.example.com/v1" || ref.Name != "one" || ref.UID != s.get(t, "one").UID || !*ref.Controller || !*ref.BlockOwnerDeletion {
		t.Errorf("the reference is %+v", ref)
	}
	owned := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]}}`, ref.APIVersion, ref.Kind, ref.Name, ref.UID)
	s.part(t, "wheel", owned)
	s.pass(t, 2, "one")
	s.part(t, "unowned", `{"spec":{"for":"two"}}`)
	s.settled(t, 2, 1)
	s.patchOf(t, served("parts"), "wheel", `{"spec":{"material":"steel"}}`)
	s.pass(t, 3, "one")
	s.settled(t, 3, 1)
}

func TestAChangedSecondaryStartsThePassesThatAnIndexFinds(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in, material := tether.NewInformer(gadgets, s.here()), tether.NewInformer(parts, s.here())
	madeOf := tether.NewIndex(in, func(g *Gadget) []string { return g.Spec.Parts })
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(in, reconciles[*Gadget](func(context.Context, *Gadget) (tether.Result, error) {
		return tether.Done, nil
	}), tether.Options{Workers: 1, Watches: []tether.Watch{tether.Watches(material, func(p *Part) iter.Seq[tether.Key] {
		return func(yield func(tether.Key) bool) {
			for g := range madeOf.Lookup(p.Name) {
				if !yield(tether.Key{Namespace: g.Namespace, Name: g.Name}) {
					return
				}
			}
		}
	})}}))
	s.gadget(t, "car", `{"spec":{"parts":["wheel","door"]}}`)
	s.gadget(t, "cart", `{"spec":{"parts":["wheel"]}}`)
	s.gadget(t, "house", `{"spec":{"parts":["door"]}}`)
	for _, name := range []string{"car", "cart", "house"} {
		hooks.ending(t, 1, name)
	}
	s.make(t, served("parts"), "Part", "wheel", `{}`)
	hooks.ending(t, 2, "car")
	hooks.ending(t, 2, "cart")
	s.patch(t, "cart", `{"spec":{"parts":["shaft"]}}`)
	hooks.ending(t, 3, "cart")
	s.patchOf(t, served("parts"), "wheel", `{"spec":{"material":"wood"}}`)
	hooks.ending(t, 3, "car")
	s.quiet(t, hooks)
	for name, want := range map[string]int{"car": 3, "cart": 3, "house": 1} {
		if n := len(hooks.passes.all(passesOf(name))); n != want {
			t.Errorf("%s has had %d passes, want %d", name, n, want)
		}
	}
}

func TestAWatchWhoseFunctionPanicsIsLoggedAndHarmsNothing(t *testing.T) {
	t.Parallel()
	s := shopUp(t, func(in *tether.Informer[*Part], _ *rigging) tether.Watch {
		return tether.Watches(in, func(p *Part) iter.Seq[tether.Key] {
			if p.Spec.Material == "glass" {
				panic("broken")
			}
			return ofGadget(p)
		})
	})
	s.part(t, "window", `{"spec":{"material":"glass"}}`)
	s.part(t, "wheel", `{"spec":{"for":"one"}}`)
	s.pass(t, 2, "one")
	s.log.line(t, "a function of the author panicked", "broken", "Watches")
}

func TestAnIndexWhoseFunctionPanicsHasNoValuesForThatObject(t *testing.T) {
	t.Parallel()
	s := setup(t)
	in := tether.NewInformer(gadgets, s.here())
	byColor := tether.NewIndex(in, func(g *Gadget) []string {
		if g.Spec.Color == "glass" {
			panic("broken")
		}
		return []string{g.Spec.Color}
	})
	hooks := newHooks()
	s.start(t, tether.RunOptions{Hooks: hooks}, tether.New(in, reconciles[*Gadget](func(context.Context, *Gadget) (tether.Result, error) {
		return tether.Done, nil
	}), tether.Options{}))
	for _, color := range []string{"glass", "red"} {
		s.gadget(t, color, fmt.Sprintf(`{"spec":{"color":%q}}`, color))
		hooks.ending(t, 1, color)
		var names []string
		for g := range byColor.Lookup(color) {
			names = append(names, g.Name)
		}
		if want := map[string]int{"glass": 0, "red": 1}[color]; len(names) != want {
			t.Errorf("%s finds %v", color, names)
		}
	}
	s.log.line(t, "a function of the author panicked", "broken", "NewIndex")
}

func TestPassesBeginWhenWhatTheyReadHasSyncedAndItsChangesStartNone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	material := tether.NewInformer(parts, s.here())
	s.make(t, served("parts"), "Part", "wheel", `{"spec":{"for":"one"}}`)
	s.gadget(t, "one", `{}`)
	list := s.wire.hold(before, 1, watchOf("parts"))
	var seen record[[]string]
	r := rigOn(t, s, rigging{also: material, standby: true, reconcile: func(_ context.Context, g *Gadget, _ int) (tether.Result, error) {
		var names []string
		for p := range material.List(g.Namespace) {
			names = append(names, p.Name)
		}
		seen.add(names)
		return tether.Done, nil
	}})
	list.reached(t)
	r.heard(t) // the Gadgets are here
	if ready := r.hooks.now().Queues[0].Ready; ready["background"] == 0 || len(seen.all(nil)) > 0 {
		t.Errorf("passes run before all is read; in the queue: %v", ready)
	}
	list.release()
	if got := seen.nth(t, 1, "the pass", nil); !slices.Equal(got, []string{"wheel"}) {
		t.Errorf("it read %v", got)
	}
	s.patchOf(t, served("parts"), "wheel", `{"spec":{"material":"steel"}}`)
	s.make(t, served("parts"), "Part", "door", `{"spec":{"for":"one"}}`)
	r.quiet(t)
	r.passed(t, 1, "one")
}
