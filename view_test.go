package tether

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

// choosy is an External with a Validator.
type choosy struct {
	silent
	says error
}

func (c *choosy) Validate(context.Context, *thing) error { return c.says }

func (c *choosy) Observe(context.Context, *thing, Call) (Observation, error) {
	return Observation{}, errors.New("it was looked at")
}

// What the Validator says is no rejection by the outside: a program that starts anew asks
// it again, and takes no key for spent.
func TestWhatTheValidatorSaidIsAskedAnewAfterARestart(t *testing.T) {
	t.Parallel()
	for _, wrong := range []error{errors.New("spec.a: it is odd"), Terminal(Reason("InvalidSpec", errors.New("spec.a: it is odd")))} {
		claim := protocol.Claim{V: 1, Controller: "example.com/thing", Cluster: "c", Namespace: "ns", Name: "n", UID: "u", Owner: "u", Incarnation: 1, Attempt: 1}
		stored := newThing(func(o *thing) {
			o.Finalizers, o.Annotations = []string{"example.com/thing"}, map[string]string{"example.com/thing.claim": claim.String()}
		})
		start := func(e *choosy) *single {
			c := Manage(NewInformer(things, InformerOptions{}), External[*thing](e), ManageOptions[*thing]{ID: func(o *thing) *string { return &o.Status.ID }, Guarantee: UniqueReference})
			return alone(t, c, stored, func(r *http.Request) (int, string) {
				if r.Method == http.MethodPatch {
					var patch thing
					if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
						t.Error(err)
					}
					next := stored.DeepCopyObject().(*thing)
					next.ResourceVersion, next.Status = stored.ResourceVersion+"1", patch.Status
					stored = next
				}
				return http.StatusOK, jsonOf(t, stored)
			})
		}
		// It cannot be made: absent, and the Validator says why not.
		s := start(&choosy{silent: silent{t}, says: wrong})
		r := &managing[*thing]{pass: s.c.newPass(queue.Item[Key]{Key: s.key()}, stored), m: s.c.external, memory: s.c.remember(s.key(), "u")}
		r.copy()
		if err := r.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := r.finish(protocol.End{Verdict: protocol.Stalled, Message: r.view().Invalid})
		r.settle(t.Context(), &e)
		if got := findCondition(stored.Status.Conditions, conditionStalled); got == nil || !strings.Contains(got.Message, "spec.a: it is odd") {
			t.Fatalf("status says %+v", stored.Status.Conditions)
		}

		again := start(&choosy{silent: silent{t}})
		fresh := &managing[*thing]{pass: again.c.newPass(queue.Item[Key]{Key: again.key()}, stored), m: again.c.external, memory: again.c.remember(again.key(), "u")}
		fresh.copy()
		if err := fresh.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := fresh.view(); v.Status.Rejected != "" || v.Memory.Spent || v.Memory.Rejected != "" {
			t.Errorf("after a restart it counts as rejected: %+v, %+v", v.Status, v.Memory)
		}
	}
}

// far has its status behind a pointer.
type far struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            *farStatus `json:"status,omitempty"`
}

type farStatus struct {
	ID         string             `json:"id,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (f *far) DeepCopyObject() runtime.Object {
	c := *f
	if f.Status != nil {
		s := *f.Status
		c.Status = &s
	}
	return &c
}

// absent is an External of nothing.
type absent struct{ External[*far] }

func (absent) Observe(context.Context, *far, Call) (Observation, error) {
	return Observation{State: Absent}, nil
}

func (absent) Create(_ context.Context, _ *far, c Call) (Observation, error) {
	return Observation{State: Present, ID: "x1", Reference: c.Reference}, nil
}

func TestAnIDIsKeptInAStatusThatIsAPointer(t *testing.T) {
	t.Parallel()
	resource := Resource[*far]{GroupVersion: things.GroupVersion, Kind: "Far", Plural: "fars"}
	c := Manage(NewInformer(resource, InformerOptions{}), External[*far](absent{}), ManageOptions[*far]{
		ID: func(o *far) *string { return &o.Status.ID }, Guarantee: UniqueReference,
	}).engine.(*controller[*far])
	stored := &far{ObjectMeta: newThing(nil).ObjectMeta}
	first := stored
	var wire wire
	begin(t, c, stored, wire.environment(t, func(r *http.Request) (int, string) {
		if r.Method == http.MethodPatch {
			next := stored.DeepCopyObject().(*far)
			next.ResourceVersion += "1"
			if err := json.NewDecoder(r.Body).Decode(next); err != nil {
				t.Error(err)
			}
			next.ResourceVersion = stored.ResourceVersion + "1"
			stored = next
		}
		return http.StatusOK, jsonOf(t, stored)
	}))
	c.pass(t.Context(), queue.Item[Key]{Key: Key{Namespace: "ns", Name: "n"}})
	if stored.Status == nil || stored.Status.ID != "x1" || findCondition(stored.Status.Conditions, conditionReady).Status != metav1.ConditionTrue {
		t.Errorf("stored is %+v after %q; log:\n%s", stored.Status, wire.requests, strings.Join(wire.log, "\n"))
	}
	if first.Status != nil {
		t.Error("the object in the store was written into")
	}
}
