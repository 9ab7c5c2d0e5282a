package fake

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/tetherkube/tether/booking"
)

const (
	idAlphabet      = "abcdefghijkmnpqrstuvwxyz23456789"
	locatorAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
)

// Price is what a booking on this route costs, for all passengers together. It
// depends on the seed alone.
func (s *BookingServer) Price(from, to string, cabin booking.Cabin, passengers int) booking.Money {
	sum := hash(s.options.Seed, "price", from, to)
	cents := 80_00 + int64(binary.BigEndian.Uint32(sum[:4])%820)*100 + int64(sum[4]%100)
	switch cabin {
	case booking.Premium:
		cents = cents * 16 / 10
	case booking.Business:
		cents *= 3
	case booking.First:
		cents *= 5
	}
	return booking.Cents(cents*int64(passengers), s.options.Currency)
}

// flightFor is the flight that a request gets.
func (s *BookingServer) flightFor(from, to, date, number string) booking.Flight {
	sum := hash(s.options.Seed, "flight", from, to)
	if number == "" {
		number = "TK" + strconv.Itoa(100+int(binary.BigEndian.Uint16(sum[:2])%900))
	}
	day, _ := time.Parse(time.DateOnly, date) // validated before
	return booking.Flight{Number: number, DepartureTime: day.Add(time.Duration(6+sum[2]%16)*time.Hour + time.Duration(sum[3]%12)*5*time.Minute)}
}

// fareChangeable tells whether the fare of a route can be changed.
func (s *BookingServer) fareChangeable(from, to string, cabin booking.Cabin) bool {
	return share(hash(s.options.Seed, "fare", from, to, string(cabin))) >= s.options.FixedFares
}

// seat is the nth seat of a flight, from 0 on.
func seat(n int) string { return fmt.Sprintf("%d%c", 1+n/6, "ABCDEF"[n%6]) }
