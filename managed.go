package tether

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

// managing is one pass of a managed object: it carries out what internal/protocol
// decides, step by step.
type managing[T Object] struct {
	*pass[T]
	m       *managedBy[T]
	memory  *memory
	id      *string // in the private copy's status
	stored  string  // the id in the stored version's
	looks   []protocol.Look
	looked  time.Time              // when the first of looks was made: what it shows was so then
	full    map[string]Observation // of looks, by id, as the External gave them
	lookErr error                  // of the last look that could not tell
	invalid error                  // what the Validator says
	scope   string                 // what the Scoper says
	decided protocol.View          // what the last step was decided from
	parsed  claimRead              // the claim that was parsed last

	vanished bool // the object is gone, without this controller's finalizer
	orphaned bool // it is being deleted and orphaned: none of the author's functions can stand in the way
}

// longestPass bounds the steps of one pass: more means that the decision and the
// world run in circles.
const longestPass = 100

func (p *pass[T]) manage(ctx context.Context) ending {
	p.copy()
	r := &managing[T]{pass: p, m: p.c.external, full: map[string]Observation{}, memory: p.c.remember(p.key, string(p.seen.GetUID()))}
	if r.orphaned = p.seen.GetDeletionTimestamp() != nil && p.asked.Orphan; r.orphaned {
		r.id = new(string)
	} else if err := r.begin(ctx); err != nil {
		return r.endingOf(Done, err)
	}
	for range longestPass {
		s := r.decide()
		if log := p.log.V(2); log.Enabled() {
			log.Info("step", "do", s.Do.String(), "incarnation", s.Incarnation, "id", s.ID, "reason", s.End.Reason)
		}
		if e, ends := r.do(ctx, s); ends {
			if path := r.edited(); path != "" && !e.noStatus {
				return editedEnding(path)
			}
			return e
		}
	}
	return r.endingOf(Done, fmt.Errorf("the pass did not come to an end in %d steps", longestPass))
}

// decide tells the next step.
func (r *managing[T]) decide() protocol.Step {
	r.decided = r.view()
	return protocol.Decide(r.decided)
}

// begin points at the id of the copy, and asks the Validator and the Scoper.
func (r *managing[T]) begin(ctx context.Context) error {
	_, err := r.protect(ctx, func() (Result, error) {
		if r.id = r.idOf(r.obj); r.id == nil {
			return Done, Terminal(Reason(protocol.ReasonNoID, errors.New("ManageOptions.ID returned nil; return the address of a field of the given object's status")))
		}
		r.stored = *r.id
		if r.m.validator != nil {
			r.invalid = r.m.validator.Validate(ctx, r.obj)
		}
		if r.m.scoper == nil {
			return Done, nil
		}
		var err error
		if r.scope, err = r.m.scoper.Scope(ctx, r.obj); err != nil {
			return Done, fmt.Errorf("the scope cannot be told: %w", err)
		}
		return Done, nil
	})
	return err
}

// idOf is where a private copy has the outside's id.
func (r *managing[T]) idOf(obj T) *string {
	r.c.status.allocate(obj)
	return r.m.opts.ID(obj)
}

func (c *controller[T]) remember(key Key, uid string) *memory {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	m := c.memory[key]
	if m == nil || m.uid != uid {
		m = &memory{uid: uid}
		c.memory[key] = m
	}
	return m
}

// do carries out one step.
func (r *managing[T]) do(ctx context.Context, s protocol.Step) (ending, bool) {
	switch s.Do {
	case protocol.Finish:
		return r.finish(s.End), true
	case protocol.Read:
		return r.read(ctx)
	case protocol.WriteClaim:
		return r.writeClaim(ctx, s)
	case protocol.Record:
		return r.record(ctx, s)
	case protocol.Release:
		return r.letGo(ctx, s), true
	case protocol.LookUp:
		return r.look(ctx, s)
	}
	return r.effect(ctx, s)
}

// finish turns the end of a decision into that of the pass.
func (r *managing[T]) finish(e protocol.End) ending {
	r.memory.learnt = r.memory.learnt.Finished(e, time.Now())
	r.tellLoss(e)
	r.lost(e.Lost)
	r.resolved(e)
	r.memory.done = e.Verdict == protocol.AsWanted || e.Verdict == protocol.Observed && e.Reason == protocol.ReasonDiffers || e.Reason == protocol.ReasonPerpetualDiff
	poll := r.c.opts.Poll
	switch e.Verdict {
	case protocol.Nothing:
		return ending{name: "done", outcome: queue.Outcome{Kind: queue.Forget}, noStatus: true, gone: true}
	case protocol.AsWanted:
		return ending{
			name: "done", outcome: queue.Outcome{Kind: queue.Done, Poll: poll},
			verdict: verdict{ready: metav1.ConditionTrue, reason: orElse(e.Reason, reasonReconciled), message: e.Message},
		}
	case protocol.Observed:
		v := verdict{unset: metav1.ConditionUnknown, reason: e.Reason, message: e.Message, reconciling: e.Reason == protocol.ReasonPaused}
		if e.Reason == protocol.ReasonDiffers {
			v.ready = metav1.ConditionFalse
		}
		return ending{name: "done", outcome: queue.Outcome{Kind: queue.Done, Poll: poll}, verdict: v}
	case protocol.Working:
		return ending{
			name: "backoff", outcome: queue.Outcome{Kind: queue.Backoff},
			verdict: verdict{ready: metav1.ConditionUnknown, reconciling: true, reason: e.Reason, message: e.Message},
		}
	case protocol.Waiting:
		return ending{
			name: "after", outcome: queue.Outcome{Kind: queue.After, Delay: e.After * 10 / 9}, // a tenth less is not too early
			verdict: verdict{ready: metav1.ConditionUnknown, reconciling: true, reason: e.Reason, message: e.Message + until(e.After) + r.because()},
		}
	case protocol.CannotSay:
		return r.cannotSay(r.lookErr)
	}
	end := stalledEnding(e.Reason, e.Message)
	if e.Reason == "" {
		end.verdict.reason = orElse(outcomeOf(r.invalid).reason, protocol.ReasonInvalid)
	}
	if e.Live || protocol.OwnReason(e.Reason) {
		end.outcome.Poll = poll
	}
	return end
}

// until says when a wait is over.
func until(left time.Duration) string {
	return "; it waits until " + time.Now().Add(left).UTC().Format(time.RFC3339)
}

// because says what the call ended in that is waited out.
func (r *managing[T]) because() string {
	if r.memory.unanswered == "" {
		return ""
	}
	return "; the last call ended in: " + r.memory.unanswered
}

// cannotSay backs off, whatever kind of error the author gave: absence was not
// shown, and nothing else follows.
func (r *managing[T]) cannotSay(err error) ending {
	o := outcomeOf(err)
	e := ending{
		name: "error", err: err, outcome: queue.Outcome{Kind: queue.Backoff},
		verdict: verdict{ready: metav1.ConditionUnknown, reconciling: true, reason: orElse(o.reason, reasonFailed), message: err.Error()},
	}
	return e.held(o)
}
