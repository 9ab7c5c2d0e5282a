package tether

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

// ending is what came of a pass.
type ending struct {
	verdict   verdict
	outcome   queue.Outcome
	name      string
	err       error
	unwritten error // why the status is not written; err has it where nothing else went wrong
	noStatus  bool  // write none
	gone      bool  // the object is released or not there
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
	if d := (*deferredError)(nil); errors.As(err, &d) {
		return p.deferred(d)
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

func editedEnding(path string) ending {
	return stalledEnding(protocol.ReasonEdited, path+" was changed in the pass's own copy of the object, which has no effect; change it with a Client")
}

func (p *pass[T]) paused(deleting bool) ending {
	message := "paused by annotation " + p.c.own.asks.paused
	if deleting {
		message += "; the deletion waits until it is taken off"
	}
	return ending{
		name: "done", outcome: queue.Outcome{Kind: queue.Done},
		verdict: verdict{unset: metav1.ConditionUnknown, reconciling: true, reason: protocol.ReasonPaused, message: message},
	}
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
	case kube.IsGone(err):
		return ending{name: "done", outcome: queue.Outcome{Kind: queue.Forget}, noStatus: true, gone: true}
	case apierrors.IsConflict(err):
		return ending{name: "again", outcome: queue.Outcome{Kind: queue.Again}, noStatus: true}
	}
	if isNilObject(p.obj) {
		p.copy()
	}
	return p.endingOf(Done, Reason("WriteFailed", fmt.Errorf("%s: %w", what, err)))
}
