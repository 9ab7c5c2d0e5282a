package tether

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
)

// claimSuffix follows a controller's name in the annotation of its claim.
const claimSuffix = ".claim"

// formerly are the names, "<Domain>/<Name>", that this controller had before.
func (c *controller[T]) formerly() []string {
	if c.external == nil {
		return nil
	}
	return c.external.opts.Formerly
}

// nameOn is the name under which an object carries a claim or a finalizer of this
// controller: its own, or else a former one that is still there.
func (c *controller[T]) nameOn(obj metav1.Object) string {
	own := c.finalizerName()
	carries := func(name string) bool {
		_, claimed := obj.GetAnnotations()[name+claimSuffix]
		return claimed || hasFinalizer(obj, name)
	}
	if carries(own) {
		return own
	}
	for _, name := range c.formerly() {
		if carries(name) {
			return name
		}
	}
	return own
}

func (r *managing[T]) nameOf(obj T) string { return r.c.nameOn(obj) }

// sameClaim tells whether two versions of an object carry the same claim.
func (c *controller[T]) sameClaim(a, b metav1.Object) bool {
	return sameAnnotation(a, c.nameOn(a)+claimSuffix, b, c.nameOn(b)+claimSuffix)
}

// asksOf are the annotations of a name, which is "<Domain>/<Name>".
func asksOf(name string) asks {
	domain, name, _ := strings.Cut(name, "/")
	return asks{domain, name}
}

// ask reads what people ask of an object, under the name that it carries.
func (c *controller[T]) ask(obj metav1.Object) protocol.Ask {
	if name := c.nameOn(obj); name != c.finalizerName() {
		return asksOf(name).parse(obj)
	}
	return c.asks.parse(obj)
}

func (c *controller[T]) orphans(obj metav1.Object) bool {
	return c.asks.orphan(obj) || c.nameOn(obj) != c.finalizerName() && asksOf(c.nameOn(obj)).orphan(obj)
}

func (c *controller[T]) asksSame(x, y metav1.Object) bool {
	for _, name := range c.formerly() {
		if !asksOf(name).same(x, y) {
			return false
		}
	}
	return c.asks.same(x, y)
}

// moved are the annotations of an object that change where it goes from a former
// name to the own one: each is taken over, and the former one taken off.
func (c *controller[T]) moved(obj metav1.Object) map[string]any {
	changes := map[string]any{}
	from := c.nameOn(obj)
	if from == c.finalizerName() {
		return changes
	}
	set, old, own := obj.GetAnnotations(), asksOf(from), c.asks
	changes[from+claimSuffix] = nil
	for _, what := range []string{"adopt", "new", "outcome"} {
		if value, ok := set[old.one(what)]; ok {
			changes[old.one(what)], changes[own.one(what)] = nil, value
		}
	}
	if old.domain == own.domain {
		return changes
	}
	for before, now := range map[string]string{old.paused(): own.paused(), old.orphaned(): own.orphaned(), old.reconcileAt(): own.reconcileAt()} {
		if value, ok := set[before]; ok {
			changes[before], changes[now] = nil, value
		}
	}
	return changes
}

// ownFinalizer are the object's finalizers with this controller's, and without
// those of its former names.
func (c *controller[T]) ownFinalizer(obj metav1.Object) []string {
	if len(c.formerly()) == 0 || c.nameOn(obj) == c.finalizerName() {
		return withFinalizer(obj, c.finalizerName())
	}
	return append(withoutFinalizer(obj, append(c.formerly(), c.finalizerName())...), c.finalizerName())
}
