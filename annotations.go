package tether

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
)

// asks are the names of the annotations by which people ask something of a controller.
// The zero asks are none.
type asks struct{ paused, orphaned, reconcileAt, adopt, anew, outcome string }

func newAsks(domain, name string) asks {
	if domain == "" {
		return asks{}
	}
	one := domain + "/" + name
	return asks{
		paused: domain + "/paused", orphaned: domain + "/orphan", reconcileAt: domain + "/reconcile-at",
		adopt: one + ".adopt", anew: one + ".new", outcome: one + ".outcome",
	}
}

func (a asks) all() [6]string {
	return [...]string{a.paused, a.orphaned, a.reconcileAt, a.adopt, a.anew, a.outcome}
}

func (a asks) orphan(obj metav1.Object) bool {
	return a != asks{} && obj.GetAnnotations()[a.orphaned] == "true"
}

// same tells whether two versions of an object ask the same.
func (a asks) same(x, y metav1.Object) bool {
	if a == (asks{}) {
		return true
	}
	for _, name := range a.all() {
		if !sameAnnotation(x, name, y, name) {
			return false
		}
	}
	return true
}

// sameAnnotation: both carry it with the same value, or neither does. An empty one
// is not one that is not there.
func sameAnnotation(x metav1.Object, onX string, y metav1.Object, onY string) bool {
	a, hasA := x.GetAnnotations()[onX]
	b, hasB := y.GetAnnotations()[onY]
	return a == b && hasA == hasB
}

var outcomeForm = regexp.MustCompile(`^[1-9][0-9]*\.[1-9][0-9]*=(happened:.+|did-not-happen)$`)

// parse reads what is asked, strictly: a value that is not one of those allowed is
// told, with the remedy, and nothing is guessed.
func (a asks) parse(obj metav1.Object) protocol.Ask {
	var ask protocol.Ask
	if a == (asks{}) {
		return ask
	}
	set := obj.GetAnnotations()
	for _, flag := range []struct {
		name string
		to   *bool
	}{{a.paused, &ask.Paused}, {a.orphaned, &ask.Orphan}} {
		switch v, ok := set[flag.name]; {
		case v == "true":
			*flag.to = true
		case ok:
			ask.Invalid = fmt.Sprintf(`annotation %s is %q; set it to "true", or take it off`, flag.name, clip(v, 64))
		}
	}
	ask.ReconcileAt = set[a.reconcileAt]
	ask.Adopt, ask.New, ask.Outcome = set[a.adopt], set[a.anew], set[a.outcome]
	if ask.Outcome != "" && !outcomeForm.MatchString(ask.Outcome) {
		ask.Invalid = fmt.Sprintf(`annotation %s is %q; give "<incarnation>.<attempt>=happened:<id>" or "<incarnation>.<attempt>=did-not-happen"`, a.outcome, clip(ask.Outcome, 64))
	}
	return ask
}

func hasFinalizer(obj metav1.Object, name string) bool {
	return slices.Contains(obj.GetFinalizers(), name)
}

// withFinalizer and withoutFinalizer never change the object's own slice.
func withFinalizer(obj metav1.Object, name string) []string {
	if hasFinalizer(obj, name) {
		return obj.GetFinalizers()
	}
	return append(slices.Clone(obj.GetFinalizers()), name)
}

func withoutFinalizer(obj metav1.Object, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return slices.Contains(names, f) })
}

// metadataPatch is a merge patch of finalizers and annotations, guarded by the
// object's resourceVersion.
func metadataPatch(obj metav1.Object, finalizers []string, annotations map[string]any) map[string]any {
	meta := map[string]any{"resourceVersion": obj.GetResourceVersion(), "finalizers": finalizers}
	if len(finalizers) == 0 {
		meta["finalizers"] = nil
	}
	if len(annotations) > 0 {
		meta["annotations"] = maps.Clone(annotations)
	}
	return map[string]any{"metadata": meta}
}
