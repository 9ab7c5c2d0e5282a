package tether

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/store"
)

// ClientOptions configure a [Client]. The zero value works.
type ClientOptions struct {
	// FieldOwner is who owns the fields that Apply sets [the name of the controller
	// whose pass calls].
	FieldOwner string
}

// Client writes objects that a pass makes, of the resource of an informer. What it
// writes is in the informer's store when it returns, so that the next pass sees
// it, and does not start a pass of the object whose pass wrote it. What the informer's
// options leave out is not, since no event would ever take it out again; where a field
// selector is of other fields than name and namespace, neither is what the informer has
// not heard of yet. It works while
// [Run] runs the informer. All methods may be called concurrently; errors are
// those of the API server, so that apierrors.IsNotFound and the like hold. What is
// returned is the caller's.
//
// Within a pass, its context must be given: after a lost lease nothing is written.
type Client[T Object] struct {
	in   *Informer[T]
	opts ClientOptions
}

// NewClient makes a client. It starts nothing; the informer is one of a
// controller's Watches or Reads, or its own.
func NewClient[T Object](in *Informer[T], o ClientOptions) *Client[T] {
	return &Client[T]{in: in, opts: o}
}

// Get reads consistently from the API server; [Informer.Get] costs no request.
func (c *Client[T]) Get(ctx context.Context, key Key) (T, error) {
	l, err := c.running()
	if err != nil {
		var none T
		return none, err
	}
	r := l.store.BeginRead(key)
	got, err := l.client.Get(ctx, key)
	if err != nil {
		r.Failed()
		return got, err
	}
	l.keep(r, got)
	return got.DeepCopyObject().(T), nil
}

// Create creates obj. That it exists already is apierrors.IsAlreadyExists.
func (c *Client[T]) Create(ctx context.Context, obj T) (T, error) {
	return c.write(ctx, obj, func(l *liveInformer[T], body []byte, owner string) (T, error) {
		return l.client.Create(ctx, obj.GetNamespace(), body, metav1.CreateOptions{FieldManager: owner})
	})
}

// Apply makes obj so by server-side apply: exactly the fields that are set in it
// are this field owner's, and win over other owners, as controllers are advised to
// by the API conventions. It is created where it is not there.
func (c *Client[T]) Apply(ctx context.Context, obj T) (T, error) {
	return c.write(ctx, obj, func(l *liveInformer[T], body []byte, owner string) (T, error) {
		yes := true
		return l.client.Patch(ctx, store.KeyOf(obj), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: owner, Force: &yes})
	})
}

// Delete deletes the object. With a UID in obj, only that very object.
func (c *Client[T]) Delete(ctx context.Context, obj T) error {
	l, err := c.running()
	if err != nil {
		return err
	}
	by, _, err := c.writer(ctx)
	if err != nil {
		return err
	}
	opts := metav1.DeleteOptions{}
	if uid := obj.GetUID(); uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(string(uid))
	}
	w := l.store.BeginWrite(store.KeyOf(obj), by)
	got, left, err := l.client.Delete(ctx, store.KeyOf(obj), opts)
	switch {
	case err != nil:
		w.Failed()
	case left:
		l.keep(w, got)
	default:
		w.Removed()
	}
	return err
}

func (c *Client[T]) running() (*liveInformer[T], error) {
	if l := c.in.live.Load(); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("client of %s: its informer does not run; it works while Run runs a controller that uses the informer", c.in.name())
}

// writer is who writes: the pass of the context, or the client itself.
func (c *Client[T]) writer(ctx context.Context) (store.Origin, string, error) {
	owner := c.opts.FieldOwner
	p, ok := passFrom(ctx)
	if !ok {
		return store.Origin{Owner: c}, orElse(owner, "tether"), nil
	}
	return p.origin(), orElse(owner, p.fieldOwner()), p.held()
}

func (c *Client[T]) write(ctx context.Context, obj T, send func(*liveInformer[T], []byte, string) (T, error)) (T, error) {
	var none T
	l, err := c.running()
	if err != nil {
		return none, err
	}
	by, owner, err := c.writer(ctx)
	if err != nil {
		return none, err
	}
	body, err := c.body(obj)
	if err != nil {
		return none, err
	}
	w := l.store.BeginWrite(store.KeyOf(obj), by)
	got, err := send(l, body, owner)
	if err != nil {
		w.Failed()
		return none, err
	}
	l.keep(w, got)
	return got.DeepCopyObject().(T), nil
}

// body is the object's JSON with its kind, and without what only the server sets.
func (c *Client[T]) body(obj T) ([]byte, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", c.in.name(), err)
	}
	m, err := decodeMap(raw)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", c.in.name(), err)
	}
	m["apiVersion"], m["kind"] = c.in.resource.GroupVersion.String(), c.in.resource.Kind
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		delete(meta, "creationTimestamp")
		delete(meta, "resourceVersion")
	}
	delete(m, "status")
	return json.Marshal(m)
}
