package booking

import "time"

// Status is where a booking stands.
//
// A booking starts Pending or Confirmed. Pending becomes Confirmed or Failed;
// Pending and Confirmed may be Cancelled; Confirmed becomes Flown.
type Status string

// The statuses of a booking.
const (
	Pending   Status = "pending"   // asked for; the airline has not answered yet
	Confirmed Status = "confirmed" // seats are held
	Cancelled Status = "cancelled" // by the caller or by the airline; final
	Failed    Status = "failed"    // never confirmed; final
	Flown     Status = "flown"     // the flight has left; final
)

// Valid reports whether s is a status of the contract.
func (s Status) Valid() bool {
	switch s {
	case Pending, Confirmed, Cancelled, Failed, Flown:
		return true
	}
	return false
}

// Live reports whether a booking with this status holds, will hold or has used
// seats: it is neither cancelled nor failed.
func (s Status) Live() bool { return s == Pending || s == Confirmed || s == Flown }

// Cabin is a class of travel.
type Cabin string

// The cabins of the contract.
const (
	Economy  Cabin = "economy" // what a request without a cabin means
	Premium  Cabin = "premium"
	Business Cabin = "business"
	First    Cabin = "first"
)

// Valid reports whether c is a cabin of the contract.
func (c Cabin) Valid() bool {
	switch c {
	case Economy, Premium, Business, First:
		return true
	}
	return false
}

// Passenger is one person who flies.
type Passenger struct {
	GivenName   string `json:"given_name"`
	FamilyName  string `json:"family_name"`
	DateOfBirth string `json:"date_of_birth,omitempty"` // YYYY-MM-DD
}

// Contact is whom the airline tells about changes. Both fields are optional.
type Contact struct {
	Email string `json:"email,omitempty"`
	Phone string `json:"phone,omitempty"` // E.164, as +82212345678
}

// Request is what to book.
type Request struct {
	// ClientReference is the caller's own name for the booking, at most 63 of
	// [a-z0-9-]. Whether it is unique is a property of the server.
	ClientReference string `json:"client_reference,omitempty"`
	From            string `json:"from"`                    // IATA code of an airport
	To              string `json:"to"`                      // IATA code of another airport
	DepartureDate   string `json:"departure_date"`          // YYYY-MM-DD, local to From
	FlightNumber    string `json:"flight_number,omitempty"` // as KE081; empty: any flight of the day
	Cabin           Cabin  `json:"cabin,omitempty"`         // empty: Economy

	Passengers []Passenger `json:"passengers"` // 1 to 9
	Contact    *Contact    `json:"contact,omitempty"`
	// MaxPrice is the limit for all passengers together, for this call only.
	MaxPrice *Money `json:"max_price,omitempty"`
}

// Change is what to change about a booking. A nil field stays as it is.
type Change struct {
	// ClientReference puts the booking under another reference. It is allowed
	// whatever the booking's status is; the other fields want a booking that is
	// pending or confirmed.
	ClientReference *string `json:"client_reference,omitempty"`
	DepartureDate   *string `json:"departure_date,omitempty"`
	FlightNumber    *string `json:"flight_number,omitempty"` // "" lets the airline choose
	Cabin           *Cabin  `json:"cabin,omitempty"`
	// Contact replaces the whole contact.
	Contact *Contact `json:"contact,omitempty"`
	// MaxPrice is the limit for this call only. Alone it changes nothing.
	MaxPrice *Money `json:"max_price,omitempty"`
}

// Booking is a booking as the server tells it. From, To, DepartureDate,
// FlightNumber, Cabin, Passengers and Contact are what was asked for.
type Booking struct {
	ID              string `json:"id"`
	ClientReference string `json:"client_reference,omitempty"`
	// Version changes with every change of the booking. It is what [Client.Change]
	// and [Client.Cancel] take; in HTTP it stands quoted in ETag and If-Match.
	Version string `json:"version"`
	Status  Status `json:"status"`

	From          string      `json:"from"`
	To            string      `json:"to"`
	DepartureDate string      `json:"departure_date"`
	FlightNumber  string      `json:"flight_number,omitempty"`
	Cabin         Cabin       `json:"cabin"`
	Passengers    []Passenger `json:"passengers"`
	Contact       *Contact    `json:"contact,omitempty"`

	// RecordLocator is the airline's name for the booking. Empty while pending.
	RecordLocator string `json:"record_locator,omitempty"`
	// Flight is the flight that was booked. Nil while pending.
	Flight *Flight `json:"flight,omitempty"`
	// Seats has one seat for each passenger, in their order. Empty while pending.
	Seats []string `json:"seats,omitempty"`
	// Price is for all passengers together.
	Price Money `json:"price"`
	// FareChangeable says whether date, flight and cabin may be changed.
	FareChangeable bool      `json:"fare_changeable"`
	BookedAt       time.Time `json:"booked_at"`
	UpdatedAt      time.Time `json:"updated_at"`

	// ScheduleChange is the last change that the airline made to the flight.
	ScheduleChange *ScheduleChange `json:"schedule_change,omitempty"`
	// Cancellation is set if and only if Status is Cancelled.
	Cancellation *Cancellation `json:"cancellation,omitempty"`
	// FailureReason is set if and only if Status is Failed.
	FailureReason string `json:"failure_reason,omitempty"`
}

// Flight is a flight on a day.
type Flight struct {
	Number        string    `json:"number"`
	DepartureTime time.Time `json:"departure_time"`
}

// ScheduleChange tells of a flight that leaves at another time than booked.
type ScheduleChange struct {
	PreviousDepartureTime time.Time `json:"previous_departure_time"`
	ChangedAt             time.Time `json:"changed_at"`
}

// Party is one of the two sides of a booking.
type Party string

// The parties to a booking.
const (
	ByCaller  Party = "caller"
	ByAirline Party = "airline"
)

// Cancellation tells who cancelled a booking.
type Cancellation struct {
	By     Party     `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Page is one page of a list.
type Page struct {
	Bookings []Booking `json:"bookings"`
	// NextCursor asks for the next page. Nil on the last one.
	NextCursor *string `json:"next_cursor"`
}

// ClosedReference is the answer to the close of a reference.
type ClosedReference struct {
	ClientReference string `json:"client_reference"`
	// Closed is always true.
	Closed bool `json:"closed"`
	// Bookings are all bookings under the reference, of every status. No other
	// can be created under it.
	Bookings []Booking `json:"bookings"`
}
