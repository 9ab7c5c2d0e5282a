package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tetherkube/tether"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

var (
	airport      = regexp.MustCompile(`^[A-Z]{3}$`)
	flightNumber = regexp.MustCompile(`^([A-Z][A-Z0-9]|[0-9][A-Z])[0-9]{1,4}[A-Z]?$`)
)

// Validate checks again what the definition's rules check, for an object that came
// past an older one, and what they cannot: what depends on today.
func (f *flights) Validate(_ context.Context, t *v1.Ticket) error {
	if wrong := mistakes(t, time.Now()); len(wrong) > 0 {
		return tether.Terminal(tether.Reason("InvalidSpec", errors.New(strings.Join(wrong, "; "))))
	}
	return nil
}

func mistakes(t *v1.Ticket, now time.Time) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	s := t.Spec
	if !airport.MatchString(s.From) || !airport.MatchString(s.To) || s.From == s.To {
		say("spec.from and spec.to: %.10q and %.10q are not two different IATA codes, such as ICN and JFK", s.From, s.To)
	}
	date, err := time.Parse(time.DateOnly, s.DepartureDate)
	switch {
	case err != nil:
		say("spec.departureDate: %.20q is not a date as 2027-05-01", s.DepartureDate)
	case !booked(t, date) && date.AddDate(0, 0, 2).Before(now): // a day is over everywhere two days after it began in UTC
		say("spec.departureDate: %s has passed; choose a day to come", s.DepartureDate)
	}
	if s.FlightNumber != "" && !flightNumber.MatchString(s.FlightNumber) {
		say("spec.flightNumber: %.20q is not a flight number, such as KE81", s.FlightNumber)
	}
	if !cabin(s).Valid() {
		say("spec.cabin: %.20q is none of economy, premium, business and first", s.Cabin)
	}
	if n := len(s.Passengers); n < 1 || n > 9 {
		say("spec.passengers: there are %d; give 1 to 9", n)
	}
	for i, p := range s.Passengers {
		if strings.TrimSpace(p.GivenName) == "" || strings.TrimSpace(p.FamilyName) == "" {
			say("spec.passengers[%d]: givenName or familyName is missing; give both", i)
		}
	}
	if m := maxPrice(s); m != nil {
		if _, err := m.Cents(); err != nil {
			say("spec.maxPrice: %v", err)
		}
	}
	for _, word := range []struct {
		field, value string
		known        []string
	}{
		{"onLost", string(s.OnLost), []string{string(v1.OnLostReport), string(v1.OnLostRecreate)}},
		{"deletionPolicy", string(s.DeletionPolicy), []string{string(v1.DeletionPolicyCancel), string(v1.DeletionPolicyRetain)}},
		{"replace", string(s.Replace), []string{string(v1.ReplaceCreateFirst), string(v1.ReplaceDeleteFirst)}},
	} {
		if word.value != "" && !slices.Contains(word.known, word.value) {
			say("spec.%s: %.20q is neither %s", word.field, word.value, strings.Join(word.known, " nor "))
		}
	}
	return wrong
}

// booked tells whether the flight that stands is of that day, give or take what the
// time zones make of it: then the day may have passed.
func booked(t *v1.Ticket, date time.Time) bool {
	if t.Status.BookingID == "" || t.Status.Flight == nil || t.Status.Flight.Departure == nil {
		return t.Status.BookingID != ""
	}
	apart := t.Status.Flight.Departure.Sub(date)
	return apart > -24*time.Hour && apart < 48*time.Hour
}
