package booking

import "strings"

const (
	digits = "0123456789"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// ValidReference reports whether s is 1 to 63 of [a-z0-9-].
func ValidReference(s string) bool { return made(s, 63, lower+digits+"-") }

// ValidKey reports whether s can be an idempotency key: 1 to 128 of letters,
// digits and "._:-".
func ValidKey(s string) bool { return made(s, 128, lower+upper+digits+"._:-") }

// validID keeps an id from leaving its place in the path of a URL.
func validID(s string) bool {
	return made(s, 128, lower+upper+digits+"_-")
}

// validVersion is what may stand between the quotes of an ETag.
func validVersion(s string) bool {
	return made(s, 128, lower+upper+digits+"._:+/=-")
}

func made(s string, most int, of string) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if strings.IndexByte(of, s[i]) < 0 {
			return false
		}
	}
	return true
}

func badArgument(op Operation, note string) *Error {
	return &Error{Op: op, Kind: BadArgument, note: note}
}

func checkKey(op Operation, key string) error {
	if !ValidKey(key) {
		return badArgument(op, `idempotency key: want 1 to 128 of letters, digits and "._:-"`)
	}
	return nil
}

func checkID(op Operation, id string) error {
	if !validID(id) {
		return badArgument(op, `booking id: want 1 to 128 of letters, digits and "_-"; give the id that the server answered`)
	}
	return nil
}

func checkVersion(op Operation, version string) error {
	if !validVersion(version) {
		return badArgument(op, "version: is empty or not one of the server; give the Version of the booking as it was last read")
	}
	return nil
}

func checkReference(op Operation, reference string) error {
	if !ValidReference(reference) {
		return badArgument(op, "client reference: want 1 to 63 of [a-z0-9-]")
	}
	return nil
}

// checkBooking says what makes a booking unusable, in words of this package. What
// it lets pass, callers may rely on.
func checkBooking(b Booking) string {
	switch {
	case !validID(b.ID):
		return "a booking without a valid id"
	case !validVersion(b.Version):
		return "a booking without a valid version"
	case !b.Status.Valid():
		return "a booking with an unknown status"
	case b.ClientReference != "" && !ValidReference(b.ClientReference):
		return "a booking with a client_reference that is not valid"
	}
	if _, err := b.Price.Cents(); err != nil {
		return "a booking without a valid price"
	}
	return ""
}

// checkAll also keeps a server that ignores the filter from giving one caller's
// look-up the bookings of another reference.
func checkAll(bs []Booking, reference string) string {
	for _, b := range bs {
		if reference != "" && b.ClientReference != reference {
			return "a booking of another reference than was asked for"
		}
		if note := checkBooking(b); note != "" {
			return note
		}
	}
	return ""
}

func sameID(b *Booking, id string) func() string {
	return func() string {
		if b.ID != id {
			return "another booking than was asked for"
		}
		return checkBooking(*b)
	}
}
