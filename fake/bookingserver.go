package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake/internal/serving"
	"github.com/tetherkube/tether/internal/wal"
)

// ReferenceUniqueness is what a server promises about client references.
type ReferenceUniqueness string

// How unique a client reference is among one caller's bookings.
const (
	// UniqueForever accepts a reference once; ended and renamed bookings count.
	UniqueForever ReferenceUniqueness = "forever"
	// UniqueLive accepts a reference that no pending, confirmed or flown booking has.
	UniqueLive ReferenceUniqueness = "live"
	// UniqueNone accepts every reference.
	UniqueNone ReferenceUniqueness = "none"
)

// BookingOptions configure a [BookingServer]. The zero value works.
type BookingOptions struct {
	// Seed fixes ids, record locators, prices, flights and drawn faults [0].
	Seed uint64
	// ReferenceUniqueness [UniqueForever].
	ReferenceUniqueness ReferenceUniqueness
	// KeyLifetime is how long an answer is kept under its idempotency key [24h].
	KeyLifetime time.Duration
	// RateLimit holds for each caller [none].
	RateLimit RateLimit
	// Authenticate names the caller that a token stands for, or refuses it [any
	// token, each a caller of its own]. The name is in the journal, unless the token
	// is refused, and faults may ask for it: it must not be the token.
	Authenticate func(token string) (caller string, ok bool)
	// Currency of the fares [EUR].
	Currency string
	// FixedFares is the share of routes and cabins whose fare cannot be changed
	// [0], at most 1.
	FixedFares float64
	// ReferenceLag is how far lists are behind; see SetReferenceLag [0].
	ReferenceLag time.Duration

	// ConfirmAfter is how long after its creation a booking is confirmed [at once].
	ConfirmAfter time.Duration
	// RescheduleAfter, AirlineCancelAfter and FlownAfter are when, after its
	// creation, the airline does so to a booking [never].
	RescheduleAfter, AirlineCancelAfter, FlownAfter time.Duration

	// JournalLimit is how many entries are kept; the oldest go first [100000].
	JournalLimit int
	// Log is called with each entry when it is done, by the goroutine that served
	// the request [nil].
	Log func(BookingEntry)
}

// Validate says what is wrong with o, and names each field.
func (o BookingOptions) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch o.ReferenceUniqueness {
	case "", UniqueForever, UniqueLive, UniqueNone:
	default:
		bad("ReferenceUniqueness: %.40q is unknown: want forever, live or none", o.ReferenceUniqueness)
	}
	if _, err := (booking.Money{Amount: "0", Currency: o.Currency}).Cents(); o.Currency != "" && err != nil {
		bad("Currency: %.20q is not an ISO 4217 code: want three capital letters, as EUR", o.Currency)
	}
	if !(o.FixedFares >= 0 && o.FixedFares <= 1) {
		bad("FixedFares: %v is not a share: want 0 to 1", o.FixedFares)
	}
	if o.RateLimit.Requests < 0 || o.RateLimit.Window < 0 || o.JournalLimit < 0 {
		bad("RateLimit and JournalLimit: want no negative numbers")
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"KeyLifetime", o.KeyLifetime},
		{"ReferenceLag", o.ReferenceLag},
		{"ConfirmAfter", o.ConfirmAfter},
		{"RescheduleAfter", o.RescheduleAfter},
		{"AirlineCancelAfter", o.AirlineCancelAfter},
		{"FlownAfter", o.FlownAfter},
	} {
		if d.d < 0 {
			bad("%s: %v is negative: want a duration from 0 on", d.name, d.d)
		}
	}
	return errors.Join(errs...)
}

func (o BookingOptions) withDefaults() BookingOptions {
	if o.ReferenceUniqueness == "" {
		o.ReferenceUniqueness = UniqueForever
	}
	if o.KeyLifetime == 0 {
		o.KeyLifetime = 24 * time.Hour
	}
	if o.Currency == "" {
		o.Currency = "EUR"
	}
	if o.JournalLimit == 0 {
		o.JournalLimit = 100_000
	}
	if o.Authenticate == nil {
		o.Authenticate = func(token string) (string, bool) { return CallerOf(token), true }
	}
	return o
}

// CallerOf is the name in the journal of the caller with a token, where the server
// takes any token. The token cannot be read from it.
func CallerOf(token string) string {
	sum := sha256.Sum256([]byte("booking caller " + token))
	return "caller-" + hex.EncodeToString(sum[:4])
}

// idle is how long a server keeps a connection without a request.
const idle = 2 * time.Minute

// BookingServer is a booking API whose bookings live in memory, or with a [State] on
// the disk as well. It is an
// http.Handler; to be reached it is started with Start, or asked for a Transport,
// or given to a server of the caller's own. It is safe for concurrent use.
type BookingServer struct {
	options BookingOptions
	journal *journal[BookingEntry]
	faults  *bookingFaults
	serving *serving.Serving

	mu      sync.Mutex // guards what follows
	url     string
	store   bookingStore
	keys    keeper[outcome]
	meters  map[string]*meter // by caller
	lag     time.Duration
	soldOut map[[3]string]bool // by from, to, date
	log     *wal.Log           // nil where nothing is kept
	owed    [][]byte           // what could not be written yet, and nobody could be told so
}

// NewBookingServer makes a server and starts nothing. It panics where
// [BookingOptions.Validate] says that the options are wrong: that is a mistake in
// the test.
func NewBookingServer(o BookingOptions) *BookingServer {
	if err := o.Validate(); err != nil {
		panic(fmt.Sprintf("fake: NewBookingServer: %v", err))
	}
	o = o.withDefaults()
	s := &BookingServer{
		options: o,
		journal: newJournal("booking server", o.JournalLimit, o.Log),
		faults:  &bookingFaults{seed: o.Seed, salt: "fault"},
		url:     "http://booking.memory",
		store:   newBookingStore(),
		keys:    keeper[outcome]{lifetime: o.KeyLifetime},
		meters:  map[string]*meter{},
		lag:     o.ReferenceLag,
		soldOut: map[[3]string]bool{},
	}
	s.serving = serving.New(s, serving.Options{Idle: idle})
	return s
}

// Start listens on a TCP address, as 127.0.0.1:0, and serves until Close. It may
// be called for more than one address.
func (s *BookingServer) Start(address string) error {
	got, err := s.serving.Listen(address)
	if err != nil {
		return fmt.Errorf("fake: booking server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url = "http://" + got
	return nil
}

// URL is the base URL: of the last Start, or before any one that only a Transport
// of this server reaches.
func (s *BookingServer) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Transport is a new transport that reaches the server without a socket, whatever
// the URL's host. The server closes it.
func (s *BookingServer) Transport() *http.Transport { return s.serving.Transport() }

// Client is an HTTP client over a new Transport.
func (s *BookingServer) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// Close cuts what runs, drops commits that have not landed, and returns when
// nothing of the server runs any more. It may be called more than once, and
// without a Start. State and journal can be read afterwards.
func (s *BookingServer) Close() { s.serving.Close() }

// clock is the time as it stands in bookings.
func clock() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// SetReferenceLag sets how far lists, with a reference and without, are behind:
// they show what was d ago. What is read by id, and what a close answers, does not
// lag.
func (s *BookingServer) SetReferenceLag(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = max(d, 0)
}

// ForgetKeys drops every answer that is kept under an idempotency key.
func (s *BookingServer) ForgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.forget()
	s.oweLocked(savedBookingEntry{Forget: true})
}

// Bookings is every booking of every caller as it stands now, in the order of
// creation. The slice is the caller's; what its elements point to is not to be
// written to.
func (s *BookingServer) Bookings() []booking.Booking {
	return s.bookings(func(booking.Booking) bool { return true })
}

// Live is the bookings under a reference that are pending, confirmed or flown, of
// every caller. As for Bookings, what they point to is read only.
func (s *BookingServer) Live(reference string) []booking.Booking {
	return s.bookings(func(b booking.Booking) bool { return b.ClientReference == reference && b.Status.Live() })
}

func (s *BookingServer) bookings(want func(booking.Booking) bool) []booking.Booking {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	var found []booking.Booking
	for _, r := range s.store.order {
		s.settleLocked(r, now)
		if s.store.records[r.current.ID] != nil && want(r.current) {
			found = append(found, r.current)
		}
	}
	return slices.Clip(found)
}
