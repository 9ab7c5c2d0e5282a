package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var deleteCodec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, paramVersion)
	return serializer.NewCodecFactory(scheme).LegacyCodec(paramVersion)
}()

func decodeObject(raw []byte, into any) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		return u.UnmarshalJSON(raw)
	}
	return json.Unmarshal(raw, into)
}

// Sink takes what a list-watch brings. Its methods are called by one goroutine.
type Sink[T Object] interface {
	Listing(authoritative bool) // right before a list is asked for
	Replace(items []T, version string)
	Apply(obj T)
	Remove(obj T)
	Reached(version string) // all up to it has been told
	Trouble(err error)      // the last list or watch failed; nil: it goes well again
}

// ListWatch keeps a Sink up to date for one namespace, or all.
type ListWatch[T Object] struct {
	Client        *Client[T]
	Namespace     string
	LabelSelector string
	FieldSelector string
	Sink          Sink[T]
}

// Run lists and watches until ctx ends. The Reflector does the work: chunks,
// WatchList, bookmarks, 410, back-off.
func (l ListWatch[T]) Run(ctx context.Context) {
	var expected any = l.Client.New()
	r := cache.NewReflectorWithOptions(lister[T]{l}, expected, &reflectorStore[T]{l}, cache.ReflectorOptions{
		Name:            l.Client.Resource.String(),
		TypeDescription: l.Client.Resource.String(),
		Logger:          new(logr.FromContextOrDiscard(ctx)),
		// The default waits up to half a minute; a definition that comes back should be
		// seen sooner, and one client is no herd.
		Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 8 * time.Second},
	})
	r.RunWithContext(logr.NewContext(ctx, onceTold(logr.FromContextOrDiscard(ctx))))
}

// lister is what the Reflector lists and watches through.
type lister[T Object] struct{ ListWatch[T] }

func (l lister[T]) options(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = l.LabelSelector, l.FieldSelector
	return o
}

// List is the old form, which the Reflector does not use.
func (l lister[T]) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch is the old form, which the Reflector does not use.
func (l lister[T]) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// ListWithContext lists; a first page with an empty resourceVersion is authoritative.
func (l lister[T]) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue == "" {
		l.Sink.Listing(o.ResourceVersion == "")
	}
	list, err := l.Client.List(ctx, l.Namespace, l.options(o))
	if err != nil && ctx.Err() == nil {
		l.Sink.Trouble(fmt.Errorf("list: %w", err))
	}
	return list, err
}

// WatchWithContext watches; one that sends initial events is a list as well.
func (l lister[T]) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o = l.options(o)
	o.Watch = true
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		l.Sink.Listing(o.ResourceVersion == "")
	}
	req := l.Client.path(l.Client.rest.Get(), l.Namespace).SpecificallyVersionedParams(&o, metav1.ParameterCodec, paramVersion)
	if o.TimeoutSeconds != nil {
		req = req.Timeout(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	w, err := req.Watch(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		l.Sink.Trouble(fmt.Errorf("watch: %w", err))
	case err == nil && o.SendInitialEvents == nil:
		l.Sink.Trouble(nil)
	}
	return w, err
}

// reflectorStore is the Sink as the Reflector wants it.
type reflectorStore[T Object] struct{ ListWatch[T] }

func (s *reflectorStore[T]) object(o any) (T, error) {
	obj, ok := o.(T)
	if !ok {
		return obj, fmt.Errorf("%s: got a %T", s.Client.Resource, o)
	}
	s.Client.strip(obj)
	return obj, nil
}

func (s *reflectorStore[T]) Add(o any) error { return s.Update(o) }

func (s *reflectorStore[T]) Update(o any) error {
	obj, err := s.object(o)
	if err == nil {
		s.Sink.Apply(obj)
	}
	return err
}

func (s *reflectorStore[T]) Delete(o any) error {
	obj, err := s.object(o)
	if err == nil {
		s.Sink.Remove(obj)
	}
	return err
}

func (s *reflectorStore[T]) Replace(list []any, version string) error {
	items := make([]T, 0, len(list))
	for _, o := range list {
		obj, err := s.item(o)
		if err != nil {
			return err
		}
		items = append(items, obj)
	}
	s.Sink.Trouble(nil) // before passes see what came of it
	s.Sink.Replace(items, version)
	return nil
}

// item takes what ExtractList makes of a list's items: a value's address, or T.
func (s *reflectorStore[T]) item(o any) (T, error) {
	if obj, ok := o.(runtime.Object); ok {
		if _, err := meta.Accessor(obj); err != nil {
			var none T
			return none, err
		}
	}
	return s.object(o)
}

func (s *reflectorStore[T]) Resync() error { return nil }

// UpdateResourceVersion is called after each event and each bookmark.
func (s *reflectorStore[T]) UpdateResourceVersion(version string) { s.Sink.Reached(version) }

// Transformer strips objects before the Reflector keeps them during a WatchList.
func (s *reflectorStore[T]) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		if obj, ok := o.(T); ok {
			s.Client.strip(obj)
		}
		return o, nil
	}
}
