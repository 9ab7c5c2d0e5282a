package booking

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// answer is an answer whose body was read up to its bound.
type answer struct {
	op       Operation
	status   int
	header   http.Header
	body     []byte
	tooLarge bool
}

func (a answer) fail(k Kind, note string) *Error {
	return &Error{
		Op: a.op, Kind: k, Status: a.status, note: note,
		RetryAfter: retryAfter(a.header, time.Now()),
		Replayed:   a.header.Get("Idempotent-Replayed") == "true",
	}
}

// byStatusAlone is the error that follows from the status whatever the body is:
// gateways answer these before the request reaches the API, or it fails itself.
func (a answer) byStatusAlone() *Error {
	switch {
	case a.status == http.StatusTooManyRequests:
		return a.fail(RateLimited, "")
	case a.status == http.StatusUnauthorized:
		return a.fail(Unauthorized, "")
	case a.status == http.StatusServiceUnavailable:
		return a.fail(Unavailable, "")
	case a.status >= 500:
		return a.fail(Internal, "")
	}
	return nil
}

func (a answer) decode(into any, check func() string) (replayed bool, err error) {
	if e := a.byStatusAlone(); e != nil {
		return false, e
	}
	want := http.StatusOK
	if a.op == OpCreate {
		want = http.StatusCreated
	}
	switch {
	case a.tooLarge:
		return false, a.fail(BadAnswer, fmt.Sprintf("its body is larger than %d bytes", len(a.body)-1))
	case a.status >= 300 && a.status < 400:
		return false, a.fail(BadAnswer, "a redirect, which is not followed; set BaseURL to the address that serves the API itself")
	case a.status >= 400:
		return false, a.problem()
	case a.status != want:
		return false, a.fail(BadAnswer, fmt.Sprintf("want HTTP %d", want))
	case a.mediaType() != "application/json":
		return false, a.fail(BadAnswer, "its content type is not application/json")
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		e := a.fail(BadAnswer, "its body is not the JSON that the contract has")
		e.err = err
		return false, e
	}
	if note := check(); note != "" {
		return false, a.fail(BadAnswer, note)
	}
	return a.header.Get("Idempotent-Replayed") == "true", nil
}

func (a answer) mediaType() string {
	t, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// problem makes the error of a 4xx answer. Only the contract's own document is
// believed: anything may stand in between and answer 404.
func (a answer) problem() *Error {
	var p Problem
	if a.mediaType() != MediaTypeProblem || json.Unmarshal(a.body, &p) != nil || p.Status != a.status {
		return a.fail(BadAnswer, "an error without the contract's problem document; is the address that of a booking API?")
	}
	k, ok := p.Kind()
	if !ok || (k == NotFound && a.op != OpGet && a.op != OpChange && a.op != OpCancel) {
		return a.fail(BadAnswer, "a problem that the contract does not have here")
	}
	e := a.fail(k, "")
	e.Problem = &p
	switch k {
	case PriceAboveLimit:
		if p.Price != nil {
			if _, err := p.Price.Cents(); err == nil {
				e.Price = p.Price
			}
		}
	case ReferenceTaken:
		if validID(p.BookingID) {
			e.BookingID = p.BookingID
		}
	case InvalidRequest, InvalidPassenger:
		e.Fields = fieldPaths(p.Errors)
	}
	return e
}

// fieldPaths takes over what can only be a path into a request, and little of it.
func fieldPaths(errs []FieldError) []string {
	var paths []string
	for _, f := range errs {
		if len(paths) < 16 && made(f.Field, 64, lower+digits+"_.[]-") {
			paths = append(paths, f.Field)
		}
	}
	return paths
}
