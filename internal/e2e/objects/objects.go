// Package objects watches what a Kubernetes API has, in the types that tests speak.
package objects

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Await watches the objects of a resource, which are of the type T, until all of them
// together are as wanted, and returns them. Where it fails, its error has the cause of
// ctx's end, and what it returns is how they were last.
func Await[T any](ctx context.Context, resource dynamic.ResourceInterface, wanted func([]*T) bool) ([]*T, error) {
	known := map[string]*T{}
	all := func() []*T { return slices.Collect(maps.Values(known)) }
	learn := func(o any) error {
		obj, into := o.(*unstructured.Unstructured), new(T)
		known[obj.GetName()] = into
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into)
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{},
		func(store cache.Store) (bool, error) { // has all that there were at first
			for _, o := range store.List() {
				if err := learn(o); err != nil {
					return false, err
				}
			}
			return wanted(all()), nil
		},
		func(e watch.Event) (bool, error) {
			if e.Type == watch.Deleted {
				delete(known, e.Object.(*unstructured.Unstructured).GetName())
			} else if err := learn(e.Object); err != nil {
				return false, err
			}
			return wanted(all()), nil
		})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return all(), err
}
