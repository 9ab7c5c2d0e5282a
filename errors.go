package tether

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// outcome is what an author says about an error. The four functions wrap each
// other in any order; what the outer one leaves open, the inner one tells.
type outcome struct {
	err      error
	terminal bool
	noEffect bool
	later    bool
	after    time.Duration
	reason   string
}

func (o *outcome) Error() string { return o.err.Error() }
func (o *outcome) Unwrap() error { return o.err }

// Terminal says that only a change of the object can help, and that nothing took
// effect outside. The object is Stalled until its spec, a watched secondary or the
// reconcile-at annotation changes; until then there is no pass, and no call
// outside, but for a look now and then at what an [External] has live. Terminal(nil) is nil.
func Terminal(err error) error { return wrap(err, &outcome{terminal: true, noEffect: true}) }

// NoEffect says that definitely nothing took effect outside, and that it may be
// tried again. An error of an [External] that does not say so is an unknown
// outcome. NoEffect(nil) is nil.
func NoEffect(err error) error { return wrap(err, &outcome{noEffect: true}) }

// RetryAfter asks for no pass before d, whatever happens meanwhile: a server's
// Retry-After. Only an orphan annotation does not wait. It says nothing about the
// effect. RetryAfter(nil, d) is nil; a negative d counts as zero.
func RetryAfter(err error, d time.Duration) error {
	return wrap(err, &outcome{later: true, after: max(d, 0)})
}

// Reason gives the condition's reason, which is otherwise Failed, Rejected or
// OutcomeUnknown: CamelCase, as the API conventions ask. Reason(r, nil) is nil.
func Reason(reason string, err error) error { return wrap(err, &outcome{reason: reason}) }

func wrap(err error, o *outcome) error {
	if err == nil {
		return nil
	}
	o.err = err
	return o
}

// outcomeOf gathers what the whole chain says. The outermost reason and time count.
func outcomeOf(err error) outcome {
	all := outcome{err: err}
	var walk func(error)
	walk = func(err error) {
		if o, ok := err.(*outcome); ok { //nolint:errorlint // each link is looked at by itself
			all.terminal = all.terminal || o.terminal
			all.noEffect = all.noEffect || o.noEffect
			if o.later && !all.later {
				all.later, all.after = true, o.after
			}
			if all.reason == "" {
				all.reason = o.reason
			}
		}
		switch u := err.(type) { //nolint:errorlint // as above
		case interface{ Unwrap() error }:
			if next := u.Unwrap(); next != nil {
				walk(next)
			}
		case interface{ Unwrap() []error }:
			for _, next := range u.Unwrap() {
				walk(next)
			}
		}
	}
	if err != nil {
		walk(err)
	}
	return all
}

// panicError is a panic of an author's function, with its stack.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

func isPanic(err error) (*panicError, bool) {
	var p *panicError
	return p, errors.As(err, &p)
}

// volatile is what may differ in two messages that say the same: UUIDs, request
// ids, times, durations, addresses and ports.
var volatile = regexp.MustCompile(`(?i)` +
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}` +
	`|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?` +
	`|\[[0-9a-f:]+\](:\d+)?|\d{1,3}(\.\d{1,3}){3}(:\d+)?` +
	`|\b(\d+(\.\d+)?(ns|µs|ms|h|m|s))+\b` +
	`|\b(?:request|trace|span|correlation)[-_ ]?id[=: ]+\S+` +
	`|\b0x[0-9a-f]+\b|\b[0-9a-f]{16,}\b|:\d{2,5}\b`)

// sameMessage tells whether two messages say the same, so that a status is not
// written for a new request id alone.
func sameMessage(a, b string) bool {
	return a == b || volatile.ReplaceAllString(a, "·") == volatile.ReplaceAllString(b, "·")
}
