package fake

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/tetherkube/tether/booking"
)

// hash is where everything comes from that looks random: it depends on the seed
// and on what it is for, and on nothing that happened before.
func hash(seed uint64, parts ...string) [32]byte {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], seed)
	h.Write(n[:])
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}

// share is a number from 0 up to 1, not included.
func share(sum [32]byte) float64 { return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53) }

// spell writes n characters of an alphabet.
func spell(sum [32]byte, alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(b)
}

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
