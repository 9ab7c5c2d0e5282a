package tether

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// trouble is what keeps an informer from its work.
type trouble struct {
	reason, message string
	since           time.Time
}

type notServed struct{ name, version string }

func (e *notServed) Error() string {
	return fmt.Sprintf("the API server does not serve %s in version %s; apply its CustomResourceDefinition", e.name, e.version)
}

// troubled notes what is wrong, under a place that it is mended at. It is logged
// once for each reason.
func (l *liveInformer[T]) troubled(place string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.troubledLocked(place, err)
}

func (l *liveInformer[T]) troubledLocked(place string, err error) {
	was, had := l.trouble[place]
	if err == nil {
		if had {
			delete(l.trouble, place)
			l.env.log.Info("informer recovered", "resource", l.name(), "reason", was.reason, "after", time.Since(was.since).Round(time.Millisecond).String())
		}
		return
	}
	t := trouble{reason: troubleReason(err), message: err.Error(), since: time.Now()}
	if had && was.reason == t.reason {
		was.message = t.message
		l.trouble[place] = was
		return
	}
	l.trouble[place] = t
	l.env.log.Info("informer waits", "resource", l.name(), "reason", t.reason, "cause", t.message)
}

func troubleReason(err error) string {
	var missing *notServed
	var silent *hanging
	var network net.Error
	switch {
	case errors.As(err, &silent):
		return "Hanging"
	case errors.As(err, &missing), apierrors.IsNotFound(err):
		return "NotServed"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsUnauthorized(err):
		return "Unauthorized"
	case errors.As(err, &network):
		return "Unreachable"
	}
	if r := apierrors.ReasonForError(err); r != "" {
		return string(r)
	}
	return "Failed"
}

// slowSync is after how long a first list that neither comes nor fails is trouble.
const slowSync = 10 * time.Second

type hanging struct{}

func (*hanging) Error() string { return "the first list has not been answered" }

// watchdog tells when the first list hangs: when it does not come, and nothing
// says why.
func (l *liveInformer[T]) watchdog(ctx context.Context) {
	tick := time.NewTicker(slowSync)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.ready:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		if l.pending > 0 && len(l.trouble) == 0 {
			l.troubledLocked("sync", &hanging{})
		}
		l.mu.Unlock()
	}
}

func (in *Informer[T]) state() InformerState {
	s := InformerState{Resource: in.name()}
	l := in.live.Load()
	if l == nil {
		return s
	}
	s.Synced, s.Objects = l.synced(), l.store.Len()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.trouble {
		if s.Trouble == "" || t.since.Before(s.Since) {
			s.Trouble, s.Message, s.Since = t.reason, t.message, t.since
		}
	}
	return s
}
