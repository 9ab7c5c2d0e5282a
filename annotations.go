package tether

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
)

// asks are the annotations by which people ask something of a controller.
type asks struct {
	domain string // "": none
	name   string
}

func (a asks) all() []string {
	return []string{a.paused(), a.orphaned(), a.reconcileAt(), a.one("adopt"), a.one("new"), a.one("outcome")}
}

func (a asks) paused() string         { return a.domain + "/paused" }
func (a asks) orphaned() string       { return a.domain + "/orphan" }
func (a asks) reconcileAt() string    { return a.domain + "/reconcile-at" }
func (a asks) one(what string) string { return a.domain + "/" + a.name + "." + what }

func (a asks) orphan(obj metav1.Object) bool {
	return a.domain != "" && obj.GetAnnotations()[a.orphaned()] == "true"
}

// same tells whether two versions of an object ask the same.
func (a asks) same(x, y metav1.Object) bool {
	if a.domain == "" {
		return true
	}
	return !slices.ContainsFunc(a.all(), func(name string) bool { return !sameAnnotation(x, name, y, name) })
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
	if a.domain == "" {
		return ask
	}
	set := obj.GetAnnotations()
	for _, flag := range []struct {
		name string
		to   *bool
	}{{a.paused(), &ask.Paused}, {a.orphaned(), &ask.Orphan}} {
		switch v, ok := set[flag.name]; {
		case v == "true":
			*flag.to = true
		case ok:
			ask.Invalid = fmt.Sprintf(`annotation %s is %q; set it to "true", or take it off`, flag.name, clip(v, 64))
		}
	}
	ask.ReconcileAt = set[a.reconcileAt()]
	ask.Adopt, ask.New, ask.Outcome = set[a.one("adopt")], set[a.one("new")], set[a.one("outcome")]
	if ask.Outcome != "" && !outcomeForm.MatchString(ask.Outcome) {
		ask.Invalid = fmt.Sprintf(`annotation %s is %q; give "<incarnation>.<attempt>=happened:<id>" or "<incarnation>.<attempt>=did-not-happen"`, a.one("outcome"), clip(ask.Outcome, 64))
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
