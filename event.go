package tether

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

// passState is what a pass's context carries, of any type.
type passState interface {
	event(typ, reason, note string)
	origin() store.Origin
	fieldOwner() string
	held() error
	permit(*Budget) *queue.Permit
	who() string
}

type passKey struct{}

func withPass(ctx context.Context, p passState) context.Context {
	return context.WithValue(ctx, passKey{}, p)
}

func passFrom(ctx context.Context) (passState, bool) {
	p, ok := ctx.Value(passKey{}).(passState)
	return p, ok
}

// Event records an Event on the object of the pass whose context is given: typ is
// corev1.EventTypeNormal or corev1.EventTypeWarning, reason is CamelCase, and note
// is cut at 1 KiB. It is best effort: it never blocks and never fails, and what
// repeats within ten minutes is counted on one Event. Outside a pass it does nothing.
func Event(ctx context.Context, typ, reason, note string) {
	if p, ok := passFrom(ctx); ok {
		p.event(typ, reason, note)
	}
}

func (p *pass[T]) event(typ, reason, note string) {
	if typ != corev1.EventTypeWarning {
		typ = corev1.EventTypeNormal
	}
	r := p.c.in.resource
	p.c.env.record(kube.Event{
		Controller: p.c.finalizerName(), Type: typ, Reason: reason, Note: note,
		Regarding: corev1.ObjectReference{
			APIVersion: r.GroupVersion.String(), Kind: r.Kind, Namespace: p.key.Namespace, Name: p.key.Name,
			UID: p.seen.GetUID(), ResourceVersion: p.seen.GetResourceVersion(),
		},
	})
}

func (p *pass[T]) origin() store.Origin { return store.Origin{Owner: p.c, Key: p.key} }
func (p *pass[T]) fieldOwner() string   { return p.c.name() }
func (p *pass[T]) held() error          { return p.c.env.held() }
