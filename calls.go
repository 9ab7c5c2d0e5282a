package tether

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tetherkube/tether/internal/protocol"
)

// call makes one call of the External, within CallTimeout. Whether the lease is
// held was asked right before.
func (r *managing[T]) call(pass context.Context, verb string, c Call, f func(context.Context) (Observation, error)) (Observation, protocol.Outcome, error) {
	ctx, cancel := context.WithTimeoutCause(pass, r.m.opts.CallTimeout, fmt.Errorf("%s took longer than a call may take, %v", verb, r.m.opts.CallTimeout))
	defer cancel()
	start := time.Now()
	var o Observation
	var said error // by the External
	_, err := r.protect(ctx, func() (Result, error) {
		var err error
		o, err = f(ctx)
		said = err
		if err == nil {
			err = r.unfit(verb, c, o)
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
		return Done, err
	})
	if _, panicked := isPanic(err); panicked {
		said = err
	}
	r.answers(pass, verb, said)
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
	case verb == protocol.Create.String() && o.State == Absent:
		return errors.New("the External's answer to create is Absent, and no error: where nothing was made, return an error that says why, Terminal or NoEffect")
	case verb == protocol.Create.String() && o.State == Closed && r.m.fencer == nil:
		return errors.New("the External's answer to create is Closed, and it is no Fencer, so that nobody closes references: where nothing was made, return an error that says why, Terminal or NoEffect")
	case o.State > Ambiguous:
		return fmt.Errorf("the External's answer to %s has a State that there is not, %s; set one", verb, o.State)
	case o.State < Absent:
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
	s.Own = r.c.incarnationOf(o.Reference, claim, looked)
	if adopt := r.asked.Adopt; adopt != "" && adopt != claim.Answered.Adopt && o.ID == adopt && s.Own == 0 {
		s.Refused = r.refuses(o)
	}
	return s
}

// incarnationOf is the incarnation whose derived reference that is; 0 where it is
// none of this object's.
func (c *controller[T]) incarnationOf(reference string, claim protocol.Claim, looked int) int {
	if reference == "" {
		return 0
	}
	id := c.identity()
	for n := claim.Incarnation; n <= max(claim.Incarnation, claim.Next, looked)+ownAhead; n++ { // most often the first
		if id.Reference(claim, n) == reference {
			return n
		}
	}
	for n := claim.Incarnation - 1; n > 0; n-- {
		if id.Reference(claim, n) == reference {
			return n
		}
	}
	return 0
}

// claimNow is the claim that references derive from: the stored one, or what it
// would be.
func (r *managing[T]) claimNow() protocol.Claim { return protocol.Effective(r.decided) }

// look observes, by id or by reference.
func (r *managing[T]) look(ctx context.Context, s protocol.Step) (ending, bool) {
	if e, deferred := r.enter(ctx); deferred {
		return e, true
	}
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
	return ending{}, false
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
	r.id = r.idOf(r.obj)
	*r.id = id
}

// learn puts an id that was seen into status: that of the claim's own incarnation,
// while the object is wanted and no replacement is on.
func (r *managing[T]) learn(s protocol.Sight, claim protocol.Claim) {
	v := r.decided
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
	if s.Do == protocol.Fence && s.ID != "" {
		ref = r.full[s.ID].Reference // that of what is to be adopted
		if ref == "" {               // it has none, under which something could land
			r.looks, r.looked = nil, time.Now()
			r.answered(s, r.full[s.ID], r.sight(r.full[s.ID], claim, s.Incarnation), claim)
			return ending{}, false
		}
	}
	if e, deferred := r.enter(ctx); deferred {
		return e, true
	}
	if err := r.c.env.held(); err != nil { // right before the send
		return r.endingOf(Done, NoEffect(err)), true
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
		r.memory.unanswered = err.Error()
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
