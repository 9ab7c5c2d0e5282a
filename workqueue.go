package tether

import (
	"iter"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

// Watch is an informer whose changes start passes of other objects. Make one with
// [Watches] or [Owned], and put it into Options.
type Watch struct {
	in        informer
	subscribe func(c watcher) // nil: the function was nil
	missing   string
}

// watcher is the controller's side of a watch.
type watcher interface {
	owner() any
	known(Key) bool
	add(Key, queue.Cause)
	recovered(where string)
}

// Watches starts passes of the objects whose keys a function names, when an object
// of in changes: those of the old and of the new object are queued; a nil
// sequence means none. keys must be quick and pure; it may use an [Index]. Nothing
// starts when nothing but resourceVersion and managedFields changed.
func Watches[S Object](in *Informer[S], keys func(S) iter.Seq[Key]) Watch {
	w := Watch{}
	if in != nil {
		w.in = in
	}
	if keys == nil {
		w.missing = "Watches has no function; give one that names the keys"
		return w
	}
	w.subscribe = func(c watcher) {
		in.live.Load().store.Subscribe(func(ch store.Change[S]) { related(c, ch, keys) })
	}
	return w
}

// Owned starts the pass of the object that is the controller owner of a changed
// object of in. The owner is found by its name; see [Resource.OwnerReference].
func Owned[S Object](in *Informer[S]) Watch {
	return Watches(in, func(s S) iter.Seq[Key] {
		ref := metav1.GetControllerOfNoCopy(s)
		if ref == nil {
			return nil
		}
		return func(yield func(Key) bool) {
			_ = yield(Key{Namespace: s.GetNamespace(), Name: ref.Name}) && yield(Key{Name: ref.Name})
		}
	})
}

// related queues the primaries of a changed secondary.
func related[S Object](c watcher, ch store.Change[S], keys func(S) iter.Seq[Key]) {
	defer c.recovered("Watches")
	if ch.Only != nil && ch.Only != c.owner() || ch.HasOld && ch.HasNew && !differs(ch.Old, ch.New) {
		return
	}
	cause := queue.Related
	if ch.Initial && !ch.HasOld {
		cause = queue.Initial
	}
	queued := map[Key]bool{}
	add := func(s S) {
		names := keys(s)
		if names == nil {
			return
		}
		for k := range names {
			// The pass that wrote the object knows of it already.
			own := ch.By != nil && ch.By.Owner == c.owner() && ch.By.Key == k
			if !own && !queued[k] && c.known(k) {
				queued[k] = true
				c.add(k, cause)
			}
		}
	}
	if ch.HasOld {
		add(ch.Old)
	}
	if ch.HasNew {
		add(ch.New)
	}
}

// differs tells whether more than resourceVersion and managedFields differs.
func differs[S Object](a, b S) bool {
	a, b = shallow(a), shallow(b)
	a.SetResourceVersion("")
	b.SetResourceVersion("")
	a.SetManagedFields(nil)
	b.SetManagedFields(nil)
	return !equal(a, b)
}

// shallow copies an object so far that its metadata's own fields can be set.
func shallow[S Object](o S) S {
	if u, ok := any(o).(*unstructured.Unstructured); ok {
		c := maps.Clone(u.Object)
		if meta, ok := c["metadata"].(map[string]any); ok {
			c["metadata"] = maps.Clone(meta)
		}
		return any(&unstructured.Unstructured{Object: c}).(S)
	}
	v := reflect.New(reflect.TypeOf(o).Elem())
	v.Elem().Set(reflect.ValueOf(o).Elem())
	return v.Interface().(S)
}

// judge tells for what cause a change of a primary starts a pass, if any.
func (c *controller[T]) judge(ch store.Change[T]) queue.Cause {
	const nothing = queue.Cause(0)
	old, obj := ch.Old, ch.New
	switch {
	case !ch.HasNew:
		return queue.Change
	case !ch.HasOld && ch.Initial:
		return queue.Initial
	case !ch.HasOld || old.GetUID() != obj.GetUID():
		return queue.Change
	case obj.GetDeletionTimestamp() != nil && c.orphans(obj) && !(old.GetDeletionTimestamp() != nil && c.orphans(old)):
		return queue.Release
	case (old.GetDeletionTimestamp() == nil) != (obj.GetDeletionTimestamp() == nil),
		old.GetGeneration() != obj.GetGeneration(),
		!c.asksSame(old, obj):
		return queue.Change
	case obj.GetGeneration() == 0 && contentDiffers(c.status, old, obj):
		return queue.Change
	case !c.sameClaim(old, obj),
		hasFinalizer(old, c.finalizerName()) != hasFinalizer(obj, c.finalizerName()):
		return queue.Change // someone else's hand on what is the library's
	case !maps.Equal(old.GetLabels(), obj.GetLabels()), !maps.Equal(old.GetAnnotations(), obj.GetAnnotations()),
		!equality.Semantic.DeepEqual(old.GetFinalizers(), obj.GetFinalizers()),
		!equality.Semantic.DeepEqual(old.GetOwnerReferences(), obj.GetOwnerReferences()):
		return queue.Event
	case c.writesStatus() && !c.status.equal(old, obj):
		return queue.Restore
	}
	return nothing
}

// contentDiffers stands for the generation where the API server keeps none.
func contentDiffers[T Object](f statusField[T], a, b T) bool {
	a, b = shallow(a), shallow(b)
	f.share(a, b)
	for _, o := range []T{a, b} {
		o.SetLabels(nil)
		o.SetAnnotations(nil)
		o.SetFinalizers(nil)
		o.SetOwnerReferences(nil)
	}
	return differs(a, b)
}

// heard queues the key of a changed primary.
func (c *controller[T]) heard(ch store.Change[T]) {
	if ch.Only != nil && ch.Only != any(c) {
		return
	}
	obj := ch.New
	if !ch.HasNew {
		obj = ch.Old
	}
	key := store.KeyOf(obj)
	if ch.By != nil && ch.By.Owner == any(c) && ch.By.Key == key {
		return // this pass's own write, or told again without doubt when its answer is there
	}
	c.gone(ch)
	if cause := c.judge(ch); cause != 0 {
		c.queue.Add(key, cause)
	}
}

// queueOptions are the queue's part of the options.
func (o Options) queueOptions() queue.Options {
	q := queue.Options{MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff}
	if o.Budget != nil {
		q.Budget = o.Budget.inner
	}
	return q
}

// defaultPoll is how often a managed object is looked at, give or take a tenth.
const defaultPoll = 10 * time.Minute
