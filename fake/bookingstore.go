package fake

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tetherkube/tether/booking"
)

// bookingRecord is one booking with its past. It is guarded by the server's lock.
// What a version points to never changes: a new one gets new pointers.
type bookingRecord struct {
	seq    int // in the order of creation; what a cursor counts in
	caller string
	lost   bool // as if it had never been, but for what it has spent
	// references are all that it ever stood under; the first is what it was asked
	// for under, and may be empty.
	references []string
	current    booking.Booking
	version    int
	versions   []bookingVersion // oldest first, current included
	plan       []plannedAct     // what the airline will do, soonest first
	seats      []string         // held from the start, told when confirmed
	flight     booking.Flight   // likewise
}

type bookingVersion struct {
	at      time.Time
	booking booking.Booking
}

// maxVersions bounds what is kept of a booking's past for look-ups that lag.
const maxVersions = 64

// outcome is what became of a request that was carried out.
type outcome struct {
	status  int
	problem *booking.Problem // nil for a success
	body    any              // nil for a problem
	booking *booking.Booking // what the answer is about, where it is one booking
	effect  bool
	replay  bool
	change  *bookingChange // what is to be carried out before it is answered; nil for nothing
}

func (o outcome) changing(c *bookingChange) outcome {
	o.change = c
	return o
}

// bookingChange is what a request does, decided and not yet done: it is kept, and
// then applied.
type bookingChange struct {
	record *bookingRecord // a new one, or the next state of one; nil for none
	taken  *takenSeats    // nil where none are given out
	closed *callerRef     // nil where none is closed
}

// takenSeats is how many seats are given out on a flight, day and cabin.
type takenSeats struct {
	on    string
	count int
}

func refuse(k booking.Kind, detail string) outcome {
	p := booking.NewProblem(k, detail)
	return outcome{status: p.Status, problem: &p}
}

func refuseWith(p *booking.Problem) outcome { return outcome{status: p.Status, problem: p} }

func answerWith(status int, b booking.Booking, effect bool) outcome {
	return outcome{status: status, body: b, booking: &b, effect: effect}
}

// bookingStore is what is booked. Its methods want the server's lock.
type bookingStore struct {
	records map[string]*bookingRecord      // by id
	order   []*bookingRecord               // by seq
	byRef   map[callerRef][]*bookingRecord // everything that ever had the reference
	closed  map[callerRef]bool
	created map[callerRef]int // bookings ever created, for their ids
	creates map[string]int    // the same by reference, for all callers together
	taken   map[string]int    // seats given out, by flight, day and cabin
}

type callerRef struct{ caller, reference string }

func newBookingStore() bookingStore {
	return bookingStore{
		records: map[string]*bookingRecord{}, byRef: map[callerRef][]*bookingRecord{},
		closed: map[callerRef]bool{}, created: map[callerRef]int{}, creates: map[string]int{}, taken: map[string]int{},
	}
}

// referenceLocked says why a reference cannot be given to a booking.
func (s *BookingServer) referenceLocked(caller, reference string, now time.Time) *booking.Problem {
	if reference == "" {
		return nil
	}
	at := callerRef{caller, reference}
	if s.store.closed[at] {
		p := booking.NewProblem(booking.ReferenceClosed, "")
		return &p
	}
	for _, r := range s.store.byRef[at] {
		s.settleLocked(r, now)
		forever := s.options.ReferenceUniqueness == UniqueForever
		live := s.options.ReferenceUniqueness == UniqueLive && r.current.Status.Live() && s.hasLocked(r, reference)
		if forever || live {
			p := booking.NewProblem(booking.ReferenceTaken, "")
			p.BookingID = r.current.ID
			return &p
		}
	}
	return nil
}

// fareLocked says why a journey cannot be had at the price.
func (s *BookingServer) fareLocked(b booking.Booking, limit *booking.Money) *booking.Problem {
	var p booking.Problem
	if s.soldOutLocked(b.From, b.To, b.DepartureDate) {
		p = booking.NewProblem(booking.SoldOut, "no seats are left from "+b.From+" to "+b.To+" on "+b.DepartureDate)
		return &p
	}
	if limit == nil {
		return nil
	}
	if limit.Currency != b.Price.Currency {
		var m mistakes
		m.add("max_price.currency", "fares are sold in %s: give the limit in it", b.Price.Currency)
		return m.problem(booking.InvalidRequest)
	}
	most, _ := limit.Cents() // validated before
	if asked, _ := b.Price.Cents(); asked > most {
		p = booking.NewProblem(booking.PriceAboveLimit, "the price is "+b.Price.Amount+" "+b.Price.Currency)
		p.Price = &b.Price
		return &p
	}
	return nil
}

// hasLocked tells whether a booking is there and stands under a reference now.
func (s *BookingServer) hasLocked(r *bookingRecord, reference string) bool {
	return s.store.records[r.current.ID] != nil && r.current.ClientReference == reference
}

func (s *BookingServer) createLocked(caller string, r booking.Request, now time.Time) outcome {
	if p := s.referenceLocked(caller, r.ClientReference, now); p != nil {
		return refuseWith(p)
	}
	if p := checkPassengers(r.Passengers, r.DepartureDate); p != nil {
		return refuseWith(p)
	}
	if r.Cabin == "" {
		r.Cabin = booking.Economy
	}
	b := booking.Booking{
		ClientReference: r.ClientReference, Status: booking.Pending,
		From: r.From, To: r.To, DepartureDate: r.DepartureDate, FlightNumber: r.FlightNumber, Cabin: r.Cabin,
		Passengers: r.Passengers, Contact: r.Contact,
		Price:          s.Price(r.From, r.To, r.Cabin, len(r.Passengers)),
		FareChangeable: s.fareChangeable(r.From, r.To, r.Cabin),
		BookedAt:       now,
	}
	if p := s.fareLocked(b, r.MaxPrice); p != nil {
		return refuseWith(p)
	}
	b.ID = s.newIDLocked(callerRef{caller, r.ClientReference})
	rec := &bookingRecord{seq: len(s.store.order) + 1, caller: caller, references: []string{r.ClientReference}, current: b}
	rec.flight = s.flightFor(b.From, b.To, b.DepartureDate, b.FlightNumber)
	change := &bookingChange{record: rec}
	rec.seats, change.taken = s.seatsLocked(rec.flight, b.Cabin, len(b.Passengers))
	rec.plan = s.options.plan(now)
	rec.write(now, func(*booking.Booking) {})
	s.settleLocked(rec, now)
	return answerWith(http.StatusCreated, rec.current, true).changing(change)
}

// clone is a record that can be changed while this one stands.
func (r *bookingRecord) clone() *bookingRecord {
	next := *r
	next.versions = slices.Clone(r.versions) // write drops the oldest in place
	return &next
}

// apply does what was decided.
func (st *bookingStore) apply(c *bookingChange) {
	if c.taken != nil {
		st.taken[c.taken.on] = c.taken.count
	}
	if c.closed != nil {
		st.closed[*c.closed] = true
	}
	r := c.record
	if r == nil {
		return
	}
	if r.seq > len(st.order) {
		st.order = append(st.order, r)
		st.records[r.current.ID] = r
		st.created[callerRef{r.caller, r.references[0]}]++
		st.creates[r.references[0]]++
	} else {
		// Others point to the record.
		was := st.order[r.seq-1]
		*was = *r
		r = was
	}
	if r.lost {
		delete(st.records, r.current.ID)
	}
	for _, reference := range r.references {
		at := callerRef{r.caller, reference}
		if reference != "" && !slices.Contains(st.byRef[at], r) {
			st.byRef[at] = append(st.byRef[at], r)
		}
	}
}

// newIDLocked depends on caller and reference, so that the order in which requests
// about different references arrive does not matter.
func (s *BookingServer) newIDLocked(at callerRef) string {
	for salt := 0; ; salt++ {
		id := "bk-" + spell(hash(s.options.Seed, "id", at.caller, at.reference, strconv.Itoa(s.store.created[at]+1), strconv.Itoa(salt)), idAlphabet, 14)
		if s.store.records[id] == nil {
			return id
		}
	}
}

func (s *BookingServer) seatsLocked(f booking.Flight, cabin booking.Cabin, n int) ([]string, *takenSeats) {
	on := f.Number + " " + f.DepartureTime.Format(time.DateOnly) + " " + string(cabin)
	taken := &takenSeats{on, s.store.taken[on]}
	seats := make([]string, n)
	for i := range seats {
		seats[i] = seat(taken.count)
		taken.count++
	}
	return seats, taken
}

// write makes the next version.
func (r *bookingRecord) write(now time.Time, f func(*booking.Booking)) {
	r.version++
	f(&r.current)
	r.current.Version = "v" + strconv.Itoa(r.version)
	r.current.UpdatedAt = now
	if len(r.versions) == maxVersions {
		r.versions = slices.Delete(r.versions, 0, 1)
	}
	r.versions = append(r.versions, bookingVersion{now, r.current})
}

// asOf is how the booking stood at a time.
func (r *bookingRecord) asOf(t time.Time) (booking.Booking, bool) {
	for _, v := range slices.Backward(r.versions) {
		if !v.at.After(t) {
			return v.booking, true
		}
	}
	return booking.Booking{}, false
}

// findLocked is a caller's booking with what the airline did to it by now.
func (s *BookingServer) findLocked(caller, id string, now time.Time) (*bookingRecord, *booking.Problem) {
	r := s.store.records[id]
	if r == nil || r.caller != caller {
		p := booking.NewProblem(booking.NotFound, "")
		return nil, &p
	}
	s.settleLocked(r, now)
	return r, nil
}

func (r *bookingRecord) matches(ifMatch string) *booking.Problem {
	if ifMatch == "*" || ifMatch == `"`+r.current.Version+`"` {
		return nil
	}
	p := booking.NewProblem(booking.VersionMismatch, "")
	return &p
}

func (s *BookingServer) getLocked(caller, id string, now time.Time) outcome {
	r, p := s.findLocked(caller, id, now)
	if p != nil {
		return refuseWith(p)
	}
	return answerWith(http.StatusOK, r.current, false)
}

// listLocked shows what look-ups by reference have caught up with.
func (s *BookingServer) listLocked(caller, reference string, after, limit int, now time.Time) outcome {
	records := s.store.order
	if reference != "" {
		records = s.store.byRef[callerRef{caller, reference}]
		records = slices.SortedFunc(slices.Values(records), func(a, b *bookingRecord) int { return a.seq - b.seq })
	}
	page := booking.Page{Bookings: []booking.Booking{}}
	last := 0
	for _, r := range records {
		if r.seq <= after || r.caller != caller {
			continue
		}
		s.settleLocked(r, now)
		b, ok := r.asOf(now.Add(-s.lag))
		if !ok || (reference != "" && b.ClientReference != reference) || s.store.records[b.ID] == nil {
			continue
		}
		if len(page.Bookings) == limit {
			cursor := encodeCursor(reference, last)
			page.NextCursor = &cursor
			break
		}
		page.Bookings = append(page.Bookings, b)
		last = r.seq
	}
	return outcome{status: http.StatusOK, body: page}
}
