package fake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	case APILatency, APIStale:
		return phaseDelay
	case APITooManyRequests, APIInternal, APIUnavailable, APITimeout, APIConflict, APIForbidden, APIUnauthorized, APINotServed, APIGone, APICutBefore:
		return phaseInstead
	case APICutAfter, APIInternalAfter, APITimeoutAfter, APILateAnswer, APITruncated:
		return phaseAnswer
	case APIWatchCut, APIWatchStall, APIWatchExpired, APIWatchDelay, APIWatchDuplicate, APIWatchDrop:
		return phaseWatch
	}
	return phaseNone
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
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.Kind.phase() == phaseNone {
		var all []string
		for _, k := range APIFaultKinds() {
			all = append(all, string(k))
		}
		bad("kind: %.40q is unknown: want one of %s", string(f.Kind), strings.Join(all, ", "))
	}
	if f.Nth < 0 || f.Times < 0 {
		bad("nth and times: want no negative numbers")
	}
	if !(f.Probability >= 0 && f.Probability <= 1) {
		bad("probability: %v is not a share: want more than 0 and at most 1", f.Probability)
	}
	if f.After < 0 || f.For < 0 || f.Delay < 0 || f.RetryAfter < 0 {
		bad("after, for, delay and retry-after: want no negative duration")
	}
	switch f.Kind {
	case APILatency, APILateAnswer, APIWatchDelay:
		if f.Delay <= 0 {
			bad("delay: is missing: %s wants one, as 2s", f.Kind)
		}
	}
	if f.Kind.phase() == phaseWatch && f.Verb != "" && f.Verb != "watch" {
		bad("verb: %.40q never has events: leave it out, or say watch", f.Verb)
	}
	return errors.Join(errs...)
}

// InjectedAPIFault is a fault that a server has.
type InjectedAPIFault struct {
	set    *apiFaults
	fault  APIFault
	index  uint64 // of its injection: makes two equal faults draw differently
	since  time.Time
	at     uint64         // the server's version at the injection
	fitted int            // those that fitted; under set.mu
	met    int            // those that it met; under set.mu
	drawn  map[string]int // number of draws by subject; under set.mu
}

// Remove takes the fault back. It may be called more than once.
func (i *InjectedAPIFault) Remove() { i.set.remove(i) }

// Met is how many requests, or events of watches, the fault has met.
func (i *InjectedAPIFault) Met() int {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	return i.met
}

// Inject switches a fault on. It panics where [APIFault.Validate] says that the
// fault is wrong: that is a mistake in the test.
func (s *APIServer) Inject(f APIFault) *InjectedAPIFault {
	if err := f.Validate(); err != nil {
		panic(fmt.Sprintf("fake: Inject: %v", err))
	}
	return s.faults.add(f, s.store.Version())
}

// ClearFaults removes every fault.
func (s *APIServer) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = nil
}

type apiFaults struct {
	seed uint64

	mu      sync.Mutex // guards what follows, and the counters of every fault
	count   uint64
	active  []*InjectedAPIFault // in the order of injection
	changed chan struct{}       // closed at the next injection; nil while nobody waits
}

func newAPIFaults(seed uint64) *apiFaults { return &apiFaults{seed: seed} }

func (fs *apiFaults) add(f APIFault, at uint64) *InjectedAPIFault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.count++
	i := &InjectedAPIFault{set: fs, fault: f, index: fs.count, since: time.Now(), at: at, drawn: map[string]int{}}
	fs.active = append(fs.active, i)
	if fs.changed != nil {
		close(fs.changed)
		fs.changed = nil
	}
	return i
}

// stir is closed when a fault is injected: a quiet watch is to look again.
func (fs *apiFaults) stir() <-chan struct{} {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.changed == nil {
		fs.changed = make(chan struct{})
	}
	return fs.changed
}

func (fs *apiFaults) remove(i *InjectedAPIFault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.active = slices.DeleteFunc(fs.active, func(a *InjectedAPIFault) bool { return a == i })
}

// apiSubject is what faults are matched against.
type apiSubject struct {
	verb, user, group, resource, namespace, name string
	event                                        bool // of a watch
	quiet                                        bool // a watch on which nothing happens
}

// apiMet is the faults that one request or event meets.
type apiMet struct {
	kinds   []APIFaultKind
	delay   time.Duration
	staleAt uint64
	instead *APIFault
	answer  *APIFault
	watch   []APIFault
}

func (fs *apiFaults) meet(sub apiSubject, now time.Time) apiMet {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var m apiMet
	for _, i := range fs.active {
		phase := i.fault.Kind.phase()
		if (phase == phaseWatch) != sub.event || !i.meetsLocked(sub, now) {
			continue
		}
		f := &i.fault
		m.kinds = append(m.kinds, f.Kind)
		switch {
		case f.Kind == APIStale:
			m.staleAt = i.at
		case phase == phaseDelay:
			m.delay += f.Delay
		case phase == phaseInstead && m.instead == nil:
			m.instead = f
		case phase == phaseAnswer && m.answer == nil:
			m.answer = f
		case phase == phaseWatch:
			m.watch = append(m.watch, *f)
		}
	}
	return m
}

func (i *InjectedAPIFault) meetsLocked(sub apiSubject, now time.Time) bool {
	f := &i.fault
	age := now.Sub(i.since)
	fits := func(want, got string) bool { return want == "" || want == got }
	if !fits(f.Verb, sub.verb) || !fits(f.User, sub.user) || !fits(f.Group, sub.group) || !fits(f.Resource, sub.resource) ||
		age < f.After || f.For > 0 && age >= f.After+f.For {
		return false
	}
	// On a quiet watch only what wants no event of its own can happen.
	if sub.quiet {
		if f.Name != "" || f.Nth > 1 || f.Probability > 0 && f.Probability < 1 {
			return false
		}
		switch f.Kind {
		case APIWatchCut, APIWatchStall, APIWatchExpired:
		default:
			return false
		}
	} else if !fits(f.Name, sub.name) {
		return false
	}
	if f.Namespace != "" && f.Namespace != sub.namespace {
		return false
	}
	i.fitted++
	times := f.Times
	if times == 0 && f.Nth > 0 {
		times = 1
	}
	if i.fitted < f.Nth || (times > 0 && i.met >= times) || !i.drawLocked(sub) {
		return false
	}
	i.met++
	return true
}

func (i *InjectedAPIFault) drawLocked(sub apiSubject) bool {
	if i.fault.Probability == 0 || i.fault.Probability == 1 {
		return true
	}
	about := strings.Join([]string{sub.verb, sub.resource, sub.namespace, sub.name}, " ")
	i.drawn[about]++
	sum := hash(i.set.seed, "api fault", fmt.Sprint(i.index), about, fmt.Sprint(i.drawn[about]))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11)/(1<<53) < i.fault.Probability
}
