package tether

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

type counter = atomic.Uint64

// work starts the workers. ctx is that of passes: it ends with the lease, or late
// in a stop.
func (c *controller[T]) work(ctx context.Context, workers *sync.WaitGroup) {
	for range c.opts.Workers {
		workers.Go(func() {
			for {
				item, ok := c.queue.Get()
				if !ok {
					return
				}
				c.queue.Done(item.Key, c.pass(ctx, item))
			}
		})
	}
}

// pass is one pass of one object, from the queue to its outcome.
type pass[T Object] struct {
	c    *controller[T]
	key  Key
	item queue.Item[Key]
	log  logr.Logger

	seen  T // the version that the pass began with: shared, read-only
	have  T // the newest version known to the pass: shared, read-only
	obj   T // the author's private copy
	asked protocol.Ask

	overtaken bool // another wrote status meanwhile
}

// ending is what came of a pass.
type ending struct {
	verdict  verdict
	outcome  queue.Outcome
	name     string
	err      error
	noStatus bool // write none
	gone     bool // the object is released or not there
}

func (c *controller[T]) pass(ctx context.Context, item queue.Item[Key]) queue.Outcome {
	start := time.Now()
	obj, ok := c.live.store.Get(item.Key)
	if gone, vanished := c.takeVanished(item.Key); vanished && !ok {
		c.endVanished(ctx, item, gone)
	}
	if !ok || c.leftAlone(obj) {
		c.forget(item.Key)
		return queue.Outcome{Kind: queue.Forget}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout, fmt.Errorf("the pass took longer than it may take, %v", c.opts.Timeout))
	defer cancel()
	obj, gone, err := c.freshen(ctx, item, obj)
	if gone {
		return queue.Outcome{Kind: queue.Forget} // the watch will tell
	}
	p := c.newPass(item, obj)
	ctx = withPass(logr.NewContext(ctx, p.log), p)
	e, kept := p.keptEnding()
	switch {
	case err != nil:
		e = p.writeFailed(err, "read the object")
		e.noStatus = true
	case !kept:
		e = p.contained(ctx)
	}
	if !e.noStatus {
		p.settle(ctx, &e)
	}
	p.report(ctx, e, time.Since(start))
	c.keep(p, e)
	if e.gone {
		c.forget(item.Key)
	}
	return e.outcome
}

func (c *controller[T]) newPass(item queue.Item[Key], obj T) *pass[T] {
	p := &pass[T]{c: c, key: item.Key, item: item, seen: obj, have: obj, asked: c.ask(obj)}
	p.asked.Woken = item.Cause == queue.Related
	p.log = c.env.log.WithValues("controller", c.name(), "namespace", item.Key.Namespace, "name", item.Key.Name,
		"generation", obj.GetGeneration(), "pass", strconv.FormatUint(c.passNumber.Add(1), 36))
	return p
}

// leftAlone: the object is being deleted, and nothing says that it is this
// controller's to finish.
func (c *controller[T]) leftAlone(obj T) bool {
	return c.external == nil && obj.GetDeletionTimestamp() != nil && !(c.finalizer != nil && hasFinalizer(obj, c.finalizerName()))
}

// contained is run, whatever function of the author panics in it.
func (p *pass[T]) contained(ctx context.Context) (e ending) {
	_, err := p.protect(ctx, func() (Result, error) { e = p.run(ctx); return Done, nil })
	if err == nil {
		return e
	}
	if isNilObject(p.obj) {
		p.copy()
	}
	return p.endingOf(Done, err)
}

// run does what the object needs, up to the status write.
func (p *pass[T]) run(ctx context.Context) ending {
	c := p.c
	deleting := p.seen.GetDeletionTimestamp() != nil
	if err := c.live.client.Unreadable(p.seen); err != nil && !(deleting && p.asked.Orphan) {
		p.copy()
		return stalledEnding(protocol.ReasonUnreadable, fmt.Sprintf("the object does not fit its Go type, %T: %v; correct it", p.obj, err))
	}
	if c.external != nil {
		return p.manage(ctx)
	}
	switch {
	case deleting && p.asked.Orphan:
		return p.released(p.release(ctx, nil), "Orphaned", "released; Finalize was not called")
	case p.asked.Invalid != "":
		p.copy()
		return stalledEnding(protocol.ReasonInvalidAnnotation, p.asked.Invalid)
	case p.asked.Paused:
		p.copy()
		return p.paused(deleting)
	case !deleting && c.finalizer != nil && !hasFinalizer(p.have, c.finalizerName()):
		if err := p.patchMeta(ctx, withFinalizer(p.have, c.finalizerName()), nil); err != nil {
			return p.writeFailed(err, "add the finalizer")
		}
	}
	p.copy()
	call := c.reconciler.Reconcile
	if deleting {
		call = c.finalizer.Finalize
	}
	r, err := p.protect(ctx, func() (Result, error) { return call(ctx, p.obj) })
	e := p.endingOf(r, err)
	if path := p.edited(); path != "" {
		e = stalledEnding("EditOutsideStatus", fmt.Sprintf("the reconciler changed %s of its copy, which has no effect; change it with a Client", path))
	}
	if deleting && e.name == "done" {
		return p.released(p.release(ctx, nil), "", "")
	}
	return e
}

// copy makes the author's private copy: the one deep copy of a pass.
func (p *pass[T]) copy() { p.obj = p.have.DeepCopyObject().(T) }

// protect turns a panic into an error with its stack, and a deadline into one that
// names it.
func (p *pass[T]) protect(ctx context.Context, f func() (Result, error)) (r Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			r, err = Done, &panicError{value: v, stack: debug.Stack()}
		}
	}()
	r, err = f()
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
	}
	return r, err
}

// edited names the path of an edit outside status, "" for none. Metadata is
// checked always, the rest where a status write is due.
func (p *pass[T]) edited() string {
	return editedPath(p.c.status, p.have, p.obj, p.c.writesStatus() && !p.c.status.equal(p.have, p.obj))
}

// endingOf is the outcome table of the package's documentation.
func (p *pass[T]) endingOf(r Result, err error) ending {
	poll := p.c.opts.Poll
	if err == nil {
		switch r.kind {
		case resultAfter:
			return ending{
				name: "after", outcome: queue.Outcome{Kind: queue.After, Delay: r.after},
				verdict: verdict{unset: metav1.ConditionUnknown, reason: reasonProgressing, message: "the next pass is due later"},
			}
		case resultBackoff:
			return ending{
				name: "backoff", outcome: queue.Outcome{Kind: queue.Backoff},
				verdict: verdict{unset: metav1.ConditionUnknown, reconciling: true, reason: r.reason, message: r.message},
			}
		}
		return ending{
			name: "done", outcome: queue.Outcome{Kind: queue.Done, Poll: poll},
			verdict: verdict{unset: metav1.ConditionTrue, reason: reasonReconciled},
		}
	}
	o := outcomeOf(err)
	if o.terminal {
		e := stalledEnding(orElse(o.reason, reasonRejected), err.Error())
		e.err = err // and no poll: only a change can help
		return e
	}
	e := ending{
		name: "error", err: err, outcome: queue.Outcome{Kind: queue.Backoff},
		verdict: verdict{ready: metav1.ConditionFalse, reconciling: true, reason: orElse(o.reason, reasonFailed), message: err.Error()},
	}
	return e.held(o)
}

// held is an ending that a server's word keeps from being tried again before its
// time, which it says: what people change meanwhile waits for it as well.
func (e ending) held(o outcome) ending {
	if o.later {
		e.name, e.outcome = "retry_after", queue.Outcome{Kind: queue.Hold, Delay: o.after}
		e.verdict.message += fmt.Sprintf("; nothing is tried for %v, as the server asks, whatever changes", o.after.Round(time.Second))
	}
	return e
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func stalledEnding(reason, message string) ending {
	return ending{
		name: "terminal", outcome: queue.Outcome{Kind: queue.Stall},
		verdict: verdict{ready: metav1.ConditionFalse, stalled: true, reason: reason, message: message},
	}
}

func (p *pass[T]) paused(deleting bool) ending {
	message := "paused by annotation " + p.c.asks.paused()
	if deleting {
		message += "; the deletion waits until it is taken off"
	}
	return ending{
		name: "done", outcome: queue.Outcome{Kind: queue.Done},
		verdict: verdict{unset: metav1.ConditionUnknown, reconciling: true, reason: protocol.ReasonPaused, message: message},
	}
}

// report writes the pass's log line and tells the hooks. An error is logged here
// and nowhere else.
func (p *pass[T]) report(ctx context.Context, e ending, took time.Duration) {
	c := p.c
	caught, isPanicked := isPanic(e.err)
	c.env.hooks.Pass(PassInfo{
		Controller: c.name(), Key: p.key, Lane: p.item.Lane.String(), Waited: p.item.Waited, Duration: took,
		Outcome: e.name, Reason: e.verdict.reason, Panic: isPanicked,
	})
	switch {
	case isPanicked:
		p.log.Error(e.err, "pass panicked", "stack", string(caught.stack))
	case e.err != nil && (e.name == "error" || e.name == "retry_after") && !errors.Is(context.Cause(ctx), errStopped):
		p.log.Error(e.err, "pass failed", "reason", e.verdict.reason)
	}
	p.log.V(1).Info("pass ended", "outcome", e.name, "reason", e.verdict.reason, "message", e.verdict.message,
		"lane", p.item.Lane.String(), "duration", took.Round(time.Microsecond).String())
}

// released is the ending after the finalizer was taken off, or was not.
func (p *pass[T]) released(err error, event, note string) ending {
	if err != nil {
		return p.writeFailed(err, "take the finalizer off")
	}
	if event != "" {
		p.event(corev1.EventTypeNormal, event, note)
	}
	return ending{name: "done", outcome: queue.Outcome{Kind: queue.Forget}, noStatus: true, gone: true}
}

// writeFailed is the ending after a write that was not the status. A conflict is
// no failure: the pass runs again on what is new.
func (p *pass[T]) writeFailed(err error, what string) ending {
	switch {
	case apierrors.IsNotFound(err):
		return ending{name: "done", outcome: queue.Outcome{Kind: queue.Forget}, noStatus: true, gone: true}
	case apierrors.IsConflict(err):
		return ending{name: "again", outcome: queue.Outcome{Kind: queue.Again}, noStatus: true}
	}
	if isNilObject(p.obj) {
		p.copy()
	}
	return p.endingOf(Done, Reason("WriteFailed", fmt.Errorf("%s: %w", what, err)))
}

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
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == settleTries {
			return err
		}
		fresh, rerr := p.reread(ctx)
		switch {
		case apierrors.IsNotFound(rerr):
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

// settle writes the status, if it differs. The pass's own deadline and a stop do
// not keep it from that; a lost lease does.
func (p *pass[T]) settle(ctx context.Context, e *ending) {
	c := p.c
	if !c.writesStatus() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), lastWrites, fmt.Errorf("the status write took longer than %v", lastWrites))
	defer cancel()
	if c.judges {
		generation := p.seen.GetGeneration()
		c.status.setConditions(p.obj, judgeConditions(c.status.getConditions(p.have), c.status.getConditions(p.obj), e.verdict, generation, time.Now()))
		c.status.setObserved(p.obj, generation)
	}
	again, err := p.writeStatus(ctx)
	switch {
	case err != nil && e.err == nil:
		e.err = fmt.Errorf("write the status: %w", err)
		e.verdict.reason = "WriteFailed"
		e.name, e.outcome = "error", queue.Outcome{Kind: queue.Backoff}
	case err != nil:
		p.log.Error(err, "status not written")
	case again && e.outcome.Kind != queue.Hold: // a server's word outlives it
		e.name, e.outcome = "again", queue.Outcome{Kind: queue.Again}
	}
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
		if err == nil || apierrors.IsNotFound(err) {
			return false, nil
		}
		if !apierrors.IsConflict(err) || try == settleTries {
			return false, err
		}
		fresh, err := p.reread(ctx)
		if err != nil {
			if apierrors.IsNotFound(err) {
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

// stalled is what a pass that ended in a Stall left: enough to put its status
// right without asking the author, whose calls have to wait for a change.
type stalled[T Object] struct {
	obj    T // shared, read-only
	ending ending
}

// keptEnding is the ending of a pass that only puts a stalled object's status right.
func (p *pass[T]) keptEnding() (ending, bool) {
	c := p.c
	if !p.item.Stalled || p.item.Cause != queue.Restore {
		return ending{}, false
	}
	c.memoryMu.Lock()
	kept, ok := c.stalled[p.key]
	c.memoryMu.Unlock()
	if !ok || kept.obj.GetUID() != p.seen.GetUID() || c.generation(kept.obj) != c.generation(p.seen) {
		return ending{}, false
	}
	p.copy()
	c.status.share(kept.obj.DeepCopyObject().(T), p.obj)
	return kept.ending, true
}

// keep notes what a Stall left, for as long as it lasts.
func (c *controller[T]) keep(p *pass[T], e ending) {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	if e.outcome.Kind == queue.Stall && !p.overtaken { // what it has from others may be what is to be put right
		e.err = nil
		c.stalled[p.key] = stalled[T]{p.have, e}
		return
	}
	delete(c.stalled, p.key)
}

func (c *controller[T]) forget(key Key) {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	delete(c.memory, key)
	delete(c.stalled, key)
	delete(c.unknown, key)
}
