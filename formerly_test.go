package tether

import (
	"slices"
	"testing"
)

func TestFormerNamesStayTheUsers(t *testing.T) {
	t.Parallel()
	given := append(make([]string, 0, 8), "example.com/before")
	c := Manage(NewInformer(things, InformerOptions{}), External[*thing](silent{t}), ManageOptions[*thing]{
		ID: func(o *thing) *string { return &o.Status.ID }, Guarantee: UniqueReference, Formerly: given,
	}).engine.(*controller[*thing])
	obj := newThing(func(o *thing) { o.Finalizers = []string{"example.com/before", "example.com/thing", "of.another/one"} })
	if got := c.ownFinalizer(obj); !slices.Equal(got, []string{"example.com/before", "example.com/thing", "of.another/one"}) {
		t.Errorf("what has the own name keeps %q", got)
	}
	obj.Finalizers = []string{"example.com/before", "of.another/one"}
	if got := c.ownFinalizer(obj); !slices.Equal(got, []string{"of.another/one", "example.com/thing"}) {
		t.Errorf("taken over are %q", got)
	}
	if beyond := given[:2][1]; beyond != "" {
		t.Errorf("the slice that was given has %q behind its end", beyond)
	}
	given[0] = "example.com/other"
	if got := c.namesOn(obj).finalizer; got != "example.com/before" {
		t.Errorf("a change of what was given made it %q", got)
	}
}
