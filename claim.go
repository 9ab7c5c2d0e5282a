package tether

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

// read is the consistent read before a term's first effect. The pass goes on with
// what it shows.
func (r *managing[T]) read(ctx context.Context) (ending, bool) {
	fresh, err := r.reread(ctx)
	if err != nil {
		return r.writeFailed(err, "read the object"), true
	}
	r.memory.learnt.Read = true
	if fresh.GetUID() != r.seen.GetUID() || fresh.GetGeneration() != r.seen.GetGeneration() {
		return ending{name: "again", outcome: queue.Outcome{Kind: queue.Again}, noStatus: true}, true
	}
	r.goOn(fresh)
	return ending{}, false
}

// goOn makes fresh the version that the pass works on; the status that the author
// has filled in so far stays.
func (r *managing[T]) goOn(fresh T) {
	r.rebase(fresh)
	r.asked = r.c.ask(fresh)
	r.asked.Woken = r.item.Cause == queue.Related
	r.looks = nil
}

// rebase makes the private copy one of fresh, so that what the library has written
// is not taken for an edit of the author's.
func (r *managing[T]) rebase(fresh T) {
	obj := fresh.DeepCopyObject().(T)
	r.stored = *r.idOf(obj)
	r.c.status.share(r.obj, obj)
	r.have, r.obj = fresh, obj
	r.id = r.idOf(obj)
}

// writeClaim writes claim and finalizer in one guarded PATCH.
func (r *managing[T]) writeClaim(ctx context.Context, s protocol.Step) (ending, bool) {
	c, value := r.c, s.Claim.String()
	before, beforeErr := r.parse(r.have.GetAnnotations()[c.namesOn(r.have).claim])
	had := beforeErr == nil
	annotations := c.moved(r.have)
	annotations[c.claimName()] = value
	finalizers := c.ownFinalizer(r.have)
	r.memory.learnt = r.memory.learnt.Trying(s.Claim)
	err := r.patchMeta(ctx, finalizers, annotations)
	if err != nil && !definite(err) { // the answer was lost: see what came of it
		fresh, rerr := r.reread(ctx)
		if rerr == nil && fresh.GetUID() == r.seen.GetUID() && fresh.GetGeneration() == r.seen.GetGeneration() && fresh.GetAnnotations()[c.claimName()] == value {
			r.have, err = fresh, nil
		}
	}
	if err != nil {
		return r.writeFailed(err, "write the claim"), true
	}
	if r.have.GetAnnotations()[c.claimName()] != value || !hasFinalizer(r.have, c.finalizerName()) {
		r.rebase(r.have)
		return stalledEnding(protocol.ReasonClaimStripped, "the API server's answer lacks the claim or the finalizer: an admission webhook strips them; exempt "+c.finalizerName()), true
	}
	r.memory.learnt = r.memory.learnt.Wrote(s, had, before, time.Now())
	if s.Recreate {
		r.lost(true)
	}
	r.tell(s)
	r.goOn(r.have)
	return ending{}, false
}

// definite tells whether the API server answered at all.
func definite(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}

func (r *managing[T]) tell(s protocol.Step) {
	switch s.Warning {
	case "":
	case protocol.EventOrphaned, protocol.EventRetained:
		r.event(corev1.EventTypeNormal, s.Warning, s.Note)
	default:
		r.event(corev1.EventTypeWarning, s.Warning, s.Note)
	}
}

// record writes the id into status before the next effect may need it there.
func (r *managing[T]) record(ctx context.Context, s protocol.Step) (ending, bool) {
	*r.id = s.ID
	again, err := r.writeStatus(ctx)
	switch {
	case err != nil:
		return r.writeFailed(err, "record the id"), true
	case !again:
		if r.rebase(r.have); r.stored == s.ID {
			return ending{}, false
		}
	}
	return ending{name: "again", outcome: queue.Outcome{Kind: queue.Again}, noStatus: true}, true
}

// letGo releases the object.
func (r *managing[T]) letGo(ctx context.Context, s protocol.Step) ending {
	annotations := map[string]any{}
	name := r.c.namesOn(r.have).claim
	if claim, err := r.parse(r.have.GetAnnotations()[name]); err == nil {
		claim.Released = true
		annotations[name] = claim.String()
	}
	r.memory.held.Store(false) // its end may be heard of before the answer
	err := r.release(ctx, annotations)
	if err == nil {
		r.tell(s)
	}
	return r.released(err, "", "")
}
