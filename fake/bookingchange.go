package fake

import (
	"net/http"
	"slices"
	"time"

	"github.com/tetherkube/tether/booking"
)

func (s *BookingServer) changeLocked(caller, id, ifMatch string, c booking.Change, now time.Time) outcome {
	r, p := s.findLocked(caller, id, now)
	if p == nil {
		p = r.matches(ifMatch)
	}
	if p != nil {
		return refuseWith(p)
	}
	b := r.current
	moved := applyChange(&b, c)
	open := b.Status == booking.Pending || b.Status == booking.Confirmed
	if other := c != (booking.Change{ClientReference: c.ClientReference}); other && !open {
		return refuse(booking.StatusConflict, "the booking is "+string(b.Status))
	}
	if moved && !b.FareChangeable {
		return refuse(booking.FareNotChangeable, "")
	}
	renamed := b.ClientReference != r.current.ClientReference
	if renamed {
		if p := s.referenceLocked(caller, b.ClientReference, now); p != nil && p.BookingID != id {
			return refuseWith(p)
		}
	}
	if moved {
		b.Price = s.Price(b.From, b.To, b.Cabin, len(b.Passengers))
		if p := s.fareLocked(b, c.MaxPrice); p != nil {
			return refuseWith(p)
		}
	}
	if !moved && !renamed && sameContact(b.Contact, r.current.Contact) {
		return answerWith(http.StatusOK, r.current, false)
	}
	next := r.clone()
	change := &bookingChange{record: next}
	if moved {
		next.flight = s.flightFor(b.From, b.To, b.DepartureDate, b.FlightNumber)
		next.seats, change.taken = s.seatsLocked(next.flight, b.Cabin, len(b.Passengers))
		b.ScheduleChange = nil
	}
	if renamed && !slices.Contains(next.references, b.ClientReference) {
		next.references = append(slices.Clone(next.references), b.ClientReference)
	}
	next.write(now, func(to *booking.Booking) {
		*to = b
		if moved && b.Status == booking.Confirmed {
			next.seatOn(to)
		}
	})
	return answerWith(http.StatusOK, next.current, true).changing(change)
}

// applyChange reports whether the journey itself becomes another.
func applyChange(b *booking.Booking, c booking.Change) (moved bool) {
	set := func(at *string, to *string) {
		if to != nil && *at != *to {
			*at, moved = *to, true
		}
	}
	set(&b.DepartureDate, c.DepartureDate)
	set(&b.FlightNumber, c.FlightNumber)
	if c.Cabin != nil && *c.Cabin != b.Cabin {
		b.Cabin, moved = *c.Cabin, true
	}
	if c.ClientReference != nil {
		b.ClientReference = *c.ClientReference
	}
	if c.Contact != nil {
		b.Contact = c.Contact
	}
	return moved
}

func sameContact(a, b *booking.Contact) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (s *BookingServer) cancelLocked(caller, id, ifMatch string, now time.Time) outcome {
	r, p := s.findLocked(caller, id, now)
	if p == nil {
		p = r.matches(ifMatch)
	}
	if p != nil {
		return refuseWith(p)
	}
	switch r.current.Status {
	case booking.Cancelled:
		return answerWith(http.StatusOK, r.current, false)
	case booking.Failed, booking.Flown:
		return refuse(booking.StatusConflict, "the booking is "+string(r.current.Status))
	}
	next := r.clone()
	next.write(now, func(b *booking.Booking) {
		b.Status = booking.Cancelled
		b.Cancellation = &booking.Cancellation{By: booking.ByCaller, At: now}
	})
	return answerWith(http.StatusOK, next.current, true).changing(&bookingChange{record: next})
}

func (s *BookingServer) closeLocked(caller, reference string, now time.Time) outcome {
	at := callerRef{caller, reference}
	answer := booking.ClosedReference{ClientReference: reference, Closed: true, Bookings: []booking.Booking{}}
	for _, r := range s.store.byRef[at] {
		s.settleLocked(r, now)
		if s.hasLocked(r, reference) {
			answer.Bookings = append(answer.Bookings, r.current)
		}
	}
	o := outcome{status: http.StatusOK, body: answer}
	if s.store.closed[at] {
		return o
	}
	o.effect = true
	return o.changing(&bookingChange{closed: &at})
}
