package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tetherkube/tether/booking"
)

// savedBookingEntry is one record of a booking server's log: what one request, or
// one act of the airline, has left behind. All of it holds together.
type savedBookingEntry struct {
	Booking *savedBooking `json:"booking,omitempty"` // new, or in place of the one with its Seq
	Taken   *savedTaken   `json:"taken,omitempty"`
	Closed  *savedClosed  `json:"closed,omitempty"`
	Key     *savedKey     `json:"key,omitempty"`
	SoldOut *savedSoldOut `json:"sold_out,omitempty"`
	Forget  bool          `json:"forget_keys,omitempty"`
}

type savedBooking struct {
	Seq        int            `json:"seq"`
	Caller     string         `json:"caller"`
	Lost       bool           `json:"lost,omitempty"`
	References []string       `json:"references"`
	Version    int            `json:"version"`
	Versions   []savedVersion `json:"versions"` // oldest first; the last is how it stands
	Plan       []savedAct     `json:"plan,omitempty"`
	Seats      []string       `json:"seats"`
	Flight     booking.Flight `json:"flight"`
}

type savedVersion struct {
	At      time.Time       `json:"at"`
	Booking booking.Booking `json:"booking"`
}

type savedAct struct {
	At   time.Time `json:"at"`
	Kind actKind   `json:"kind"`
}

type savedTaken struct {
	On    string `json:"on"`
	Count int    `json:"count"`
}

type savedClosed struct {
	Caller    string `json:"caller"`
	Reference string `json:"reference"`
}

type savedKey struct {
	Key     string                   `json:"key"`
	Content []byte                   `json:"content"`
	At      time.Time                `json:"at"`
	Status  int                      `json:"status"`
	Problem *booking.Problem         `json:"problem,omitempty"`
	Booking *booking.Booking         `json:"booking,omitempty"`
	Closed  *booking.ClosedReference `json:"closed,omitempty"`
}

type savedSoldOut struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Date    string `json:"date"`
	SoldOut bool   `json:"sold_out"`
}

func saveKey(k *kept[outcome], o outcome, at time.Time) *savedKey {
	if k == nil {
		return nil // forgotten meanwhile
	}
	saved := &savedKey{Key: k.key, Content: k.content[:], At: at, Status: o.status, Problem: o.problem, Booking: o.booking}
	if closed, ok := o.body.(booking.ClosedReference); ok {
		saved.Closed = &closed
	}
	return saved
}

// outcome is the answer that was kept.
func (k *savedKey) outcome() outcome {
	o := outcome{status: k.Status, problem: k.Problem, booking: k.Booking}
	switch {
	case k.Closed != nil:
		o.body = *k.Closed
	case k.Booking != nil:
		o.body = *k.Booking
	}
	return o
}

func saveBooking(r *bookingRecord) *savedBooking {
	saved := &savedBooking{
		Seq: r.seq, Caller: r.caller, Lost: r.lost, References: r.references, Version: r.version, Seats: r.seats, Flight: r.flight,
	}
	for _, v := range r.versions {
		saved.Versions = append(saved.Versions, savedVersion{v.at, v.booking})
	}
	for _, p := range r.plan {
		saved.Plan = append(saved.Plan, savedAct{p.at, p.kind})
	}
	return saved
}

func (b *savedBooking) record() (*bookingRecord, error) {
	if len(b.Versions) == 0 || len(b.References) == 0 {
		return nil, errors.New("a booking without a version or a reference")
	}
	r := &bookingRecord{
		seq: b.Seq, caller: b.Caller, lost: b.Lost, references: b.References, version: b.Version, seats: b.Seats, flight: b.Flight,
		current: b.Versions[len(b.Versions)-1].Booking,
	}
	for _, v := range b.Versions {
		r.versions = append(r.versions, bookingVersion{v.At, v.Booking})
	}
	for _, p := range b.Plan {
		if plannable[p.Kind] == nil {
			return nil, fmt.Errorf("the airline has no act %q", p.Kind)
		}
		r.plan = append(r.plan, plannedAct{p.At, p.Kind})
	}
	return r, nil
}

// with is the entry with a change, which may be nil.
func (e savedBookingEntry) with(c *bookingChange) savedBookingEntry {
	if c == nil {
		return e
	}
	if c.record != nil {
		e.Booking = saveBooking(c.record)
	}
	if c.taken != nil {
		e.Taken = &savedTaken{c.taken.on, c.taken.count}
	}
	if c.closed != nil {
		e.Closed = &savedClosed{c.closed.caller, c.closed.reference}
	}
	return e
}

func (e savedBookingEntry) encode() []byte {
	raw, err := json.Marshal(e)
	if err != nil {
		panic("fake: a booking cannot be encoded: " + err.Error()) // our own types
	}
	return raw
}

// change is what the entry does to bookings.
func (e savedBookingEntry) change() (*bookingChange, error) {
	c := &bookingChange{}
	if e.Booking != nil {
		var err error
		if c.record, err = e.Booking.record(); err != nil {
			return nil, err
		}
	}
	if e.Taken != nil {
		c.taken = &takenSeats{e.Taken.On, e.Taken.Count}
	}
	if e.Closed != nil {
		c.closed = &callerRef{e.Closed.Caller, e.Closed.Reference}
	}
	return c, nil
}

// replay does again what a record of the log says.
func (s *BookingServer) replay(raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e savedBookingEntry
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	change, err := e.change()
	if err != nil {
		return err
	}
	if r := change.record; r != nil && (r.seq < 1 || r.seq > len(s.store.order)+1) {
		return fmt.Errorf("booking %d comes after %d", r.seq, len(s.store.order))
	}
	s.store.apply(change)
	if e.Forget {
		s.keys.forget()
	}
	if k := e.Key; k != nil {
		if len(k.Content) != 32 {
			return errors.New("a key without what it stands for")
		}
		s.keys.restore(k.Key, [32]byte(k.Content), k.outcome(), k.At)
	}
	if so := e.SoldOut; so != nil {
		s.soldOut[[3]string{so.From, so.To, so.Date}] = so.SoldOut
	}
	return nil
}

// snapshot is records that make a server as this one is.
func (s *BookingServer) snapshot() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for e := range s.savedLocked() {
			if !yield(e.encode()) {
				return
			}
		}
	}
}

func (s *BookingServer) savedLocked() iter.Seq[savedBookingEntry] {
	return func(yield func(savedBookingEntry) bool) {
		for _, r := range s.store.order {
			if !yield(savedBookingEntry{Booking: saveBooking(r)}) {
				return
			}
		}
		for _, on := range slices.Sorted(maps.Keys(s.store.taken)) {
			if !yield(savedBookingEntry{Taken: &savedTaken{on, s.store.taken[on]}}) {
				return
			}
		}
		for at := range s.store.closed {
			if !yield(savedBookingEntry{Closed: &savedClosed{at.caller, at.reference}}) {
				return
			}
		}
		s.keys.expire(time.Now())
		for _, k := range s.keys.order {
			if !yield(savedBookingEntry{Key: saveKey(k, k.answer, k.at)}) {
				return
			}
		}
		for journey, is := range s.soldOut {
			if !yield(savedBookingEntry{SoldOut: &savedSoldOut{journey[0], journey[1], journey[2], is}}) {
				return
			}
		}
	}
}

// keepLocked has an entry on the disk, and what was owed before it.
func (s *BookingServer) keepLocked(e savedBookingEntry) error {
	if s.log == nil {
		return nil
	}
	if err := s.log.Append(append(slices.Clip(s.owed), e.encode())...); err != nil {
		return err
	}
	s.owed = nil
	return nil
}

// oweLocked is keepLocked for what has been done already, by a caller who is told of
// no error: where it cannot be kept now, it goes with the next entry.
func (s *BookingServer) oweLocked(e savedBookingEntry) {
	if err := s.keepLocked(e); err != nil {
		s.owed = append(s.owed, e.encode())
	}
}

// carryLocked keeps a change and applies it.
func (s *BookingServer) carryLocked(what string, c *bookingChange) error {
	if err := s.keepLocked(savedBookingEntry{}.with(c)); err != nil {
		return fmt.Errorf("fake: %s: %w", what, err)
	}
	s.store.apply(c)
	return nil
}
