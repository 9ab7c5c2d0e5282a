package tether

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/internal/protocol"
)

// listing is an External that lists.
type listing struct {
	silent
	all []Listed
	err error
}

func (l *listing) List(context.Context) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		for _, one := range l.all {
			if !yield(one, nil) {
				return
			}
		}
		if l.err != nil {
			yield(Listed{}, l.err)
		}
	}
}

func TestWhatNoObjectDerivesIsAnOrphanAndNothingElse(t *testing.T) {
	t.Parallel()
	e := &listing{silent: silent{t}}
	c := Manage(NewInformer(things, InformerOptions{}), External[*thing](e), ManageOptions[*thing]{ID: func(o *thing) *string { return &o.Status.ID }, Guarantee: UniqueReference})
	claim := protocol.Claim{V: 1, Controller: "example.com/thing", Cluster: "c", Namespace: "ns", Name: "n", UID: "u", Owner: "u", Incarnation: 2, Attempt: 1}
	s := alone(t, c, newThing(func(o *thing) { o.Annotations = map[string]string{"example.com/thing.claim": claim.String()} }), nil)
	ref := func(change func(*protocol.Claim), n int) string {
		other := claim
		if change != nil {
			change(&other)
		}
		return s.c.identity().Reference(other, n)
	}
	e.all = []Listed{
		{Reference: ref(nil, 1), ID: "an earlier one", State: Present},
		{Reference: ref(nil, 2), ID: "its own", State: Present},
		{Reference: ref(nil, 3), ID: "a later one", State: Pending},
		{Reference: ref(func(c *protocol.Claim) { c.Name = "gone" }, 1), ID: "nobody's", State: Present},
		{Reference: ref(func(c *protocol.Claim) { c.Name = "gone" }, 2), ID: "nobody's, and over", State: Ended},
		{Reference: ref(func(c *protocol.Claim) { c.Cluster = "another" }, 1), ID: "another cluster's", State: Present},
		{Reference: "something-else", ID: "somebody's", State: Present},
		{ID: "made by hand", State: Present},
	}
	got, err := s.c.orphansNow(t.Context())
	if diff := cmp.Diff([]string{"nobody's"}, got); diff != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, diff)
	}
	s.c.report(got)
	if m := s.c.managedState(); m.Orphans != 1 || m.Controller != "thing" {
		t.Errorf("told as %+v", m)
	}
	e.err = errors.New("the list broke off")
	if got, err := s.c.orphansNow(t.Context()); err == nil {
		t.Errorf("half a list told %q", got)
	}
}

func TestAFinalizerThatNobodyOwnsIsNamed(t *testing.T) {
	t.Parallel()
	c := Manage(NewInformer(things, InformerOptions{}), External[*thing](silent{t}), ManageOptions[*thing]{
		ID: func(o *thing) *string { return &o.Status.ID }, Guarantee: UniqueReference, Formerly: []string{"example.com/before"},
	})
	s := alone(t, c, newThing(func(o *thing) {
		o.Finalizers = []string{"example.com/thing", "example.com/before", "example.com/lost", "example.com/other", "elsewhere.com/x"}
	}), nil)
	if diff := cmp.Diff(map[string]int{"example.com/lost": 1}, s.c.strangers([]string{"example.com/thing", "example.com/other"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
