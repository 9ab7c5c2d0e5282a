package tether

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
)

// invalidPrefix begins the message of a Stalled condition that the Validator gave: unlike a
// rejection by the outside, it is asked anew, and says nothing of a key.
const invalidPrefix = "invalid: "

// view is what the decision is made from.
func (r *managing[T]) view() protocol.View {
	c, o := r.c, r.m.opts
	under := c.namesOn(r.have)
	v := protocol.View{
		Now: time.Now(), Identity: c.identity(), Former: o.FormerClusterIDs, FormerNames: o.Formerly, Holder: c.env.holder, Term: c.env.term,
		Ask: r.asked, Looks: r.looks, Looked: r.looked, Policy: r.policy(),
		Outside: protocol.Outside{
			Guarantee: protocol.Guarantee(o.Guarantee), KeyLifetime: o.KeyLifetime,
			Fence: r.m.fencer != nil, Rebind: r.m.rebinder != nil, Adopt: o.AllowAdopt != nil, Scope: r.scope, Settle: o.Settle, Losses: c.lossesNow(),
		},
		Object: protocol.Object{
			Exists: true, Namespace: r.key.Namespace, Name: r.key.Name, UID: string(r.have.GetUID()),
			Generation: c.generation(r.have), Deleting: r.have.GetDeletionTimestamp() != nil,
			Finalizer: hasFinalizer(r.have, under.finalizer), FormerName: under != &c.own,
			Age: c.env.conn.Age(r.have.GetCreationTimestamp().Time),
		},
	}
	if r.vanished {
		v.Object.Deleting, v.Object.Finalizer = true, true
	}
	if r.invalid != nil {
		v.Invalid = invalidPrefix + r.invalid.Error()
	}
	v.Status = r.status(v.Object.Generation)
	if raw, ok := r.have.GetAnnotations()[under.claim]; ok {
		v.Claimed = true
		claim, err := r.parse(raw)
		v.Claim = claim
		if err == nil {
			r.memory.learnt = r.memory.learnt.Heard(claim)
		}
		switch {
		case err != nil:
			v.BadClaim = fmt.Sprintf("annotation %s: %v", under.claim, err)
			v.Newer = errors.Is(err, protocol.ErrNewer)
		case !r.memory.learnt.HasClaim, !v.Own(r.memory.learnt.Claim) && v.Own(claim):
			r.memory.learnt = r.memory.learnt.Meet(claim, v.Status, v.Now)
		}
		if err == nil && claim.Owner != v.Object.UID {
			v.Object.OwnerLives = c.lives(claim.Owner)
		}
	}
	if v.Object.Finalizer && r.memory.learnt.HasClaim && !r.vanished {
		r.memory.held.Store(true)
	}
	v.Memory = r.memory.learnt
	return v
}

// claimRead is a claim with the text that it was read from.
type claimRead struct {
	raw   string
	claim protocol.Claim
	err   error
}

// parse reads a claim; the same text is parsed once in a pass.
func (r *managing[T]) parse(raw string) (protocol.Claim, error) {
	if r.parsed.raw != raw || raw == "" {
		claim, err := protocol.ParseClaim(raw)
		r.parsed = claimRead{raw, claim, err}
	}
	return r.parsed.claim, r.parsed.err
}

func (c *controller[T]) identity() protocol.Identity {
	return protocol.Identity{
		Controller: c.finalizerName(), Cluster: c.env.clusterOf(c.external.opts.ClusterID),
		Group: c.in.resource.GroupVersion.Group, Kind: c.in.resource.Kind,
	}
}

func (r *managing[T]) policy() protocol.Policy {
	if r.m.opts.Policy == nil || r.orphaned {
		return protocol.Policy{}
	}
	p := r.m.opts.Policy(r.obj)
	return protocol.Policy{
		Retain: p.Deletion == RetainOutside, ReportDrift: p.Drift == ReportDrift, IgnoreDrift: p.Drift == IgnoreDrift,
		ObserveOnly: p.ObserveOnly, DeleteFirst: p.Replace == DeleteFirst, Recreate: p.OnLost == RecreateLoss,
	}
}

// status is what the stored status says, and the id that this pass has learned.
func (r *managing[T]) status(generation int64) protocol.Status {
	f := r.c.status
	s := protocol.Status{ID: *r.id, ObservedGeneration: f.getObserved(r.have), Done: r.memory.done}
	s.Recorded = !r.orphaned && r.stored == s.ID
	conditions := f.getConditions(r.have)
	if c := findCondition(conditions, conditionStalled); c != nil && c.Status == metav1.ConditionTrue && !protocol.OwnReason(c.Reason) && !strings.HasPrefix(c.Message, invalidPrefix) {
		s.Rejected, s.RejectedMessage, s.RejectedGeneration = c.Reason, c.Message, c.ObservedGeneration
	}
	if c := findCondition(conditions, conditionReady); c != nil {
		// What was reported as drift, and left, stays drift; so does what is fought no more.
		settled := c.Status == metav1.ConditionTrue || c.Reason == protocol.ReasonDiffers || c.Reason == protocol.ReasonPerpetualDiff
		s.Done = settled && c.ObservedGeneration == generation && findCondition(conditions, conditionReconciling) == nil
	}
	if s.ObservedGeneration == 0 && s.Done {
		s.ObservedGeneration = generation // the type keeps none; Ready tells
	}
	return s
}

// generation is the object's, or where the API server keeps none, a hash of what
// it would count.
func (c *controller[T]) generation(obj T) int64 {
	if g := obj.GetGeneration(); g != 0 {
		return g
	}
	return int64(contentHash(c.status, obj) >> 1)
}

// contentHash is of all but status, resourceVersion and managedFields, and but for
// the annotations and finalizers of people and controllers.
func contentHash[T Object](f statusField[T], obj T) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(contentJSON(f, obj)) // a hash never fails
	return h.Sum64()
}

// lives tells whether an object with that UID is in this controller's view.
func (c *controller[T]) lives(uid string) bool {
	return c.live.store.Has(func(o T) bool { return string(o.GetUID()) == uid })
}
