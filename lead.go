package tether

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tetherkube/tether/internal/kube"
)

// lead runs passes until ctx ends: the stop, or the loss of the lease.
func (r *running) lead(ctx context.Context) {
	r.note("waiting for informers", true)
	defer r.note("stopped", false)
	if r.elector != nil {
		r.env.term = time.Now()
	}
	if !r.prepared(ctx) || !r.learnVersions(ctx) {
		return
	}
	passCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var workers sync.WaitGroup
	r.note("", true) // before a pass can be seen
	for _, e := range r.engines {
		e.work(logr.NewContext(passCtx, r.env.log), &workers)
	}
	r.env.log.Info("controllers run", "controllers", r.names())
	r.tellStrangers()
	for _, e := range r.engines {
		workers.Go(func() { e.lookForOrphans(ctx) })
	}
	<-ctx.Done()
	for _, e := range r.engines {
		e.drain()
	}
	if cause := context.Cause(ctx); errors.Is(cause, kube.ErrLeaseLost) {
		r.env.log.Error(cause, "passes are cancelled")
		cancel(cause)
		workers.Wait()
		return
	}
	r.env.log.Info("stopping; running passes may end", "timeout", r.opts.StopTimeout.String())
	late := time.AfterFunc(r.opts.StopTimeout, func() {
		r.env.log.Info("the stop takes too long; running passes are cancelled", "timeout", r.opts.StopTimeout.String())
		cancel(errStopped)
	})
	defer late.Stop()
	// A lease that is lost during the stop cuts it short.
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	ended := make(chan struct{})
	go func() { workers.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			return
		case <-watch.C:
			if err := r.env.held(); err != nil {
				cancel(err)
			}
		}
	}
}

func (r *running) names() string {
	var names []string
	for _, e := range r.engines {
		names = append(names, e.name())
	}
	return strings.Join(names, ",")
}

// prepared waits until all informers have synced and the cluster's id is known.
func (r *running) prepared(ctx context.Context) bool {
	for _, in := range r.informers {
		select {
		case <-ctx.Done():
			return false
		case <-in.synced():
		}
	}
	for _, e := range r.engines {
		if err := e.checkServed(); err != nil {
			r.env.fail(err)
			return false
		}
	}
	if slices.ContainsFunc(r.engines, func(e engine) bool { return e.wantsClusterID() }) {
		return r.findCluster(ctx)
	}
	return true
}

func (r *running) note(waits string, leading bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits, r.leading = waits, leading
}
