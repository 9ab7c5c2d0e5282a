package tether

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
	"github.com/tetherkube/tether/internal/store"
)

// managing is one pass of a managed object: it carries out what internal/protocol
// decides, step by step.
type managing[T Object] struct {
	*pass[T]
	m       *managedBy[T]
	memory  *memory
	id      *string // in the private copy's status
	looks   []protocol.Look
	looked  time.Time              // when the first of looks was made: what it shows was so then
	full    map[string]Observation // of looks, by id, as the External gave them
	lookErr error                  // of the last look that could not tell
	invalid error                  // what the Validator says
	scope   string                 // what the Scoper says

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
		s := protocol.Decide(r.view())
		p.log.V(2).Info("step", "do", s.Do.String(), "incarnation", s.Incarnation, "id", s.ID, "reason", s.End.Reason)
		if e, ends := r.do(ctx, s); ends {
			if path := r.edited(); path != "" && !e.noStatus {
				return stalledEnding("EditOutsideStatus", fmt.Sprintf("the External changed %s of its copy, which has no effect; change it with a Client", path))
			}
			return e
		}
	}
	return r.endingOf(Done, fmt.Errorf("the pass did not come to an end in %d steps", longestPass))
}

// begin points at the id of the copy, and asks the Validator and the Scoper.
func (r *managing[T]) begin(ctx context.Context) error {
	_, err := r.protect(ctx, func() (Result, error) {
		if r.id = r.m.opts.ID(r.obj); r.id == nil {
			return Done, Terminal(errors.New("ManageOptions.ID returned nil; return the address of a field of the given object's status"))
		}
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

// view is what the decision is made from.
func (r *managing[T]) view() protocol.View {
	c, o := r.c, r.m.opts
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
			Finalizer: hasFinalizer(r.have, r.nameOf(r.have)), FormerName: r.nameOf(r.have) != c.finalizerName(),
			Age: c.env.conn.Age(r.have.GetCreationTimestamp().Time),
		},
	}
	if r.vanished {
		v.Object.Deleting, v.Object.Finalizer = true, true
	}
	if r.invalid != nil {
		v.Invalid = r.invalid.Error()
	}
	v.Status = r.status(v.Object.Generation)
	name := r.nameOf(r.have) + claimSuffix
	if raw, ok := r.have.GetAnnotations()[name]; ok {
		v.Claimed = true
		claim, err := protocol.ParseClaim(raw)
		v.Claim = claim
		if err == nil {
			r.memory.learnt = r.memory.learnt.Heard(claim)
		}
		switch {
		case err != nil:
			v.BadClaim = fmt.Sprintf("annotation %s: %v", name, err)
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
	s.Recorded = !r.orphaned && *r.m.opts.ID(r.have) == s.ID
	conditions := f.getConditions(r.have)
	if c := findCondition(conditions, conditionStalled); c != nil && c.Status == metav1.ConditionTrue && !protocol.OwnReason(c.Reason) {
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
	for _, o := range c.live.store.List("") {
		if string(o.GetUID()) == uid {
			return true
		}
	}
	return false
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
		r.look(ctx, s)
		return ending{}, false
	}
	return r.effect(ctx, s)
}

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
	r.c.status.share(r.obj, obj)
	r.have, r.obj = fresh, obj
	r.id = r.m.opts.ID(obj)
}

// writeClaim writes claim and finalizer in one guarded PATCH.
func (r *managing[T]) writeClaim(ctx context.Context, s protocol.Step) (ending, bool) {
	c, value := r.c, s.Claim.String()
	before, beforeErr := protocol.ParseClaim(r.have.GetAnnotations()[r.nameOf(r.have)+claimSuffix])
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
	case again || *r.m.opts.ID(r.have) != s.ID:
		return ending{name: "again", outcome: queue.Outcome{Kind: queue.Again}, noStatus: true}, true
	}
	r.rebase(r.have)
	return ending{}, false
}

// letGo releases the object.
func (r *managing[T]) letGo(ctx context.Context, s protocol.Step) ending {
	annotations := map[string]any{}
	name := r.nameOf(r.have) + claimSuffix
	if claim, err := protocol.ParseClaim(r.have.GetAnnotations()[name]); err == nil {
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

// finish turns the end of a decision into that of the pass.
func (r *managing[T]) finish(e protocol.End) ending {
	r.memory.learnt = r.memory.learnt.Finished(e, time.Now())
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
			verdict: verdict{ready: metav1.ConditionUnknown, reconciling: true, reason: e.Reason, message: e.Message},
		}
	case protocol.CannotSay:
		return r.cannotSay(r.lookErr)
	}
	reason := e.Reason
	if reason == "" {
		reason = orElse(outcomeOf(r.invalid).reason, "Invalid")
	}
	end := stalledEnding(reason, e.Message)
	if e.Live || protocol.OwnReason(reason) {
		end.outcome.Poll = poll
	}
	return end
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

// call makes one call of the External, within CallTimeout. Whether the lease is
// held was asked right before.
func (r *managing[T]) call(ctx context.Context, verb string, c Call, f func(context.Context) (Observation, error)) (Observation, protocol.Outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.m.opts.CallTimeout, fmt.Errorf("%s took longer than a call may take, %v", verb, r.m.opts.CallTimeout))
	defer cancel()
	start := time.Now()
	var o Observation
	_, err := r.protect(ctx, func() (Result, error) {
		var err error
		o, err = f(ctx)
		if err == nil {
			err = r.unfit(verb, c, o)
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
		return Done, err
	})
	outcome := classify(err)
	r.c.env.hooks.Call(CallInfo{Controller: r.c.name(), Verb: verb, Outcome: outcomeNames[outcome], Duration: time.Since(start)})
	r.log.V(2).Info("call", "verb", verb, "outcome", outcomeNames[outcome], "state", o.State.String(), "id", o.ID)
	return o, outcome, err
}

const verbObserve = "observe"

var outcomeNames = map[protocol.Outcome]string{
	protocol.OutcomeDone: "done", protocol.OutcomeRejected: "rejected", protocol.OutcomeNoEffect: "no_effect",
	protocol.OutcomeLater: "retry_after", protocol.OutcomeUnknown: "unknown",
}

func classify(err error) protocol.Outcome {
	o := outcomeOf(err)
	switch {
	case err == nil:
		return protocol.OutcomeDone
	case o.terminal:
		return protocol.OutcomeRejected
	case o.noEffect && o.later:
		return protocol.OutcomeLater
	case o.noEffect:
		return protocol.OutcomeNoEffect
	}
	return protocol.OutcomeUnknown
}

// unfit says what an External's answer lacks. What is looked up by its id may be
// made by somebody who gave it no reference.
func (r *managing[T]) unfit(verb string, c Call, o Observation) error {
	switch {
	case verb == verbObserve && c.ID != "" && o.State >= Absent && o.State <= Ambiguous:
		return nil
	case o.State < Absent || o.State > Ambiguous:
		return fmt.Errorf("the External's answer to %s has no State; set one", verb)
	case o.State >= Pending && o.State != Ambiguous && o.Reference == "" && !o.Replay && r.m.opts.Guarantee != None:
		return fmt.Errorf("the External's answer to %s has no Reference; set what the outside tells, so that it is known whose the thing is", verb)
	}
	return nil
}

// ownAhead is how far beyond the claim's incarnations a thing is still known for
// this object's: an older etcd may have come back.
const ownAhead = 8

// sight reduces an observation to what decides: whose it is, by derived reference.
func (r *managing[T]) sight(o Observation, claim protocol.Claim, looked int) protocol.Sight {
	s := protocol.Sight{
		State: protocol.State(o.State), ID: o.ID, Version: o.Version, Replay: o.Replay,
		Differs: len(o.Differs) > 0, Replace: o.Replace, Reason: o.Reason, Message: clip(o.Message, longestMessage),
	}
	if s.Differs && s.Message == "" {
		s.Message = fmt.Sprint(o.Differs)
	}
	id := r.c.identity()
	for n := max(claim.Incarnation, claim.Next, looked) + ownAhead; n > 0 && o.Reference != ""; n-- {
		if id.Reference(claim, n) == o.Reference {
			s.Own = n
			break
		}
	}
	if adopt := r.asked.Adopt; adopt != "" && adopt != claim.Answered.Adopt && o.ID == adopt && s.Own == 0 {
		s.Refused = r.refuses(o)
	}
	return s
}

// refuses says why this object may not adopt what was seen; "" where it may.
func (r *managing[T]) refuses(o Observation) (why string) {
	if r.m.opts.AllowAdopt == nil {
		return "this controller does not allow it; set ManageOptions.AllowAdopt"
	}
	_, err := r.protect(context.Background(), func() (Result, error) { return Done, r.m.opts.AllowAdopt(r.obj, o) })
	if err != nil {
		return err.Error()
	}
	if key, ok := r.c.holderOf(o.Reference); ok {
		return "it belongs to " + key.String()
	}
	return ""
}

// holderOf finds the living object that derives a reference.
func (c *controller[T]) holderOf(reference string) (Key, bool) {
	for _, obj := range c.live.store.List("") {
		for _, derived := range c.references(obj) {
			if derived == reference {
				return store.KeyOf(obj), true
			}
		}
	}
	return Key{}, false
}

// references are those that an object derives, by its claim, up to the ones that a
// walk would look up.
func (c *controller[T]) references(obj T) []string {
	claim, err := protocol.ParseClaim(obj.GetAnnotations()[c.nameOn(obj)+claimSuffix])
	if err != nil {
		return nil
	}
	var all []string
	last := max(claim.Incarnation, claim.Next) + 2
	for n := last; n > 0 && n > last-12; n-- {
		all = append(all, c.identity().Reference(claim, n))
	}
	return all
}

// claimNow is the claim that references derive from: the stored one, or what it
// would be.
func (r *managing[T]) claimNow() protocol.Claim {
	v := r.view()
	return protocol.Effective(v)
}

// look observes, by id or by reference.
func (r *managing[T]) look(ctx context.Context, s protocol.Step) {
	claim := r.claimNow()
	n := s.Incarnation
	if n == 0 {
		n = claim.Incarnation
	}
	c := Call{Reference: r.c.identity().Reference(claim, n), ID: s.ID}
	began := time.Now()
	o, outcome, err := r.call(ctx, verbObserve, c, func(ctx context.Context) (Observation, error) {
		if err := r.c.env.held(); err != nil { // nothing is sent, not even a question
			return Observation{}, err
		}
		return r.m.Observe(ctx, r.obj, c)
	})
	if len(r.looks) == 0 {
		r.looked = began
	}
	l := protocol.Look{Incarnation: s.Incarnation, ID: s.ID}
	if outcome != protocol.OutcomeDone {
		l.Failed, r.lookErr = true, err
	} else {
		l.Sight = r.sight(o, claim, n)
		if s.ID != "" && l.Sight.ID == "" {
			l.Sight.ID = s.ID
		}
		r.full[l.Sight.ID] = o
		r.memory.learnt = r.memory.learnt.Learn(l.Own, l.Sight.ID)
		r.learn(l.Sight, claim)
		if r.another(l.Sight, claim) {
			r.unsee()
		}
	}
	r.looks = append(r.looks, l)
}

// another tells whether a sight is of a thing that status is not about: one that
// is not this object's, or the other one of a replacement.
func (r *managing[T]) another(s protocol.Sight, claim protocol.Claim) bool {
	switch {
	case s.State == protocol.Absent, s.State == protocol.Closed:
		return false
	case s.Own == 0:
		return r.m.opts.Guarantee != None
	case claim.Next != 0 && s.Own == claim.Next && s.State == protocol.Present:
		return false // its id is recorded next
	}
	return s.ID != *r.id && claim.Next != 0
}

// unsee takes back what the External has filled into status from another thing:
// who writes another's id into status learns nothing by it.
func (r *managing[T]) unsee() {
	id := *r.id
	r.obj = r.have.DeepCopyObject().(T)
	r.id = r.m.opts.ID(r.obj)
	*r.id = id
}

// learn puts an id that was seen into status: that of the claim's own incarnation,
// while the object is wanted and no replacement is on.
func (r *managing[T]) learn(s protocol.Sight, claim protocol.Claim) {
	v := r.view()
	v.Claim = claim
	if v.Learns(s) {
		*r.id = s.ID
	}
}

// effect acts on the outside.
func (r *managing[T]) effect(ctx context.Context, s protocol.Step) (ending, bool) {
	claim := r.claimNow()
	ref := r.c.identity().Reference(claim, s.Incarnation)
	before := r.memory.learnt
	if err := r.c.env.held(); err != nil { // right before the send
		return r.endingOf(Done, NoEffect(err)), true
	}
	if s.Do == protocol.Fence && s.ID != "" {
		ref = r.full[s.ID].Reference // that of what is to be adopted
		if ref == "" {               // it has none, under which something could land
			r.looks, r.looked = nil, time.Now()
			r.answered(s, r.full[s.ID], r.sight(r.full[s.ID], claim, s.Incarnation), claim)
			return ending{}, false
		}
	}
	began := time.Now()
	r.memory.learnt = before.Sending(s, r.c.generation(r.have), began)
	o, outcome, err := r.send(ctx, s, claim, ref)
	sight := r.sight(o, claim, s.Incarnation)
	if o.Replay && s.Do == protocol.Create {
		sight.Own = s.Incarnation
	}
	r.memory.learnt = r.memory.learnt.Ended(s, outcome, before, time.Now()).Learn(sight.Own, sight.ID)
	r.looks, r.looked = nil, began
	switch outcome {
	case protocol.OutcomeDone:
		r.answered(s, o, sight, claim)
		return ending{}, false
	case protocol.OutcomeRejected:
		reason := orElse(outcomeOf(err).reason, reasonRejected)
		r.memory.learnt = r.memory.learnt.Reject(reason, clip(err.Error(), longestMessage), r.c.generation(r.have), r.asked.ReconcileAt)
		r.memory.done = false
		e := r.endingOf(Done, err)
		e.outcome.Poll = 0
		if *r.id != "" {
			e.outcome.Poll = r.c.opts.Poll // something is live
		}
		return e, true
	}
	r.memory.done = false
	e := r.cannotSay(err)
	if outcome == protocol.OutcomeUnknown {
		e.verdict.reason = orElse(outcomeOf(err).reason, reasonOutcomeUnknown)
		next := "it is looked for, and repeated with the same key"
		if r.m.opts.Guarantee == None && s.Do == protocol.Create {
			next = "nobody but a person can tell"
		}
		e.verdict.message = fmt.Sprintf("%s; whether the %s took effect is not known since %s: %s",
			e.verdict.message, s.Do, r.unknownSince().UTC().Format(time.RFC3339), next)
	}
	return e, true
}

func (r *managing[T]) answered(s protocol.Step, o Observation, sight protocol.Sight, claim protocol.Claim) {
	r.learn(sight, claim)
	if sight.Replay {
		return // how it stands, a look-up tells
	}
	if s.Do != protocol.Create && sight.ID == "" {
		sight.ID = s.ID
	}
	if s.Do != protocol.Create && r.another(sight, claim) {
		r.unsee()
	}
	r.full[o.ID] = o
	r.looks = append(r.looks, protocol.Look{Incarnation: s.Incarnation, Answer: s.Do, Sight: sight})
}

// send makes the call of an effect.
func (r *managing[T]) send(ctx context.Context, s protocol.Step, claim protocol.Claim, ref string) (Observation, protocol.Outcome, error) {
	c := Call{Reference: ref, ID: s.ID}
	seen := r.full[s.ID]
	observed := s.Sight.Version + "|" + s.Sight.State.String() + "|" + s.Sight.Message
	verb := s.Do.String()
	switch s.Do {
	case protocol.Create:
		c.Key = protocol.CreateKey(ref, claim.Attempt)
		return r.call(ctx, verb, c, func(ctx context.Context) (Observation, error) { return r.m.Create(ctx, r.obj, c) })
	case protocol.Update:
		content := strconv.FormatUint(contentHash(r.c.status, r.have), 36)
		c.Key = protocol.ChangeKey(verb, ref, observed, content, r.memory.learnt.Refused)
		return r.call(ctx, verb, c, func(ctx context.Context) (Observation, error) { return r.m.Update(ctx, r.obj, c, seen) })
	case protocol.Delete:
		c.Key = protocol.ChangeKey(verb, ref, observed, "", r.memory.learnt.Refused)
		return r.call(ctx, verb, c, func(ctx context.Context) (Observation, error) { return r.m.Delete(ctx, r.obj, c, seen) })
	}
	if s.Do == protocol.Rebind {
		c.Key = protocol.ChangeKey(verb, ref, observed, c.ID, r.memory.learnt.Refused)
		return r.call(ctx, verb, c, func(ctx context.Context) (Observation, error) { return r.m.rebinder.Rebind(ctx, r.obj, c, seen) })
	}
	// Closing twice is as good as once, and an answer kept under a key would tell
	// how things stood then: every fence has a key of its own.
	c.Key = protocol.ChangeKey(verb, ref, strconv.FormatInt(time.Now().UnixNano(), 36), "", 0)
	return r.call(ctx, verb, c, func(ctx context.Context) (Observation, error) { return r.m.fencer.Fence(ctx, r.obj, c) })
}
