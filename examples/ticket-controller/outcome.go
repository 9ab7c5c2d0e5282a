package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

func is(err error, kind booking.Kind) bool { return errors.Is(err, kind) }

func takenBy(err error) string {
	var e *booking.Error
	if errors.As(err, &e) {
		return e.BookingID
	}
	return ""
}

// effect is what is known of a call that failed.
type effect string

const (
	unknown  effect = "unknown"   // it may have taken effect: Tether finds out
	noEffect effect = "no effect" // it did not, and may be tried again
	rejected effect = "rejected"  // it did not, and only a change of the Ticket can help
)

// outcomes is the one place where the booking API's errors become Tether's. What
// is not in it goes by the error's class.
var outcomes = map[booking.Kind]struct {
	effect effect
	reason string
}{
	booking.SoldOut:              {rejected, "SoldOut"},
	booking.PriceAboveLimit:      {rejected, "PriceAboveLimit"},
	booking.InvalidPassenger:     {rejected, "InvalidPassenger"},
	booking.InvalidRequest:       {rejected, "InvalidRequest"},
	booking.BadArgument:          {rejected, "InvalidRequest"},
	booking.TooLarge:             {rejected, "InvalidRequest"},
	booking.UnsupportedMediaType: {rejected, "InvalidRequest"},
	booking.KeyInProgress:        {unknown, "KeyInProgress"}, // the first call with the key still runs
	booking.Unauthorized:         {noEffect, "Unauthorized"},
	booking.Forbidden:            {noEffect, "Unauthorized"},
	booking.NoToken:              {noEffect, "Unauthorized"},
	booking.RateLimited:          {noEffect, "RateLimited"},
	booking.Unavailable:          {noEffect, "Unavailable"},
	booking.NotSent:              {noEffect, "Unreachable"},
}

// judge tells what is known of the effect, and the condition's reason.
func judge(e *booking.Error) (effect, string) {
	o, known := outcomes[e.Kind]
	switch {
	case e.Replayed && e.Definite():
		return noEffect, "" // an earlier refusal, kept under the key: of what was asked then
	case known && (o.effect != noEffect || e.Definite()):
		return o.effect, o.reason
	case e.Definite():
		return noEffect, "" // what was seen is not so any more: look again
	}
	return unknown, o.reason
}

// outcome is an error of the booking API as Tether takes it.
func outcome(t *v1.Ticket, err error) error {
	var e *booking.Error
	if !errors.As(err, &e) {
		return err
	}
	effect, reason := judge(e)
	if e.Kind == booking.NoToken && e.Unwrap() != nil { // which file it is, and what is wrong with it
		err = fmt.Errorf("%w: %w", err, e.Unwrap())
	}
	if effect == rejected {
		err = errors.New(advice(t, e))
	}
	if reason != "" {
		err = tether.Reason(reason, err)
	}
	if e.RetryAfter > 0 {
		err = tether.RetryAfter(err, e.RetryAfter)
	}
	switch effect {
	case rejected:
		return tether.Terminal(err)
	case noEffect:
		return tether.NoEffect(err)
	}
	return err
}

// advice says what is wrong and what a person can do, in our words: the server's
// may hold anything.
func advice(t *v1.Ticket, e *booking.Error) string {
	s := t.Spec
	switch e.Kind {
	case booking.SoldOut:
		return fmt.Sprintf("no seat is left from %s to %s on %s; choose another day, flight or cabin", s.From, s.To, s.DepartureDate)
	case booking.PriceAboveLimit:
		return fmt.Sprintf("the flight costs %s, and spec.maxPrice is %s; raise it, or choose another flight", price(e.Price, "more"), price(maxPrice(s), "not set"))
	case booking.InvalidPassenger:
		return fmt.Sprintf("the airline does not accept %s; correct spec.passengers", orThe(specPaths(e.Fields), "a passenger"))
	}
	return fmt.Sprintf("the booking API does not accept %s; correct the spec", orThe(specPaths(e.Fields), "the booking"))
}

// specPaths are the paths of a request as a Ticket has them: the same in camelCase.
func specPaths(fields []string) []string {
	paths := make([]string, len(fields))
	for i, f := range fields {
		words := strings.Split(f, "_")
		for n, word := range words[1:] {
			words[n+1] = strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):]
		}
		paths[i] = "spec." + strings.Join(words, "")
	}
	return paths
}

func price(m *booking.Money, otherwise string) string {
	if m == nil {
		return otherwise
	}
	return m.Amount + " " + m.Currency
}

func orThe(fields []string, otherwise string) string {
	if len(fields) == 0 {
		return otherwise
	}
	return strings.Join(fields, ", ")
}
