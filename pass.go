package tether

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

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
				c.queue.Done(item.Key, c.guarded(ctx, item))
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
	restores  bool // it only puts a stalled object's status right
}

// guarded is a pass that ends alone where a method of the author's type, its
// DeepCopyObject or its MarshalJSON, panics outside of the author's functions. How
// far it got is not known, and it is repeated.
func (c *controller[T]) guarded(ctx context.Context, item queue.Item[Key]) (o queue.Outcome) {
	start := time.Now()
	defer func() {
		if v := recover(); v != nil {
			caught := &panicError{value: v, stack: debug.Stack()}
			c.env.hooks.Pass(PassInfo{
				Controller: c.name(), Key: item.Key, Lane: item.Lane.String(), Waited: item.Waited, Duration: time.Since(start),
				Outcome: "error", Reason: reasonFailed, Panic: true,
			})
			c.env.log.Error(caught, "pass panicked, and what it found is not in status", "controller", c.name(),
				"namespace", item.Key.Namespace, "name", item.Key.Name, "stack", string(caught.stack))
			o = queue.Outcome{Kind: queue.Backoff}
		}
	}()
	return c.pass(ctx, item)
}

func (c *controller[T]) pass(ctx context.Context, item queue.Item[Key]) queue.Outcome {
	start := time.Now()
	obj, ok := c.live.store.Get(item.Key)
	if gone, vanished := c.takeVanished(item.Key); vanished && !ok && c.endVanished(ctx, item, gone) {
		return queue.Outcome{Kind: queue.Defer}
	}
	if !ok || c.leftAlone(obj) {
		c.forget(item.Key)
		return queue.Outcome{Kind: queue.Forget}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout, c.tooLong)
	defer cancel()
	obj, gone, err := c.freshen(ctx, item, obj)
	if gone {
		return queue.Outcome{Kind: queue.Forget} // the watch will tell
	}
	if err == nil && c.leftAlone(obj) { // as a lagging store did not know
		c.forget(item.Key)
		return queue.Outcome{Kind: queue.Forget}
	}
	p := c.newPass(item, obj)
	ctx = withPass(logr.NewContext(ctx, p.log), p)
	e, kept := p.keptEnding()
	switch {
	case err != nil:
		e = p.writeFailed(err, "read the object")
		e.noStatus = true
	case item.Refuse:
		p.copy()
		e = p.deferred(c.opts.Budget.away())
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
	p.asksForLess(ctx, err)
	e := p.endingOf(r, err)
	if path := p.edited(); path != "" {
		e = editedEnding(path)
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

// report writes the pass's log line, and then tells the hooks. An error is logged here
// and nowhere else.
func (p *pass[T]) report(ctx context.Context, e ending, took time.Duration) {
	c := p.c
	caught, isPanicked := isPanic(e.err)
	defer c.env.hooks.Pass(PassInfo{
		Controller: c.name(), Key: p.key, Lane: p.item.Lane.String(), Waited: p.item.Waited, Duration: took,
		Outcome: e.name, Reason: e.verdict.reason, Panic: isPanicked,
	})
	log := p.log
	if e.unwritten != nil && e.err != nil {
		log = log.WithValues("statusNotWritten", e.unwritten.Error())
	}
	switch {
	case isPanicked:
		log.Error(e.err, "pass panicked", "stack", string(caught.stack))
	case e.err != nil && (e.name == "error" || e.name == "retry_after") && !errors.Is(context.Cause(ctx), errStopped):
		log.Error(e.err, "pass failed", "reason", e.verdict.reason)
	case e.unwritten != nil:
		p.log.Error(e.unwritten, "status not written")
	}
	if log = p.log.V(1); !log.Enabled() {
		return
	}
	log.Info("pass ended", "outcome", e.name, "reason", e.verdict.reason, "message", e.verdict.message,
		"lane", p.item.Lane.String(), "duration", took.Round(time.Microsecond).String())
}
