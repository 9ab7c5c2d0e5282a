package bookingserver

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tetherkube/tether/examples/ticket-controller/commandline"
	"github.com/tetherkube/tether/fake"
)

// settings is a command line that was understood.
type settings struct {
	listen     string
	tokenFile  string
	options    fake.BookingOptions
	soldOut    []journey
	faults     []fake.BookingFault
	faultSpecs []string
}

type journey struct{ from, to, date string }

// option is one flag. Its environment variable is its name in capitals after
// BOOKING_SERVER_, with underscores.
type option struct {
	name, value, help string
	repeated          bool // may be given more than once; in the environment, by spaces
	set               func(*settings, string) error
}

func (o option) env() string { return commandline.Variable("BOOKING_SERVER", o.name) }

func duration(name, help string, at func(*settings) *time.Duration) option {
	return option{name: name, value: "DURATION", help: help, set: func(s *settings, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("%.40q is not a duration: want one as 500ms, 30s or 5m", v)
		}
		*at(s) = d
		return nil
	}}
}

// options are in the order of the help text.
func options() []option {
	return []option{
		{name: "listen", value: "ADDRESS", help: "Address to listen on. Port 0 takes a free one. [127.0.0.1:8081]", set: setListen},
		{name: "token-file", value: "FILE", help: "Take only the bearer token in FILE. It is read for each request. [any token, each a caller of its own]", set: func(s *settings, v string) error { s.tokenFile = v; return nil }},
		{name: "seed", value: "NUMBER", help: "Fixes ids, prices, flights and drawn faults. [0]", set: func(s *settings, v string) (err error) {
			if s.options.Seed, err = strconv.ParseUint(v, 10, 64); err != nil {
				return fmt.Errorf("%.40q is not a number from 0 to 18446744073709551615", v)
			}
			return nil
		}},
		{name: "reference-uniqueness", value: "HOW", help: "Whether a client_reference is taken once for ever (forever), by at most one live booking (live), or any number of times (none). [forever]", set: setUniqueness},
		{name: "key-lifetime", value: "DURATION", help: "How long an answer is kept under its idempotency key. [24h]", set: func(s *settings, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return fmt.Errorf("%.40q is not a positive duration: want one as 30s or 24h", v)
			}
			s.options.KeyLifetime = d
			return nil
		}},
		{name: "rate-limit", value: "N/DURATION", help: "Requests of one caller in a time, as 100/1m. [none]", set: setRateLimit},
		duration("reference-lag", "How far lists are behind. Look-ups by id are not. [0s]", func(s *settings) *time.Duration { return &s.options.ReferenceLag }),
		duration("confirm-after", "Bookings are pending for so long. [0s]", func(s *settings) *time.Duration { return &s.options.ConfirmAfter }),
		duration("reschedule-after", "The airline moves a flight so long after it was booked. [never]", func(s *settings) *time.Duration { return &s.options.RescheduleAfter }),
		duration("airline-cancel-after", "The airline cancels a booking so long after it was made. [never]", func(s *settings) *time.Duration { return &s.options.AirlineCancelAfter }),
		duration("flown-after", "A booking is flown so long after it was made. [never]", func(s *settings) *time.Duration { return &s.options.FlownAfter }),
		{name: "fixed-fares", value: "SHARE", help: "Share of routes and cabins whose fare cannot be changed, 0 to 1. [0]", set: func(s *settings, v string) (err error) {
			s.options.FixedFares, err = strconv.ParseFloat(v, 64)
			if err != nil || !(s.options.FixedFares >= 0 && s.options.FixedFares <= 1) {
				return fmt.Errorf("%.40q is not a share: want a number from 0 to 1", v)
			}
			return nil
		}},
		{name: "sold-out", value: "FROM-TO[@DATE]", repeated: true, help: "No seats on a route, or on one day of it, as ICN-JFK@2027-05-01.", set: setSoldOut},
		{name: "fault", value: "KIND[:FIELD=VALUE,…]", repeated: true, help: "A fault; see below.", set: func(s *settings, v string) error {
			f, err := fake.ParseBookingFault(v)
			if err != nil {
				return err
			}
			s.faults, s.faultSpecs = append(s.faults, f), append(s.faultSpecs, v)
			return nil
		}},
	}
}

func setListen(s *settings, v string) error {
	s.listen = v
	return commandline.Address(v)
}

func setUniqueness(s *settings, v string) error {
	switch u := fake.ReferenceUniqueness(v); u {
	case fake.UniqueForever, fake.UniqueLive, fake.UniqueNone:
		s.options.ReferenceUniqueness = u
		return nil
	}
	return fmt.Errorf("%.40q is unknown: want forever, live or none", v)
}

func setRateLimit(s *settings, v string) error {
	number, window, _ := strings.Cut(v, "/")
	n, err := strconv.Atoi(number)
	d, bad := time.ParseDuration(window)
	if err != nil || bad != nil || n < 1 || d < time.Second {
		return fmt.Errorf("%.40q is not a limit: want requests and a time of at least 1s, as 100/1m", v)
	}
	s.options.RateLimit = fake.RateLimit{Requests: n, Window: d}
	return nil
}

var route = regexp.MustCompile(`^([A-Z]{3})-([A-Z]{3})(?:@(\d{4}-\d\d-\d\d))?$`)

func setSoldOut(s *settings, v string) error {
	m := route.FindStringSubmatch(v)
	if m == nil {
		return fmt.Errorf("%.40q is not a route: want one as ICN-JFK, or with a day as ICN-JFK@2027-05-01", v)
	}
	if _, err := time.Parse(time.DateOnly, m[3]); m[3] != "" && err != nil {
		return fmt.Errorf("%.40q has no such day: want one as ICN-JFK@2027-05-01", v)
	}
	s.soldOut = append(s.soldOut, journey{m[1], m[2], m[3]})
	return nil
}

// parse reads the command line, and the environment for what is not on it. The
// error is flag.ErrHelp where help was asked for.
func parse(args []string, getenv func(string) string) (settings, error) {
	s := settings{listen: "127.0.0.1:8081"}
	s.options.ReferenceUniqueness = fake.UniqueForever
	given := map[string]bool{}
	var errs []error
	set := func(o option, from, value string) {
		err := commandline.ErrEmpty
		if value != "" {
			err = o.set(&s, value)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from, err))
		}
	}
	fs := flag.NewFlagSet("booking-server", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	for _, o := range options() {
		fs.Func(o.name, o.help, func(value string) error {
			given[o.name] = true
			set(o, "--"+o.name, value)
			return nil
		})
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return s, err
	} else if err != nil {
		errs = append(errs, commandline.Readable(err))
	} else if fs.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%.40q is no flag: there are no arguments beside flags", fs.Arg(0)))
	}
	for _, o := range options() {
		value := getenv(o.env())
		if given[o.name] || value == "" {
			continue
		}
		values := []string{value}
		if o.repeated {
			values = strings.Fields(value)
		}
		for _, v := range values {
			set(o, o.env(), v)
		}
	}
	return s, errors.Join(errs...)
}
