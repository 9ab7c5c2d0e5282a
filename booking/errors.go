package booking

import (
	"fmt"
	"strings"
	"time"
)

// Class is what an error says about the effect of the request that it is about.
// The zero Class is the one that promises least.
type Class int

// The classes of errors.
const (
	// OutcomeUnknown: a mutation was sent, and it may have taken effect or may do so later.
	OutcomeUnknown Class = iota
	// CannotTell: a read failed. Nothing follows from it.
	CannotTell
	// Refused: no effect, and again none if the same request is sent again.
	Refused
	// Deferred: no effect; the same request may be accepted later.
	Deferred
	// Denied: no effect; the token is not accepted, or not for this.
	Denied
	// Absent: no effect; this caller has no such booking.
	Absent
)

// String is the name of the class.
func (c Class) String() string {
	switch c {
	case OutcomeUnknown:
		return "OutcomeUnknown"
	case CannotTell:
		return "CannotTell"
	case Refused:
		return "Refused"
	case Deferred:
		return "Deferred"
	case Denied:
		return "Denied"
	case Absent:
		return "Absent"
	}
	return fmt.Sprintf("Class(%d)", int(c))
}

// Operation is one operation of the contract, by its operationId.
type Operation string

// The operations of the contract.
const (
	OpCreate Operation = "create"
	OpGet    Operation = "get"
	OpList   Operation = "list"
	OpChange Operation = "change"
	OpCancel Operation = "cancel"
	OpClose  Operation = "close"
)

// Mutation reports whether the operation has an effect.
func (o Operation) Mutation() bool { return o != OpGet && o != OpList }

// Valid reports whether o is an operation of the contract.
func (o Operation) Valid() bool {
	switch o {
	case OpCreate, OpGet, OpList, OpChange, OpCancel, OpClose:
		return true
	}
	return false
}

// Error is what every method of a [Client] fails with.
//
// Its message names the operation and what went wrong in words of this package.
// It never holds the token, text that the server sent, or an id of a request, so
// that it may be shown to people and compared with an earlier one.
type Error struct {
	Op     Operation
	Kind   Kind
	Status int // HTTP status; 0 where no answer came

	// RetryAfter is how long the server asks to wait, at least. It is 0 where it
	// asked for nothing, and never more than [MaxRetryAfter].
	RetryAfter time.Duration
	// BookingID is the booking that has the reference. Set for ReferenceTaken.
	BookingID string
	// Price is what the booking would cost. It may be set for PriceAboveLimit.
	Price *Money
	// Fields are the paths in the request that are wrong, as passengers[0].given_name.
	// It may be set for InvalidRequest and InvalidPassenger.
	Fields []string
	// Problem is the document that the server sent, or nil. It is the server's
	// text: see [Problem].
	Problem *Problem
	// Replayed says that the server kept this answer from an earlier request with
	// the same idempotency key.
	Replayed bool

	note string // what is known beyond the kind, in words of this package
	err  error
}

// Class is what is known about the effect. See [Class].
func (e *Error) Class() Class {
	return classify(e.Op, e.Kind)
}

// Definite reports whether it is certain that this request had no effect.
func (e *Error) Definite() bool {
	return e.Class() != OutcomeUnknown
}

func classify(op Operation, k Kind) Class {
	var c Class
	switch k {
	case BadArgument:
		return Refused
	case NoToken, NotSent:
		c = Deferred
	default:
		if s, ok := lookup(k); ok {
			c = s.class
		}
	}
	// What matters about a read that failed is only whether it proves absence.
	if !op.Mutation() && c != Absent && c != Denied {
		return CannotTell
	}
	return c
}

// Error is the message. See [Error].
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "booking: %s: %s", e.Op, e.Kind.Error())
	if e.note != "" {
		b.WriteString(": " + e.note)
	}
	if e.Price != nil {
		fmt.Fprintf(&b, ": %s %s", e.Price.Amount, e.Price.Currency)
	}
	if e.BookingID != "" {
		b.WriteString(": " + e.BookingID)
	}
	if len(e.Fields) > 0 {
		b.WriteString(": " + strings.Join(e.Fields, ", "))
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	return b.String()
}

// Is reports whether target is the error's [Kind].
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Unwrap is the error below this one, where there is one: of the token source,
// the connection, or the context (with its cause).
func (e *Error) Unwrap() error { return e.err }
