package tether

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
)

// claimSuffix follows a controller's name in the annotation of its claim.
const claimSuffix = ".claim"

// names are what a controller's name, "<Domain>/<Name>", is found by on objects.
type names struct {
	finalizer string // the name itself
	claim     string // the annotation
	asks      asks
}

func newNames(name string) names {
	domain, rest, _ := strings.Cut(name, "/")
	return names{finalizer: name, claim: name + claimSuffix, asks: newAsks(domain, rest)}
}

// on tells whether an object carries a claim or a finalizer under these names.
func (n *names) on(obj metav1.Object) bool {
	_, claimed := obj.GetAnnotations()[n.claim]
	return claimed || hasFinalizer(obj, n.finalizer)
}

// formerly are the names, "<Domain>/<Name>", that this controller had before.
func (c *controller[T]) formerly() []string {
	if c.external == nil {
		return nil
	}
	return c.external.opts.Formerly
}

// namesOn are those under which an object carries a claim or a finalizer of this
// controller: its own, or else former ones that are still there.
func (c *controller[T]) namesOn(obj metav1.Object) *names {
	if len(c.former) == 0 || c.own.on(obj) {
		return &c.own
	}
	for i := range c.former {
		if c.former[i].on(obj) {
			return &c.former[i]
		}
	}
	return &c.own
}

// sameClaim tells whether two versions of an object carry the same claim.
func (c *controller[T]) sameClaim(a, b metav1.Object) bool {
	return sameAnnotation(a, c.namesOn(a).claim, b, c.namesOn(b).claim)
}

// ask reads what people ask of an object, under the name that it carries.
func (c *controller[T]) ask(obj metav1.Object) protocol.Ask { return c.namesOn(obj).asks.parse(obj) }

func (c *controller[T]) orphans(obj metav1.Object) bool {
	return c.own.asks.orphan(obj) || c.namesOn(obj).asks.orphan(obj)
}

func (c *controller[T]) asksSame(x, y metav1.Object) bool {
	for _, n := range c.former {
		if !n.asks.same(x, y) {
			return false
		}
	}
	return c.own.asks.same(x, y)
}

// moved are the annotations of an object that change where it goes from a former
// name to the own one: each is taken over, and the former one taken off.
func (c *controller[T]) moved(obj metav1.Object) map[string]any {
	changes := map[string]any{}
	from := c.namesOn(obj)
	if from == &c.own {
		return changes
	}
	set, now := obj.GetAnnotations(), c.own.asks.all()
	changes[from.claim] = nil
	for i, before := range from.asks.all() {
		if value, ok := set[before]; ok && before != now[i] {
			changes[before], changes[now[i]] = nil, value
		}
	}
	return changes
}

// ownFinalizer are the object's finalizers with this controller's, and without
// those of its former names.
func (c *controller[T]) ownFinalizer(obj metav1.Object) []string {
	if c.namesOn(obj) == &c.own {
		return withFinalizer(obj, c.finalizerName())
	}
	return append(withoutFinalizer(obj, append(c.formerly(), c.finalizerName())...), c.finalizerName())
}
