package fake

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tetherkube/tether/booking"
)

// ParseBookingFault reads a fault as it is written on a command line: its kind
// and, after a colon, its fields in lower case with dashes.
//
//	cut-after:op=create,nth=1
//	rate-limit:probability=0.2,retry-after=3s
//	problem:problem=sold-out,reference=my-reference
//	unavailable:after=1m,for=30s
func ParseBookingFault(spec string) (BookingFault, error) {
	kind, rest, fields := strings.Cut(spec, ":")
	f := BookingFault{Kind: BookingFaultKind(kind)}
	var errs []error
	if fields {
		for field := range strings.SplitSeq(rest, ",") {
			name, value, ok := strings.Cut(field, "=")
			if !ok || value == "" {
				errs = append(errs, fmt.Errorf("%.40q is not a field: want name=value, as op=create", field))
				continue
			}
			if err := f.set(name, value); err != nil {
				errs = append(errs, fmt.Errorf("%.40s: %w", name, err))
			}
		}
	}
	if err := errors.Join(append(errs, f.Validate())...); err != nil {
		return BookingFault{}, fmt.Errorf("fault %.80q: %w", spec, err)
	}
	return f, nil
}

func (f *BookingFault) set(name, value string) (err error) {
	switch name {
	case "op":
		f.Op = booking.Operation(value)
	case "reference":
		f.Reference = value
	case "booking-id":
		f.BookingID = value
	case "caller":
		f.Caller = value
	case "nth":
		f.Nth, err = parseCount(value)
	case "times":
		f.Times, err = parseCount(value)
	case "probability":
		f.Probability, err = strconv.ParseFloat(value, 64)
		if err != nil || !(f.Probability > 0) {
			return fmt.Errorf("%.40q is not a share: want more than 0 and at most 1", value)
		}
	case "after":
		f.After, err = parseDuration(value)
	case "for":
		f.For, err = parseDuration(value)
	case "delay":
		f.Delay, err = parseDuration(value)
	case "retry-after":
		f.RetryAfter, err = parseDuration(value)
	case "problem":
		f.Problem = booking.Kind(value)
	default:
		return errors.New("is no field of a fault: want op, reference, booking-id, caller, nth, times, probability, after, for, delay, retry-after or problem")
	}
	return err
}

func parseCount(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%.40q is not a number from 1 on", value)
	}
	return n, nil
}

func parseDuration(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%.40q is not a positive duration: want one as 2s", value)
	}
	return d, nil
}
