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

// outcome is the one place where the booking API's errors become Tether's: what is
// known of the effect, and what a person can do.
func outcome(t *v1.Ticket, err error) error {
	var e *booking.Error
	if !errors.As(err, &e) {
		return err // unknown, the default
	}
	if e.Replayed && e.Definite() {
		return tether.NoEffect(err) // an earlier refusal, kept under the key: of what was asked then
	}
	switch e.Kind {
	case booking.SoldOut:
		return rejected("SoldOut", "no seat is left from %s to %s on %s; choose another day, flight or cabin", t.Spec.From, t.Spec.To, t.Spec.DepartureDate)
	case booking.PriceAboveLimit:
		return rejected("PriceAboveLimit", "the flight costs %s, and spec.maxPrice is %s; raise it, or choose another flight", price(e.Price), maxPriceOf(t))
	case booking.InvalidPassenger:
		return rejected("InvalidPassenger", "the airline does not accept %s; correct spec.passengers", orThe(e.Fields, "a passenger"))
	case booking.InvalidRequest, booking.BadArgument, booking.TooLarge, booking.UnsupportedMediaType:
		return rejected("InvalidRequest", "the booking API does not accept %s; correct the spec", orThe(e.Fields, "the booking"))
	case booking.KeyInProgress:
		return tether.RetryAfter(tether.Reason("KeyInProgress", err), e.RetryAfter) // the first call with the key still runs
	case booking.Unauthorized, booking.Forbidden, booking.NoToken:
		return tether.NoEffect(tether.Reason("Unauthorized", fmt.Errorf("%w; check the booking token", err)))
	}
	switch e.Class() {
	case booking.Deferred:
		if e.RetryAfter > 0 {
			return tether.RetryAfter(tether.NoEffect(tether.Reason(reasons[e.Kind], err)), e.RetryAfter)
		}
		return tether.NoEffect(tether.Reason(reasons[e.Kind], err))
	case booking.Refused, booking.Denied, booking.Absent:
		return tether.NoEffect(err) // what was seen is not so any more: look again
	}
	if e.RetryAfter > 0 {
		return tether.RetryAfter(err, e.RetryAfter)
	}
	return err
}

var reasons = map[booking.Kind]string{
	booking.RateLimited: "RateLimited", booking.Unavailable: "Unavailable", booking.NotSent: "Unreachable",
}

func rejected(reason, format string, args ...any) error {
	return tether.Terminal(tether.Reason(reason, fmt.Errorf(format, args...)))
}

func price(m *booking.Money) string {
	if m == nil {
		return "more"
	}
	return m.Amount + " " + m.Currency
}

func maxPriceOf(t *v1.Ticket) string {
	if t.Spec.MaxPrice == nil {
		return "not set"
	}
	return t.Spec.MaxPrice.Amount + " " + t.Spec.MaxPrice.Currency
}

func orThe(fields []string, otherwise string) string {
	if len(fields) == 0 {
		return otherwise
	}
	return strings.Join(fields, ", ")
}
