package main

import (
	"slices"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

// request is the booking that a Ticket wants.
func request(t *v1.Ticket, reference string) booking.Request {
	s := t.Spec
	return booking.Request{
		ClientReference: reference,
		From:            s.From, To: s.To, DepartureDate: s.DepartureDate, FlightNumber: s.FlightNumber,
		Cabin: cabin(s), Passengers: passengers(s), Contact: contact(s), MaxPrice: maxPrice(s),
	}
}

// The paths that no change reaches: another route is another Ticket.
const (
	pathFrom = "spec.from"
	pathTo   = "spec.to"
)

// differs names the paths in which a booking is not as the Ticket says, and
// whether that cannot be changed in place. Of another route it is not replaced.
func differs(t *v1.Ticket, b booking.Booking) (paths []string, replace bool) {
	s := t.Spec
	for _, f := range []struct {
		path  string
		same  bool
		fixed bool // it cannot be changed in place
	}{
		{pathFrom, s.From == b.From, false},
		{pathTo, s.To == b.To, false},
		{"spec.departureDate", s.DepartureDate == b.DepartureDate, !b.FareChangeable},
		{"spec.flightNumber", s.FlightNumber == b.FlightNumber, !b.FareChangeable},
		{"spec.cabin", cabin(s) == b.Cabin, !b.FareChangeable},
		{"spec.contact", sameContact(contact(s), b.Contact), false},
		{"spec.passengers", slices.Equal(passengers(s), b.Passengers), true},
	} {
		if !f.same {
			paths, replace = append(paths, f.path), replace || f.fixed
		}
	}
	return paths, replace && s.From == b.From && s.To == b.To
}

// change is what makes a booking as the Ticket says, in the paths that differ.
func change(t *v1.Ticket, paths []string) booking.Change {
	s := t.Spec
	c := booking.Change{MaxPrice: maxPrice(s)}
	for _, path := range paths {
		switch path {
		case "spec.departureDate":
			c.DepartureDate = &s.DepartureDate
		case "spec.flightNumber":
			c.FlightNumber = &s.FlightNumber
		case "spec.cabin":
			c.Cabin = new(cabin(s))
		case "spec.contact":
			if c.Contact = contact(s); c.Contact == nil {
				c.Contact = &booking.Contact{}
			}
		}
	}
	return c
}

func cabin(s v1.TicketSpec) booking.Cabin {
	if s.Cabin == "" {
		return booking.Economy
	}
	return booking.Cabin(s.Cabin)
}

func passengers(s v1.TicketSpec) []booking.Passenger {
	out := make([]booking.Passenger, 0, len(s.Passengers))
	for _, p := range s.Passengers {
		out = append(out, booking.Passenger{GivenName: p.GivenName, FamilyName: p.FamilyName, DateOfBirth: p.DateOfBirth})
	}
	return out
}

func contact(s v1.TicketSpec) *booking.Contact {
	if s.Contact == nil {
		return nil
	}
	return &booking.Contact{Email: s.Contact.Email, Phone: s.Contact.Phone}
}

func sameContact(a, b *booking.Contact) bool {
	none := booking.Contact{}
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	return *a == *b
}

func maxPrice(s v1.TicketSpec) *booking.Money {
	if s.MaxPrice == nil {
		return nil
	}
	return &booking.Money{Amount: s.MaxPrice.Amount, Currency: s.MaxPrice.Currency}
}

// policy is what a Ticket wishes.
func policy(t *v1.Ticket) tether.Policy {
	var p tether.Policy
	switch t.Spec.DeletionPolicy {
	case "", v1.DeletionPolicyCancel:
	default: // Retain, or a word that is not known: it cancels nothing
		p.Deletion = tether.RetainOutside
	}
	if t.Spec.OnLost == v1.OnLostRecreate {
		p.OnLost = tether.RecreateLoss
	}
	if t.Spec.Replace == v1.ReplaceDeleteFirst {
		p.Replace = tether.DeleteFirst
	}
	return p
}
