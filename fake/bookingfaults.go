package fake

import (
	"errors"
	"fmt"
	"slices"
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

// phase says where on a request's way a fault is.
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

func (k BookingFaultKind) delays() bool {
	return k == BookingLatency || k == BookingLateCommit || k == BookingLateAnswer
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
	errs := []error{f.rule().validate(BookingFaultKinds())}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if f.Op != "" && !f.Op.Valid() {
		bad("op: %.40q is unknown: want create, get, list, change, cancel or close", f.Op)
	}
	if f.Kind == BookingProblem && !slices.Contains(booking.ProblemKinds(), f.Problem) {
		bad("problem: %.40q is unknown: want one of %s", string(f.Problem), listed(booking.ProblemKinds()))
	}
	if f.Problem != "" && f.Kind != BookingProblem {
		bad("problem: goes with kind problem only")
	}
	return errors.Join(errs...)
}

// BookingFaultKinds is every kind of fault. The slice is the caller's.
func BookingFaultKinds() []BookingFaultKind {
	return []BookingFaultKind{
		BookingLatency, BookingRateLimit, BookingInternal, BookingUnavailable, BookingCutBefore, BookingLateCommit, BookingProblem,
		BookingCutAfter, BookingInternalAfter, BookingLateAnswer, BookingTruncated, BookingMalformed, BookingWrongType, BookingHuge,
	}
}

func (f BookingFault) rule() faultRule[BookingFaultKind] {
	return faultRule[BookingFaultKind]{
		kind: f.Kind, nth: f.Nth, times: f.Times, probability: f.Probability,
		after: f.After, lasts: f.For, delay: f.Delay, retryAfter: f.RetryAfter,
	}
}

func (f BookingFault) fits(sub bookingSubject) bool {
	return (f.Op == "" || f.Op == sub.op) &&
		(f.Reference == "" || f.Reference == sub.reference) &&
		(f.BookingID == "" || f.BookingID == sub.bookingID) &&
		(f.Caller == "" || f.Caller == sub.caller)
}

// bookingSubject is what faults are matched against.
type bookingSubject struct {
	op                           booking.Operation
	reference, bookingID, caller string
}

func (s bookingSubject) about() string { return string(s.op) + " " + s.reference }

type (
	bookingFaults  = faultSet[BookingFaultKind, bookingSubject, BookingFault]
	bookingMeeting = meeting[BookingFaultKind, BookingFault]
)

// Inject switches a fault on. It panics where [BookingFault.Validate] says that
// the fault is wrong: that is a mistake in the test.
func (s *BookingServer) Inject(f BookingFault) *InjectedFault {
	return &InjectedFault{s.faults.inject(f, 0)}
}

// ClearFaults removes every fault.
func (s *BookingServer) ClearFaults() { s.faults.clear() }
