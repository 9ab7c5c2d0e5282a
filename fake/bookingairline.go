package fake

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tetherkube/tether/booking"
)

// act is one thing that the airline does to a booking.
type act func(*BookingServer, *bookingRecord, time.Time)

// plannedAct is an act at a time. Acts are carried out when someone looks, as of
// their own time, so that a server needs no goroutine for them.
type plannedAct struct {
	at   time.Time
	kind actKind
}

// actKind names what the airline does by itself, so that a plan can be kept.
type actKind string

const (
	actConfirm    actKind = "confirm"
	actReschedule actKind = "reschedule"
	actCancel     actKind = "cancel"
	actFly        actKind = "fly"
)

var plannable = map[actKind]act{ // read only
	actConfirm:    confirm,
	actReschedule: reschedule(3 * time.Hour),
	actCancel:     airlineCancel("the flight does not operate"),
	actFly:        fly,
}

func (o BookingOptions) plan(booked time.Time) []plannedAct {
	plan := []plannedAct{{booked.Add(o.ConfirmAfter), actConfirm}}
	for _, p := range []struct {
		after time.Duration
		kind  actKind
	}{
		{o.RescheduleAfter, actReschedule},
		{o.AirlineCancelAfter, actCancel},
		{o.FlownAfter, actFly},
	} {
		if p.after > 0 {
			plan = append(plan, plannedAct{booked.Add(p.after), p.kind})
		}
	}
	slices.SortStableFunc(plan, func(a, b plannedAct) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return plan
}

// settleLocked carries out what is due.
func (s *BookingServer) settleLocked(r *bookingRecord, now time.Time) {
	for len(r.plan) > 0 && !r.plan[0].at.After(now) {
		next := r.plan[0]
		r.plan = r.plan[1:]
		plannable[next.kind](s, r, r.notBefore(next.at))
	}
}

// notBefore is at, or the time of the last version where that is later: none gets an
// earlier time than the one before it.
func (r *bookingRecord) notBefore(at time.Time) time.Time {
	return slices.MaxFunc([]time.Time{at, r.current.UpdatedAt}, time.Time.Compare)
}

func confirm(s *BookingServer, r *bookingRecord, now time.Time) {
	if r.current.Status != booking.Pending {
		return
	}
	r.write(now, func(b *booking.Booking) {
		b.Status = booking.Confirmed
		b.RecordLocator = spell(hash(s.options.Seed, "locator", b.ID), locatorAlphabet, 6)
		r.seatOn(b)
	})
}

func (r *bookingRecord) seatOn(b *booking.Booking) {
	flight := r.flight
	b.Flight, b.Seats = &flight, slices.Clone(r.seats)
}

func fail(reason string) act {
	return func(_ *BookingServer, r *bookingRecord, now time.Time) {
		if r.current.Status == booking.Pending {
			r.write(now, func(b *booking.Booking) { b.Status, b.FailureReason = booking.Failed, reason })
		}
	}
}

func reschedule(by time.Duration) act {
	return func(_ *BookingServer, r *bookingRecord, now time.Time) {
		if !r.current.Status.Live() || r.current.Status == booking.Flown {
			return
		}
		was := r.flight.DepartureTime
		r.flight.DepartureTime = was.Add(by)
		r.write(now, func(b *booking.Booking) {
			b.ScheduleChange = &booking.ScheduleChange{PreviousDepartureTime: was, ChangedAt: now}
			if b.Flight != nil {
				r.seatOn(b)
			}
		})
	}
}

func airlineCancel(reason string) act {
	return func(_ *BookingServer, r *bookingRecord, now time.Time) {
		if r.current.Status == booking.Pending || r.current.Status == booking.Confirmed {
			r.write(now, func(b *booking.Booking) {
				b.Status = booking.Cancelled
				b.Cancellation = &booking.Cancellation{By: booking.ByAirline, At: now, Reason: reason}
			})
		}
	}
}

func fly(_ *BookingServer, r *bookingRecord, now time.Time) {
	if r.current.Status == booking.Confirmed {
		r.write(now, func(b *booking.Booking) { b.Status = booking.Flown })
	}
}

// airline does something to a booking, and says so where the status forbids it.
func (s *BookingServer) airline(id, what string, do act) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.store.records[id]
	if r == nil {
		return fmt.Errorf("fake: %s: there is no booking %q", what, id)
	}
	now := clock()
	s.settleLocked(r, now)
	next := r.clone()
	do(s, next, r.notBefore(now))
	if next.version == r.version {
		return fmt.Errorf("fake: %s: booking %s is %s", what, id, r.current.Status)
	}
	return s.carryLocked(what, &bookingChange{record: next})
}

// Confirm confirms a pending booking before its time.
func (s *BookingServer) Confirm(id string) error { return s.airline(id, "Confirm", confirm) }

// Fail ends a pending booking as failed.
func (s *BookingServer) Fail(id, reason string) error { return s.airline(id, "Fail", fail(reason)) }

// Reschedule moves the departure of a pending or confirmed booking.
func (s *BookingServer) Reschedule(id string, by time.Duration) error {
	return s.airline(id, "Reschedule", reschedule(by))
}

// CancelByAirline cancels a pending or confirmed booking.
func (s *BookingServer) CancelByAirline(id, reason string) error {
	return s.airline(id, "CancelByAirline", airlineCancel(reason))
}

// Fly marks a confirmed booking as flown.
func (s *BookingServer) Fly(id string) error { return s.airline(id, "Fly", fly) }

// SetFareChangeable decides whether date, flight and cabin of a booking can be
// changed. It makes a new version.
func (s *BookingServer) SetFareChangeable(id string, changeable bool) error {
	return s.airline(id, "SetFareChangeable", func(_ *BookingServer, r *bookingRecord, now time.Time) {
		r.write(now, func(b *booking.Booking) { b.FareChangeable = changeable })
	})
}

// Lose removes a booking as if it had never been. Its reference stays spent where
// references are unique for ever.
func (s *BookingServer) Lose(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.store.records[id]
	if r == nil {
		return fmt.Errorf("fake: Lose: there is no booking %q", id)
	}
	next := r.clone()
	next.lost = true
	return s.carryLocked("Lose", &bookingChange{record: next})
}

// SellOut takes away, or gives back, the seats from one airport to another on a
// date (YYYY-MM-DD), or with an empty date on every day. What is booked stays.
func (s *BookingServer) SellOut(from, to, date string, soldOut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.soldOut[[3]string{from, to, date}] = soldOut
	s.oweLocked(savedBookingEntry{SoldOut: &savedSoldOut{From: from, To: to, Date: date, SoldOut: soldOut}})
}

func (s *BookingServer) soldOutLocked(from, to, date string) bool {
	return s.soldOut[[3]string{from, to, date}] || s.soldOut[[3]string{from, to, ""}]
}
