package fake

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// APIFaultKind is what goes wrong.
type APIFaultKind string

// The faults of an API server. Of the faults that meet one request, every latency
// counts, the first that keeps it from being carried out, and the first that
// spoils the answer.
const (
	// APILatency carries the request out Delay later.
	APILatency APIFaultKind = "latency"
	// APIStale answers reads from what was there when the fault was injected, as a
	// replica that lags does: those that ask for resourceVersion 0, or for one that
	// was there already. A read of the most recent is never stale.
	APIStale APIFaultKind = "stale"

	// These keep the request from being carried out.

	// APITooManyRequests answers 429, with RetryAfter.
	APITooManyRequests APIFaultKind = "too-many-requests"
	// APIInternal answers 500.
	APIInternal APIFaultKind = "internal"
	// APIUnavailable answers 503, with RetryAfter.
	APIUnavailable APIFaultKind = "unavailable"
	// APITimeout answers 504.
	APITimeout APIFaultKind = "timeout"
	// APIConflict answers 409, as to a write of an old version: a conflict storm.
	APIConflict APIFaultKind = "conflict"
	// APIForbidden answers 403, as if the right had been withdrawn.
	APIForbidden APIFaultKind = "forbidden"
	// APIUnauthorized answers 401, as if the token had expired.
	APIUnauthorized APIFaultKind = "unauthorized"
	// APINotServed answers 404, as if the definition had been removed.
	APINotServed APIFaultKind = "not-served"
	// APIGone answers 410, as if the version had been forgotten.
	APIGone APIFaultKind = "gone"
	// APICutBefore cuts the connection and carries nothing out.
	APICutBefore APIFaultKind = "cut-before"

	// These spoil the answer to a request that was carried out.

	// APICutAfter cuts the connection: the answer is lost.
	APICutAfter APIFaultKind = "cut-after"
	// APIInternalAfter answers 500 to what has taken effect.
	APIInternalAfter APIFaultKind = "internal-after"
	// APITimeoutAfter answers 504 to what has taken effect.
	APITimeoutAfter APIFaultKind = "timeout-after"
	// APILateAnswer answers Delay after it has taken effect.
	APILateAnswer APIFaultKind = "late-answer"
	// APITruncated sends half of the answer and cuts the connection.
	APITruncated APIFaultKind = "truncated"

	// These meet the events of watches: Nth, Times and Probability count events, and
	// a name is that of the object.

	// APIWatchCut cuts the watch before the event, or at once where no event comes.
	APIWatchCut APIFaultKind = "watch-cut"
	// APIWatchStall sends nothing from here on, and leaves the connection open.
	APIWatchStall APIFaultKind = "watch-stall"
	// APIWatchExpired ends the watch with 410.
	APIWatchExpired APIFaultKind = "watch-expired"
	// APIWatchDelay gives the event Delay after its commit; those behind it wait.
	APIWatchDelay APIFaultKind = "watch-delay"
	// APIWatchDuplicate gives the event twice.
	APIWatchDuplicate APIFaultKind = "watch-duplicate"
	// APIWatchDrop leaves the event out: only a list shows what happened.
	APIWatchDrop APIFaultKind = "watch-drop"
)

// phase says where on a request's way a fault is.
func (k APIFaultKind) phase() faultPhase {
	switch k {
	case APILatency:
		return phaseDelay
	case APIStale:
		return phaseStale
	case APITooManyRequests, APIInternal, APIUnavailable, APITimeout, APIConflict, APIForbidden, APIUnauthorized, APINotServed, APIGone, APICutBefore:
		return phaseInstead
	case APICutAfter, APIInternalAfter, APITimeoutAfter, APILateAnswer, APITruncated:
		return phaseAnswer
	case APIWatchCut, APIWatchStall, APIWatchExpired, APIWatchDelay, APIWatchDuplicate, APIWatchDrop:
		return phaseWatch
	}
	return phaseNone
}

func (k APIFaultKind) delays() bool {
	return k == APILatency || k == APILateAnswer || k == APIWatchDelay
}

// APIFaultKinds is every kind of fault. The slice is the caller's.
func APIFaultKinds() []APIFaultKind {
	return []APIFaultKind{
		APILatency, APIStale, APITooManyRequests, APIInternal, APIUnavailable, APITimeout, APIConflict, APIForbidden, APIUnauthorized,
		APINotServed, APIGone, APICutBefore, APICutAfter, APIInternalAfter, APITimeoutAfter, APILateAnswer, APITruncated,
		APIWatchCut, APIWatchStall, APIWatchExpired, APIWatchDelay, APIWatchDuplicate, APIWatchDrop,
	}
}

// APIFault is something that goes wrong with some requests. Empty fields of the
// matcher fit everything.
type APIFault struct {
	Kind APIFaultKind

	// Verb, User, Namespace and Name are those of the request; the name of an object
	// to be created is known where its body has it.
	Verb, User, Namespace, Name string
	// Resource is as RBAC names it: tickets, or tickets/status for the subresource
	// alone. Group is its API group.
	Resource, Group string

	// Nth lets the first Nth-1 that fit pass; with it, Times is 1 by default.
	Nth int
	// Times is how many are met at most [all].
	Times int
	// Probability is the share of those that is met, drawn by the seed [1].
	Probability float64
	// After and For are when it begins, from the injection, and how long it lasts
	// [at once; until it is removed].
	After, For time.Duration

	// Delay is that of latencies, late answers and delayed events.
	Delay time.Duration
	// RetryAfter is in the answer of 429 and 503, in whole seconds [none; 429: 1s].
	RetryAfter time.Duration
}

// Validate says what is wrong with f, and names each field.
func (f APIFault) Validate() error {
	err := f.rule().validate(APIFaultKinds())
	if f.Kind.phase() == phaseWatch && f.Verb != "" && f.Verb != "watch" {
		err = errors.Join(err, fmt.Errorf("verb: %.40q never has events: leave it out, or say watch", f.Verb))
	}
	return err
}

func (f APIFault) rule() faultRule[APIFaultKind] {
	return faultRule[APIFaultKind]{
		kind: f.Kind, nth: f.Nth, times: f.Times, probability: f.Probability,
		after: f.After, lasts: f.For, delay: f.Delay, retryAfter: f.RetryAfter,
	}
}

// fits says whether the fault is about a request, or about an event. On a quiet
// watch only what wants no event of its own can happen.
func (f APIFault) fits(sub apiSubject) bool {
	if sub.quiet {
		if f.Name != "" || f.Nth > 1 || f.Probability > 0 && f.Probability < 1 {
			return false
		}
		switch f.Kind {
		case APIWatchCut, APIWatchStall, APIWatchExpired:
		default:
			return false
		}
	}
	is := func(want, got string) bool { return want == "" || want == got }
	return (f.Kind.phase() == phaseWatch) == sub.event &&
		is(f.Verb, sub.verb) && is(f.User, sub.user) && is(f.Group, sub.group) && is(f.Resource, sub.resource) &&
		is(f.Namespace, sub.namespace) && is(f.Name, sub.name)
}

// apiSubject is what faults are matched against.
type apiSubject struct {
	verb, user, group, resource, namespace, name string
	event                                        bool // of a watch
	quiet                                        bool // a watch on which nothing happens
}

func (s apiSubject) about() string {
	return strings.Join([]string{s.verb, s.resource, s.namespace, s.name}, " ")
}

type apiFaults = faultSet[APIFaultKind, apiSubject, APIFault]

// Inject switches a fault on. It panics where [APIFault.Validate] says that the
// fault is wrong: that is a mistake in the test.
func (s *APIServer) Inject(f APIFault) *InjectedFault {
	return &InjectedFault{s.faults.inject(f, s.store.Version())}
}

// ClearFaults removes every fault.
func (s *APIServer) ClearFaults() { s.faults.clear() }
