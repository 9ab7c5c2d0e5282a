package fake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetherkube/tether/booking"
)

// BookingFaultKind is what goes wrong.
type BookingFaultKind string

// The faults of a booking server. Of the faults that meet one request, every
// latency counts, the first that keeps it from being carried out, and the first
// that spoils the answer.
const (
	// BookingLatency carries the request out Delay later, also where the client has
	// gone. Its key is running meanwhile.
	BookingLatency BookingFaultKind = "latency"

	// These keep the request from being carried out.

	// BookingRateLimit answers 429, with RetryAfter.
	BookingRateLimit BookingFaultKind = "rate-limit"
	// BookingInternal answers 500.
	BookingInternal BookingFaultKind = "internal"
	// BookingUnavailable answers 503. With After and For it is an outage.
	BookingUnavailable BookingFaultKind = "unavailable"
	// BookingCutBefore closes the connection without an answer, before the commit.
	BookingCutBefore BookingFaultKind = "cut-before"
	// BookingLateCommit closes the connection without an answer, and carries the
	// request out Delay later, as one that was held up on its way.
	BookingLateCommit BookingFaultKind = "late-commit"
	// BookingProblem answers Problem. It is kept under the key as if it were true.
	BookingProblem BookingFaultKind = "problem"

	// These let the request be carried out, and spoil its answer.

	// BookingCutAfter closes the connection without an answer, after the commit.
	BookingCutAfter BookingFaultKind = "cut-after"
	// BookingInternalAfter answers 500 after the commit.
	BookingInternalAfter BookingFaultKind = "internal-after"
	// BookingLateAnswer commits at once and answers Delay later.
	BookingLateAnswer BookingFaultKind = "late-answer"
	// BookingTruncated cuts the answer in the middle of its body.
	BookingTruncated BookingFaultKind = "truncated"
	// BookingMalformed answers what is not JSON.
	BookingMalformed BookingFaultKind = "malformed"
	// BookingWrongType answers HTML, with the status of the true answer.
	BookingWrongType BookingFaultKind = "wrong-type"
	// BookingHuge answers a JSON object of 10 MB.
	BookingHuge BookingFaultKind = "huge"
)

type faultPhase int

const (
	phaseNone faultPhase = iota
	phaseDelay
	phaseInstead // of carrying the request out
	phaseAnswer
	phaseWatch
)

func (k BookingFaultKind) phase() faultPhase {
	switch k {
	case BookingLatency:
		return phaseDelay
	case BookingRateLimit, BookingInternal, BookingUnavailable, BookingCutBefore, BookingLateCommit, BookingProblem:
		return phaseInstead
	case BookingCutAfter, BookingInternalAfter, BookingLateAnswer, BookingTruncated, BookingMalformed, BookingWrongType, BookingHuge:
		return phaseAnswer
	}
	return phaseNone
}

// BookingFault is a fault and the requests that it meets. Every condition that is
// set must hold; with none, it meets every request.
type BookingFault struct {
	Kind BookingFaultKind

	Op        booking.Operation // any
	Reference string            // of the booking that the request is about
	BookingID string
	Caller    string
	// Nth lets the requests before the nth that fits pass [1]. With Times unset it
	// then meets that one only.
	Nth int
	// Times is how many requests it meets [without bound].
	Times int
	// Probability is the share of the requests that it meets [1], drawn by the
	// server's seed from operation, reference and number, not from the order in
	// which requests about different references arrive.
	Probability float64
	// After and For bound the time in which it acts, counted from Inject [at once,
	// without end].
	After, For time.Duration

	Delay      time.Duration // for latency, late-commit and late-answer, which want it
	RetryAfter time.Duration // for rate-limit [1s], internal and unavailable [none]; in whole seconds
	Problem    booking.Kind  // for problem, which wants it
}

// Validate says what is wrong with f, and names the field.
func (f BookingFault) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.Kind.phase() == phaseNone {
		bad("kind: %.40q is unknown: want one of %v", f.Kind, BookingFaultKinds())
	}
	if f.Op != "" && !f.Op.Valid() {
		bad("op: %.40q is unknown: want create, get, list, change, cancel or close", f.Op)
	}
	if f.Nth < 0 || f.Times < 0 {
		bad("nth and times: want numbers from 1 on, or 0 for the default")
	}
	if !(f.Probability >= 0 && f.Probability <= 1) {
		bad("probability: %v is not a share: want more than 0 and at most 1", f.Probability)
	}
	if f.After < 0 || f.For < 0 || f.Delay < 0 || f.RetryAfter < 0 {
		bad("after, for, delay and retry-after: want no negative duration")
	}
	switch f.Kind {
	case BookingLatency, BookingLateCommit, BookingLateAnswer:
		if f.Delay <= 0 {
			bad("delay: is missing: %s wants one, as 2s", f.Kind)
		}
	case BookingProblem:
		if !slices.Contains(booking.ProblemKinds(), f.Problem) {
			bad("problem: %.40q is unknown: want one of %s", string(f.Problem), problemNames())
		}
	}
	if f.Problem != "" && f.Kind != BookingProblem {
		bad("problem: goes with kind problem only")
	}
	return errors.Join(errs...)
}

// problemNames is for people: a Kind printed as it is reads as its title.
func problemNames() string {
	var names []string
	for _, k := range booking.ProblemKinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// BookingFaultKinds is every kind of fault. The slice is the caller's.
func BookingFaultKinds() []BookingFaultKind {
	return []BookingFaultKind{
		BookingLatency, BookingRateLimit, BookingInternal, BookingUnavailable, BookingCutBefore, BookingLateCommit, BookingProblem,
		BookingCutAfter, BookingInternalAfter, BookingLateAnswer, BookingTruncated, BookingMalformed, BookingWrongType, BookingHuge,
	}
}

// InjectedFault is a fault that a server has.
type InjectedFault struct {
	set    *bookingFaults
	fault  BookingFault
	index  uint64 // of its injection: makes two equal faults draw differently
	since  time.Time
	fitted int            // requests that fitted; under set.mu
	met    int            // requests that it met; under set.mu
	drawn  map[string]int // number of draws by operation and reference; under set.mu
}

// Remove takes the fault back. It may be called more than once.
func (i *InjectedFault) Remove() { i.set.remove(i) }

// Met is how many requests the fault has met.
func (i *InjectedFault) Met() int {
	i.set.mu.Lock()
	defer i.set.mu.Unlock()
	return i.met
}

// Inject switches a fault on. It panics where [BookingFault.Validate] says that
// the fault is wrong: that is a mistake in the test.
func (s *BookingServer) Inject(f BookingFault) *InjectedFault {
	if err := f.Validate(); err != nil {
		panic(fmt.Sprintf("fake: Inject: %v", err))
	}
	return s.faults.add(f)
}

// ClearFaults removes every fault.
func (s *BookingServer) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = nil
}

type bookingFaults struct {
	seed uint64

	mu     sync.Mutex // guards what follows, and the counters of every fault
	count  uint64
	active []*InjectedFault // in the order of injection
}

func (fs *bookingFaults) add(f BookingFault) *InjectedFault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.count++
	i := &InjectedFault{set: fs, fault: f, index: fs.count, since: time.Now(), drawn: map[string]int{}}
	fs.active = append(fs.active, i)
	return i
}

func (fs *bookingFaults) remove(i *InjectedFault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.active = slices.DeleteFunc(fs.active, func(a *InjectedFault) bool { return a == i })
}

// met is the faults that one request meets.
type met struct {
	kinds   []BookingFaultKind
	delay   time.Duration
	instead *BookingFault
	answer  *BookingFault
}

// subject is what faults are matched against.
type subject struct {
	op                           booking.Operation
	reference, bookingID, caller string
}

func (fs *bookingFaults) meet(sub subject, now time.Time) met {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var m met
	for _, i := range fs.active {
		if !i.meetsLocked(sub, now) {
			continue
		}
		f := &i.fault
		m.kinds = append(m.kinds, f.Kind)
		switch phase := f.Kind.phase(); {
		case phase == phaseDelay:
			m.delay += f.Delay
		case phase == phaseInstead && m.instead == nil:
			m.instead = f
		case phase == phaseAnswer && m.answer == nil:
			m.answer = f
		}
	}
	return m
}

func (i *InjectedFault) meetsLocked(sub subject, now time.Time) bool {
	f := &i.fault
	age := now.Sub(i.since)
	switch {
	case f.Op != "" && f.Op != sub.op,
		f.Reference != "" && f.Reference != sub.reference,
		f.BookingID != "" && f.BookingID != sub.bookingID,
		f.Caller != "" && f.Caller != sub.caller,
		age < f.After,
		f.For > 0 && age >= f.After+f.For:
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

func (i *InjectedFault) drawLocked(sub subject) bool {
	if i.fault.Probability == 0 || i.fault.Probability == 1 {
		return true
	}
	about := string(sub.op) + " " + sub.reference
	i.drawn[about]++
	sum := hash(i.set.seed, "fault", fmt.Sprint(i.index), about, fmt.Sprint(i.drawn[about]))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11)/(1<<53) < i.fault.Probability
}
