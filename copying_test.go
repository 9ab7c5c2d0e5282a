package tether

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tetherkube/tether/internal/queue"
)

// fragile is a thing whose copy panics where its spec says so, as one does that was
// written by hand and forgot that a map may be nil.
type fragile struct{ thing }

func (f *fragile) DeepCopyObject() runtime.Object {
	if f.Spec["copy"] == "panics" {
		panic("assignment to entry in nil map")
	}
	return &fragile{*f.thing.DeepCopyObject().(*thing)}
}

// passes counts what hooks hear.
type passes struct {
	NoHooks
	heard []PassInfo
}

func (p *passes) Pass(i PassInfo) { p.heard = append(p.heard, i) }

func TestAPanicOfACopyEndsThePassAlone(t *testing.T) {
	t.Parallel()
	fragiles := Resource[*fragile]{GroupVersion: things.GroupVersion, Kind: "Fragile", Plural: "fragiles"}
	c := New(NewInformer(fragiles, InformerOptions{}), doNothing[*fragile]{}, Options{}).engine.(*controller[*fragile])
	obj := &fragile{*newThing(func(o *thing) { o.Spec = map[string]string{"copy": "panics"} })}
	var s wire
	begin(t, c, obj, s.environment(t, refused(http.StatusInternalServerError, metav1.StatusReasonInternalError)))
	hooks := &passes{}
	c.env.hooks = hooks
	key := Key{Namespace: obj.Namespace, Name: obj.Name}
	ctx := logr.NewContext(t.Context(), c.env.log)
	if o := c.guarded(ctx, queue.Item[Key]{Key: key}); o.Kind != queue.Backoff {
		t.Errorf("the outcome is %+v, want a backoff", o)
	}
	if len(hooks.heard) != 1 || !hooks.heard[0].Panic || hooks.heard[0].Outcome != "error" || hooks.heard[0].Key != key {
		t.Errorf("the hooks heard %+v", hooks.heard)
	}
	if log := strings.Join(s.log, "\n"); !strings.Contains(log, "assignment to entry in nil map") || !strings.Contains(log, "DeepCopyObject") || !strings.Contains(log, `"name"="n"`) {
		t.Errorf("the log says %s", log)
	}
}
