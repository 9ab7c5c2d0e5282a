package fake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tetherkube/tether/booking"
)

var (
	airport      = regexp.MustCompile(`^[A-Z]{3}$`)
	flightNumber = regexp.MustCompile(`^[A-Z0-9]{2}[0-9]{1,4}[A-Z]?$`)
	phone        = regexp.MustCompile(`^\+[1-9][0-9]{5,14}$`)
)

// mistakes collects what is wrong with a request.
type mistakes []booking.FieldError

func (m *mistakes) add(field, format string, args ...any) {
	*m = append(*m, booking.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// problem is nil where there are no mistakes.
func (m mistakes) problem(k booking.Kind) *booking.Problem {
	if len(m) == 0 {
		return nil
	}
	first := m[0].Detail
	if m[0].Field != "" {
		first = m[0].Field + ": " + first
	}
	p := booking.NewProblem(k, first)
	p.Errors = m
	return &p
}

// decodeStrict reads exactly one JSON object and nothing that into has no place for.
func decodeStrict(body []byte, into any) *booking.Problem {
	var m mistakes
	if !utf8.Valid(body) {
		m.add("", "the body is not UTF-8")
		return m.problem(booking.InvalidRequest)
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		m.add("", "the body is not a JSON object")
		return m.problem(booking.InvalidRequest)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var wrongType *json.UnmarshalTypeError
	switch err := d.Decode(into); {
	case errors.As(err, &wrongType):
		m.add(wrongType.Field, "a %s is not what belongs here", wrongType.Value)
	case err != nil:
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			m.add(strings.Trim(field, `"`), "there is no such field here")
		} else {
			m.add("", "the body is not valid JSON: %v", err)
		}
	default:
		if _, err := d.Token(); err != io.EOF {
			m.add("", "the body goes on after the JSON object")
		}
	}
	return m.problem(booking.InvalidRequest)
}

// checkRequest is what a request has to be whatever the airline says.
func checkRequest(r booking.Request) *booking.Problem {
	var m mistakes
	if r.ClientReference != "" {
		m.reference(r.ClientReference)
	}
	m.airport("from", r.From)
	m.airport("to", r.To)
	if r.From == r.To && r.From != "" {
		m.add("to", "is the same airport as from")
	}
	m.date("departure_date", r.DepartureDate)
	if r.FlightNumber != "" {
		m.flight(r.FlightNumber)
	}
	if r.Cabin != "" {
		m.cabin(r.Cabin)
	}
	if n := len(r.Passengers); n < 1 || n > 9 {
		m.add("passengers", "%d of them: want 1 to 9", n)
	}
	m.contact(r.Contact)
	m.price(r.MaxPrice)
	return m.problem(booking.InvalidRequest)
}

func checkChange(c booking.Change) *booking.Problem {
	var m mistakes
	if c == (booking.Change{}) {
		m.add("", "the change has no field: give at least one")
	}
	if c.ClientReference != nil {
		m.reference(*c.ClientReference)
	}
	if c.DepartureDate != nil {
		m.date("departure_date", *c.DepartureDate)
	}
	if c.FlightNumber != nil && *c.FlightNumber != "" {
		m.flight(*c.FlightNumber)
	}
	if c.Cabin != nil {
		m.cabin(*c.Cabin)
	}
	m.contact(c.Contact)
	m.price(c.MaxPrice)
	return m.problem(booking.InvalidRequest)
}

func (m *mistakes) reference(s string) {
	if !booking.ValidReference(s) {
		m.add("client_reference", "want 1 to 63 of [a-z0-9-]")
	}
}

func (m *mistakes) airport(field, code string) {
	if !airport.MatchString(code) {
		m.add(field, "%.20q is not an IATA code: want three capital letters, as ICN", code)
	}
}

func (m *mistakes) date(field, s string) {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		m.add(field, "%.20q is not a date: want one as 2027-05-01", s)
	}
}

func (m *mistakes) flight(s string) {
	if !flightNumber.MatchString(s) {
		m.add("flight_number", "%.20q is not a flight number: want one as KE081", s)
	}
}

func (m *mistakes) cabin(c booking.Cabin) {
	if !c.Valid() {
		m.add("cabin", "%.20q is no cabin: want economy, premium, business or first", c)
	}
}

func (m *mistakes) contact(c *booking.Contact) {
	if c == nil {
		return
	}
	if at := strings.IndexByte(c.Email, '@'); c.Email != "" && (at < 1 || at == len(c.Email)-1 || len(c.Email) > 254) {
		m.add("contact.email", "is not an address: want one as name@example.com")
	}
	if c.Phone != "" && !phone.MatchString(c.Phone) {
		m.add("contact.phone", "is not in E.164: want one as +82212345678")
	}
}

func (m *mistakes) price(p *booking.Money) {
	if p == nil {
		return
	}
	if _, err := p.Cents(); err != nil {
		field, detail, _ := strings.Cut(err.Error(), ": ")
		m.add("max_price."+field, "%s", detail)
	}
}

// checkPassengers is what the airline asks of passengers.
func checkPassengers(ps []booking.Passenger, departure string) *booking.Problem {
	var m mistakes
	leaves, _ := time.Parse(time.DateOnly, departure) // validated before
	for i, p := range ps {
		at := fmt.Sprintf("passengers[%d].", i)
		m.name(at+"given_name", p.GivenName)
		m.name(at+"family_name", p.FamilyName)
		if p.DateOfBirth == "" {
			continue
		}
		born, err := time.Parse(time.DateOnly, p.DateOfBirth)
		switch {
		case err != nil:
			m.add(at+"date_of_birth", "%.20q is not a date: want one as 1990-12-31", p.DateOfBirth)
		case born.After(leaves):
			m.add(at+"date_of_birth", "is after the day of departure")
		case born.AddDate(130, 0, 0).Before(leaves):
			m.add(at+"date_of_birth", "is more than 130 years before the day of departure")
		}
	}
	return m.problem(booking.InvalidPassenger)
}

// name takes what can be printed on a ticket.
func (m *mistakes) name(field, s string) {
	letters := 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			letters++
		case !strings.ContainsRune(" -'’.", r):
			m.add(field, "has %q: want letters, spaces, hyphens, apostrophes and points", r)
			return
		}
	}
	if n := utf8.RuneCountInString(s); letters == 0 || n > 100 {
		m.add(field, "want a name with at least one letter and at most 100 characters")
	}
}
