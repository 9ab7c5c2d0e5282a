package tether

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func annotated(kv ...string) *thing {
	o := &thing{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	for i := 0; i < len(kv); i += 2 {
		o.Annotations[kv[i]] = kv[i+1]
	}
	return o
}

func TestAnnotationsAreReadStrictly(t *testing.T) {
	t.Parallel()
	a := newAsks("example.com", "thing")
	for _, name := range []string{"example.com/paused", "example.com/orphan"} {
		for _, v := range []string{"", "yes", "True", "false", "1", " true", strings.Repeat("x", 10000)} {
			ask := a.parse(annotated(name, v))
			if !strings.Contains(ask.Invalid, name) || !strings.Contains(ask.Invalid, `"true"`) || len(ask.Invalid) > 300 {
				t.Errorf("%s=%.20q: %.400q", name, v, ask.Invalid)
			}
			if ask.Paused || ask.Orphan {
				t.Errorf("%s=%.20q is taken for true", name, v)
			}
		}
	}
	ask := a.parse(annotated("example.com/paused", "true", "example.com/orphan", "true", "example.com/reconcile-at", "now", "example.com/thing.adopt", "b1"))
	if ask.Invalid != "" || !ask.Paused || !ask.Orphan || ask.ReconcileAt != "now" || ask.Adopt != "b1" {
		t.Errorf("got %+v", ask)
	}
	for v, good := range map[string]bool{"1.1=did-not-happen": true, "2.3=happened:b1": true, "1=happened:x": false, "0.1=did-not-happen": false, "1.1=happened:": false, "maybe": false} {
		if got := a.parse(annotated("example.com/thing.outcome", v)).Invalid == ""; got != good {
			t.Errorf("outcome %q is good: %v, want %v", v, got, good)
		}
	}
	if ask := (asks{}).parse(annotated("/paused", "no")); ask.Invalid != "" {
		t.Errorf("without a domain %q is asked", ask.Invalid)
	}
}

func TestAnotherControllersAnnotationsAskNothing(t *testing.T) {
	t.Parallel()
	a := newAsks("example.com", "thing")
	if !a.same(annotated(), annotated("example.com/other.adopt", "x", "other.com/paused", "true")) {
		t.Error("another controller's annotation is taken for this one's")
	}
	if a.same(annotated(), annotated("example.com/thing.adopt", "x")) {
		t.Error("this controller's annotation is missed")
	}
}

func TestAnEmptyAnnotationIsNotOneThatIsNotThere(t *testing.T) {
	t.Parallel()
	a := newAsks("example.com", "thing")
	for _, name := range a.all() {
		empty, none := annotated(name, ""), annotated()
		if a.same(empty, none) || a.same(none, empty) {
			t.Errorf("%s: taking an empty one off starts no pass", name)
		}
		if !a.same(empty, annotated(name, "")) {
			t.Errorf("%s: not the same as itself", name)
		}
	}
}
