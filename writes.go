package tether

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

// patch is a write of the pass's own object. The answer feeds the store, so that
// no later pass sees less, and no pass is started by it.
func (p *pass[T]) patch(ctx context.Context, pt types.PatchType, body []byte, sub ...string) error {
	c := p.c
	if err := c.env.held(); err != nil {
		return err
	}
	w := c.live.store.BeginWrite(p.key, store.Origin{Owner: c, Key: p.key}).OfStored()
	got, err := c.live.client.Patch(ctx, p.key, pt, body, metav1.PatchOptions{FieldManager: c.name()}, sub...)
	if err != nil {
		w.Failed()
		return err
	}
	w.Answered(got)
	p.have = got
	return nil
}

func (p *pass[T]) patchMeta(ctx context.Context, finalizers []string, annotations map[string]any) error {
	body, err := json.Marshal(metadataPatch(p.have, finalizers, annotations))
	if err != nil {
		return err
	}
	return p.patch(ctx, types.MergePatchType, body)
}

// reread reads the object consistently. What it shows goes through the store like
// an event, so that changes of others in it are heard.
func (p *pass[T]) reread(ctx context.Context) (T, error) {
	fresh, err := p.c.live.client.Get(ctx, p.key)
	if err == nil {
		p.c.live.store.Refresh(fresh)
	}
	return fresh, err
}

// settleTries bounds how often a conflict is settled in place.
const settleTries = 8

// release takes the finalizer off, and marks the claim where there is one. A
// conflict is settled in place: same object, same claim, again.
func (p *pass[T]) release(ctx context.Context, annotations map[string]any) error {
	for try := 0; ; try++ {
		err := p.patchMeta(ctx, withoutFinalizer(p.have, append(p.c.formerly(), p.c.finalizerName())...), annotations)
		if kube.IsGone(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == settleTries {
			return err
		}
		fresh, rerr := p.reread(ctx)
		switch {
		case kube.IsGone(rerr):
			return nil
		case rerr != nil:
			return rerr
		case fresh.GetUID() != p.seen.GetUID(), !p.c.sameClaim(fresh, p.have):
			return err
		}
		p.have = fresh
	}
}

// lastWrites is how long the writes at the end of a pass may take beyond it.
const lastWrites = 5 * time.Second

var errLateStatus = fmt.Errorf("the status write took longer than %v", lastWrites)

// settle writes the status, if it differs. The pass's own deadline and a stop do
// not keep it from that; a lost lease does.
func (p *pass[T]) settle(ctx context.Context, e *ending) {
	c := p.c
	if !c.writesStatus() {
		return
	}
	p.judge(e)
	if c.status.equal(p.have, p.obj) {
		return
	}
	if e.verdict.reason != protocol.ReasonEdited { // a write is due, by the conditions alone perhaps
		if path := editedPath(c.status, p.have, p.obj, true); path != "" {
			*e = editedEnding(path)
			p.judge(e)
		}
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), lastWrites, errLateStatus)
	defer cancel()
	again, err := p.writeStatus(ctx)
	switch {
	case again && e.outcome.Kind != queue.Hold && e.outcome.Kind != queue.Defer: // a server's word outlives it
		e.name, e.outcome = "again", queue.Outcome{Kind: queue.Again}
	case err == nil:
	case e.outcome.Kind == queue.Stall && (e.err != nil || p.restores): // the author waits for a change, the status does not
		e.unwritten, e.outcome.Restore = err, true
	case e.err != nil:
		e.unwritten = err
	default:
		e.err = fmt.Errorf("write the status: %w", err)
		e.verdict.reason = "WriteFailed"
		e.name, e.outcome = "error", queue.Outcome{Kind: queue.Backoff}
	}
}

// judge puts the verdict into the private copy.
func (p *pass[T]) judge(e *ending) {
	c := p.c
	if !c.judges {
		return
	}
	generation := p.seen.GetGeneration()
	c.status.setConditions(p.obj, judgeConditions(c.status.getConditions(p.have), c.status.getConditions(p.obj), e.verdict, generation, time.Now()))
	c.status.setObserved(p.obj, generation)
}

// writeStatus sends the difference to the newest version known. A conflict is
// settled in place: the same object, generation and claim take the same change of
// status; otherwise the pass has to run again.
func (p *pass[T]) writeStatus(ctx context.Context) (again bool, err error) {
	c := p.c
	for try := 0; ; try++ {
		if c.status.equal(p.have, p.obj) {
			return false, nil
		}
		body, err := c.status.patch(p.have, p.obj)
		if err != nil || body == nil {
			return false, err
		}
		err = p.patch(ctx, types.MergePatchType, body, "status")
		if err == nil || kube.IsGone(err) {
			return false, nil
		}
		if !apierrors.IsConflict(err) || try == settleTries {
			return false, err
		}
		fresh, err := p.reread(ctx)
		if err != nil {
			if kube.IsGone(err) {
				return false, nil
			}
			return false, err
		}
		if fresh.GetUID() != p.seen.GetUID() || fresh.GetGeneration() != p.seen.GetGeneration() ||
			!c.sameClaim(fresh, p.have) {
			return true, nil
		}
		if !c.status.equal(p.have, fresh) {
			p.overtaken = true
			if err := c.status.rebase(p.have, p.obj, fresh, c.judges); err != nil {
				return false, err
			}
		}
		p.have = fresh
	}
}
