package tether

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/queue"
)

// BudgetOptions configure a [Budget]. The zero value works; the defaults stand in
// brackets.
type BudgetOptions struct {
	// Name is the endpoint's, in metrics and logs [the first controller's that has
	// the budget].
	Name string
	// Rate is how many calls a second the endpoint bears [10].
	Rate float64
	// Burst is how many calls may be made at once, after a time in which there were
	// fewer [Rate, and at least 1].
	Burst int
	// Failures is how many calls in a row without an answer, not all of one object,
	// say that the endpoint is not available [5].
	Failures int
	// MinPause and MaxPause bound for how long nothing is sent to it then, until one
	// pass tries whether it answers again [1 s, 1 min].
	MinPause, MaxPause time.Duration
}

func (o BudgetOptions) withDefaults() BudgetOptions {
	if o.Rate == 0 {
		o.Rate = 10
	}
	if o.Burst == 0 {
		o.Burst = max(1, int(min(o.Rate, math.MaxInt32)))
	}
	if o.Failures == 0 {
		o.Failures = 5
	}
	if o.MinPause == 0 {
		o.MinPause = time.Second
		if o.MaxPause > 0 {
			o.MinPause = min(o.MinPause, o.MaxPause)
		}
	}
	if o.MaxPause == 0 {
		o.MaxPause = max(time.Minute, o.MinPause)
	}
	return o
}

// mistakes are all that is wrong, each with field and remedy.
func (o BudgetOptions) mistakes() []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !(o.Rate >= 0) || math.IsInf(o.Rate, 0) { // NaN is not at least 0
		say("BudgetOptions.Rate: %v is no rate; give calls per second, or 0 for 10", o.Rate)
	}
	if o.Burst < 0 || o.Failures < 0 {
		say("BudgetOptions: Burst %d or Failures %d is negative; give positive numbers, or 0 for the defaults", o.Burst, o.Failures)
	}
	if o.MinPause < 0 || o.MaxPause < 0 {
		say("BudgetOptions: MinPause %v or MaxPause %v is negative; give positive durations, or 0 for the defaults", o.MinPause, o.MaxPause)
	}
	if o.MinPause > o.MaxPause && o.MaxPause > 0 {
		say("BudgetOptions.MinPause: %v is more than MaxPause, %v; swap them", o.MinPause, o.MaxPause)
	}
	return wrong
}

// Budget is what one endpoint outside can bear, shared by all controllers whose
// Options have the same one, of one Run or of several.
//
// In any time no more calls are begun than Burst and Rate for each second of it.
// Work waits for its turn in the controllers' queues, and holds no worker meanwhile:
// what people changed goes before retries, and those before polls, over all
// controllers, with the aging of one queue. Nothing is dropped, no attempt is counted,
// and no backoff grows. Calls that a pass makes beyond its first go before new passes.
//
// A [RetryAfter], or the reason RateLimited, halves the rate, at most once a second,
// and not below a 32nd; each call that goes well adds to it, so that it is back
// within a minute of use. What an endpoint asks of one object holds up no other.
//
// Where several calls in a row have no answer (an unknown outcome, or the reason
// Unreachable or Unavailable), nothing is sent any more until one pass has tried and
// was answered; then the rate begins low. A refusal is an answer. Objects that people
// change meanwhile say so: Reconciling, EndpointUnavailable.
//
// The calls of an [External] are counted by the library. A pass of a controller
// made by [New] is one call, or the calls that it makes with [Budget.Do]. A List of a
// [Lister] is one. A Budget may be used concurrently, and starts nothing.
type Budget struct {
	given BudgetOptions
	opts  BudgetOptions // with defaults
	inner *queue.Budget

	mu   sync.Mutex // guards name
	name string
}

// NewBudget makes a Budget. What is wrong with the options is told by [Run].
func NewBudget(o BudgetOptions) *Budget {
	b := &Budget{given: o, opts: o.withDefaults(), name: o.Name}
	valid := b.opts
	if len(o.mistakes()) > 0 {
		valid = BudgetOptions{}.withDefaults() // Run refuses it
	}
	b.inner = queue.NewBudget(queue.BudgetOptions{
		Rate: valid.Rate, Burst: valid.Burst, Failures: valid.Failures, MinPause: valid.MinPause, MaxPause: valid.MaxPause,
	})
	return b
}

// Do makes a call to the endpoint, for a [Reconciler] whose passes make several, or
// for what calls outside of a pass. It waits for the budget, as long as half of the
// time that ctx has left; what call returns, in the words of this package, tells how
// the endpoint is, and is returned. Where call was not made, since the wait would be
// too long or the endpoint is not available, the error is a [NoEffect]: a pass that
// returns it is deferred, and no failure. A nil Budget makes the call at once.
//
// The calls of an [External] are no matter for Do.
func (b *Budget) Do(ctx context.Context, call func(context.Context) error) error {
	if b == nil {
		return call(ctx)
	}
	permit, who := new(queue.Permit), ""
	if p, ok := passFrom(ctx); ok && p.permit(b) != nil {
		permit, who = p.permit(b), p.who()
	} else {
		defer b.inner.Leave(permit)
	}
	var by time.Time
	if deadline, ok := ctx.Deadline(); ok {
		by = time.Now().Add(time.Until(deadline) / 2)
	}
	if d := b.inner.Enter(ctx, permit, by); d != nil {
		return NoEffect(&deferredError{budget: b, why: d})
	}
	err := call(ctx)
	b.told(ctx, permit, answerOf(ctx, false, err), who)
	return err
}

// deferredError is a call that was not made.
type deferredError struct {
	budget *Budget
	why    *queue.Deferral
}

func (e *deferredError) Error() string { return e.why.Error() }
func (e *deferredError) Unwrap() error { return e.why }

// The reasons that speak of the endpoint. [FromHTTP] gives them.
const (
	reasonRateLimited = "RateLimited"
	reasonUnavailable = "Unavailable"
	reasonUnreachable = "Unreachable"
)

// answerOf is what the end of a call tells of the endpoint. ctx is the pass's. That a
// read had no effect tells nothing.
func answerOf(ctx context.Context, read bool, err error) queue.Answer {
	o := outcomeOf(err)
	_, panicked := isPanic(err)
	away := o.reason == reasonUnavailable || o.reason == reasonUnreachable
	switch {
	case err == nil:
		return queue.Healthy
	case panicked, errors.Is(ctx.Err(), context.Canceled):
		return queue.NoWord
	case o.later && away:
		return queue.FewerToo
	case o.later, o.reason == reasonRateLimited:
		return queue.TooMany
	case away, notSent(err):
		return queue.Failed
	case o.terminal, o.noEffect && !(read && o.reason == ""):
		return queue.Healthy
	}
	return queue.Failed
}

// told notes how a call ended, and logs what changed by it.
func (b *Budget) told(ctx context.Context, p *queue.Permit, a queue.Answer, who string) {
	moves := b.inner.Exit(p, a, who)
	if moves == (queue.Moves{}) {
		return
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("budget", b.called())
	if moves.Slowed {
		log.Info("the endpoint asks for fewer calls, and gets them")
	}
	if moves.Opened {
		log.Info("the endpoint does not answer; what calls it waits until it does", "failures", b.opts.Failures)
	}
	if moves.Closed {
		log.Info("the endpoint answers again; calls begin at a low rate", "after", moves.After.Round(time.Millisecond).String())
	}
	if moves.Restored {
		log.Info("calls are at the full rate again", "perSecond", b.opts.Rate)
	}
}

func (b *Budget) called() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.name
}

// nameAfter names a budget that was given no name.
func (b *Budget) nameAfter(controller string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.name = orElse(b.name, controller)
}

// meets puts a budget among others, by its name, and tells whether another one has
// that as well.
func (b *Budget) meets(others map[string]*Budget, controller string) (name string, twice bool) {
	if b == nil {
		return "", false
	}
	name = orElse(b.called(), controller)
	other := others[name]
	others[name] = b
	return name, other != nil && other != b
}

func (b *Budget) state() BudgetState {
	s := b.inner.Stats()
	return BudgetState{Name: b.called(), Rate: s.Rate, Tokens: s.Tokens, Breaker: s.Breaker, Deferred: s.Deferred}
}

// mistakes are those of the budget, and of its use by passes that may take so
// long.
func (b *Budget) mistakes(timeout time.Duration) []string {
	wrong := b.given.mistakes()
	if least := time.Duration(float64(callsOfAPass) / b.opts.Rate * float64(time.Second)); len(wrong) == 0 && timeout > 0 && timeout < least {
		wrong = append(wrong, fmt.Sprintf("Options.Timeout: in %v the Budget allows fewer than %d calls, which one pass may need; give at least %v, or raise BudgetOptions.Rate, %v",
			timeout, callsOfAPass, least.Round(time.Second), b.opts.Rate))
	}
	return wrong
}

// callsOfAPass is how many calls a pass must be able to make in its time.
const callsOfAPass = 4

// permit is that of a pass for calls to b; nil where the pass was admitted by another
// budget, or by none.
func (p *pass[T]) permit(b *Budget) *queue.Permit {
	if p.c.opts.Budget != b {
		return nil
	}
	return p.item.Permit
}

func (p *pass[T]) who() string { return p.c.name() + "/" + p.key.String() }

// enter asks the budget before a call of an External. Where it may not be made, the
// pass ends. A call is begun only while it has its time, or half of the pass's rest.
func (r *managing[T]) enter(ctx context.Context) (ending, bool) {
	b := r.c.opts.Budget
	if b == nil {
		return ending{}, false
	}
	var by time.Time
	if deadline, ok := ctx.Deadline(); ok {
		rest := time.Until(deadline)
		by = time.Now().Add(max(rest-r.m.opts.CallTimeout, rest/2))
	}
	if d := b.inner.Enter(ctx, r.item.Permit, by); d != nil {
		return r.deferred(&deferredError{b, d}), true
	}
	return ending{}, false
}

// answers tells the budget how a call of an External ended.
func (r *managing[T]) answers(ctx context.Context, verb string, err error) {
	b := r.c.opts.Budget
	if b == nil {
		return
	}
	a := answerOf(ctx, verb == verbObserve, err)
	if err != nil && r.c.env.held() != nil {
		a = queue.NoWord
	}
	b.told(ctx, r.item.Permit, a, r.who())
}

// asksForLess tells the budget of a Retry-After that a Reconciler returned.
func (p *pass[T]) asksForLess(ctx context.Context, err error) {
	b := p.c.opts.Budget
	if b != nil && outcomeOf(err).later && !b.inner.Called(p.item.Permit) {
		b.told(ctx, p.item.Permit, queue.TooMany, p.who())
	}
}

// The reasons of a pass that waits for a budget.
const (
	reasonEndpointUnavailable = "EndpointUnavailable"
	reasonOverBudget          = "OverBudget"
)

// deferred is the ending of a pass that may not make a call. The object says so
// where somebody waits for it; what was found as wanted before stays so.
func (p *pass[T]) deferred(err *deferredError) ending {
	reason, message := reasonOverBudget, "the endpoint has to be called more slowly; this goes on by itself"
	if err.why.Endpoint {
		reason = reasonEndpointUnavailable
		message = fmt.Sprintf("the endpoint has not answered since %s; this goes on by itself when it does", err.why.Since.UTC().Format(time.RFC3339))
	}
	e := ending{name: "deferred", err: err, outcome: queue.Outcome{Kind: queue.Defer}, verdict: verdict{keep: true, reason: reason, message: message}}
	if err.budget != p.c.opts.Budget {
		e.outcome.Delay = err.why.After
	}
	seen := p.c.status.has() && p.c.status.getObserved(p.seen) == p.seen.GetGeneration()
	if !seen || p.seen.GetDeletionTimestamp() != nil {
		e.verdict.keep, e.verdict.ready, e.verdict.reconciling = false, metav1.ConditionUnknown, true
	}
	return e
}

// away is why a pass may call nothing while the endpoint does not answer.
func (b *Budget) away() *deferredError {
	return &deferredError{b, b.inner.Away()}
}

// budgetsOf are the budgets of controllers, each once.
func budgetsOf(engines []engine) []*Budget {
	var all []*Budget
	for _, e := range engines {
		if b := e.budget(); b != nil && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}
