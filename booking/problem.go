package booking

import "strings"

// ProblemBase stands before a [Kind] in the type URI of a problem document. The
// URIs are names: nothing needs to answer under them.
const ProblemBase = "https://flights.com/problems/"

// MediaTypeProblem is the content type of a problem document (RFC 9457).
const MediaTypeProblem = "application/problem+json"

// Kind is what went wrong. It is an error itself, so that
// errors.Is(err, booking.SoldOut) holds for an [*Error] of that kind.
type Kind string

// Error says in a few words what the kind means.
func (k Kind) Error() string {
	if s, ok := lookup(k); ok {
		return s.title
	}
	if title, ok := local[k]; ok {
		return title
	}
	return "booking: unknown kind of error"
}

// Kinds that the server tells, one for each problem type of the contract.
const (
	InvalidRequest       Kind = "invalid-request"        // 400: the request is not as the contract wants it
	Unauthorized         Kind = "unauthorized"           // 401: no token, or one that is not known (any more)
	Forbidden            Kind = "forbidden"              // 403: the token may not do this
	NotFound             Kind = "not-found"              // 404: this caller has no such booking
	SoldOut              Kind = "sold-out"               // 409
	PriceAboveLimit      Kind = "price-above-limit"      // 409: Error.Price has the price asked
	FareNotChangeable    Kind = "fare-not-changeable"    // 409: date, flight and cabin are fixed
	StatusConflict       Kind = "status-conflict"        // 409: the booking's status does not allow it
	ReferenceTaken       Kind = "reference-taken"        // 409: Error.BookingID has the booking that has it
	ReferenceClosed      Kind = "reference-closed"       // 409: nothing can be booked under it any more
	KeyInProgress        Kind = "key-in-progress"        // 409: the first request with this key still runs
	VersionMismatch      Kind = "version-mismatch"       // 412: the booking changed since it was read
	TooLarge             Kind = "too-large"              // 413: the request body
	UnsupportedMediaType Kind = "unsupported-media-type" // 415: the request body
	InvalidPassenger     Kind = "invalid-passenger"      // 422: Error.Fields names passenger and field
	KeyReused            Kind = "key-reused"             // 422: the key was used with other content
	VersionRequired      Kind = "version-required"       // 428: no If-Match
	RateLimited          Kind = "rate-limited"           // 429: Error.RetryAfter says when to come back
	Internal             Kind = "internal"               // 500
	Unavailable          Kind = "unavailable"            // 503
)

// Kinds that a [Client] finds by itself.
const (
	BadArgument    Kind = "bad-argument"    // nothing was sent: an argument of the call is wrong
	NoToken        Kind = "no-token"        // nothing was sent: the token source failed
	NotSent        Kind = "not-sent"        // nothing was sent: there was no connection
	TimedOut       Kind = "timed-out"       // sent, and no answer in time
	Canceled       Kind = "canceled"        // sent, and the caller's context was cancelled
	ConnectionLost Kind = "connection-lost" // sent, and the connection broke before the answer was complete
	BadAnswer      Kind = "bad-answer"      // an answer that is not as the contract wants it
)

var local = map[Kind]string{ // read only
	BadArgument:    "an argument is wrong",
	NoToken:        "there is no token to send",
	NotSent:        "no connection",
	TimedOut:       "no answer in time",
	Canceled:       "cancelled by the caller",
	ConnectionLost: "the connection was lost before the answer was complete",
	BadAnswer:      "the answer is not one of the booking API",
}

type spec struct {
	kind   Kind
	status int
	class  Class // for a mutation; a read has its own rule, see classify
	title  string
}

var specs = []spec{ // read only
	{InvalidRequest, 400, Refused, "the request is not valid"},
	{Unauthorized, 401, Denied, "the token is missing or not accepted"},
	{Forbidden, 403, Denied, "the token does not allow this"},
	{NotFound, 404, Absent, "there is no such booking"},
	{SoldOut, 409, Refused, "sold out"},
	{PriceAboveLimit, 409, Refused, "the price is above the limit"},
	{FareNotChangeable, 409, Refused, "the fare cannot be changed"},
	{StatusConflict, 409, Refused, "the status of the booking does not allow this"},
	{ReferenceTaken, 409, Refused, "the reference is taken by another booking"},
	{ReferenceClosed, 409, Refused, "the reference is closed"},
	// The request that came first may take effect any moment.
	{KeyInProgress, 409, OutcomeUnknown, "an earlier request with this idempotency key is still running"},
	{VersionMismatch, 412, Refused, "the booking has changed since it was read"},
	{TooLarge, 413, Refused, "the request is too large"},
	{UnsupportedMediaType, 415, Refused, "the request is not JSON"},
	{InvalidPassenger, 422, Refused, "a passenger is not valid"},
	{KeyReused, 422, Refused, "the idempotency key was used with other content"},
	{VersionRequired, 428, Refused, "the version of the booking is missing"},
	{RateLimited, 429, Deferred, "too many requests"},
	{Internal, 500, OutcomeUnknown, "the server failed"},
	{Unavailable, 503, OutcomeUnknown, "the server is not available"},
}

func lookup(k Kind) (spec, bool) {
	for _, s := range specs {
		if s.kind == k {
			return s, true
		}
	}
	return spec{}, false
}

// ProblemKinds is every kind that a server tells, in the order of their HTTP
// status. The slice is the caller's.
func ProblemKinds() []Kind {
	kinds := make([]Kind, 0, len(specs))
	for _, s := range specs {
		kinds = append(kinds, s.kind)
	}
	return kinds
}

// Problem is a problem document. What a client receives in it is the server's
// text: it may hold anything, and belongs in no log and no status.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Errors names the fields that are wrong, for InvalidRequest and InvalidPassenger.
	Errors []FieldError `json:"errors,omitempty"`
	// BookingID is the booking that has the reference, for ReferenceTaken.
	BookingID string `json:"booking_id,omitempty"`
	// Price is what the booking would cost, for PriceAboveLimit.
	Price *Money `json:"price,omitempty"`
}

// FieldError says what is wrong with one field.
type FieldError struct {
	// Field is a path into the body, as passengers[0].given_name, or the name of a
	// parameter or header in lower case.
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// NewProblem makes the document for a kind that a server tells. For another kind
// it is that of [Internal].
func NewProblem(k Kind, detail string) Problem {
	s, ok := lookup(k)
	if !ok {
		s, _ = lookup(Internal)
	}
	return Problem{Type: ProblemBase + string(s.kind), Title: s.title, Status: s.status, Detail: detail}
}

// Kind is the kind that the problem's type names. It reports false for a type
// that is not the contract's, and for one that came with another HTTP status
// than the contract gives it.
func (p Problem) Kind() (Kind, bool) {
	name, ok := strings.CutPrefix(p.Type, ProblemBase)
	if !ok {
		return "", false
	}
	s, ok := lookup(Kind(name))
	return s.kind, ok && s.status == p.Status
}
