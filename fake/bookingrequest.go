package fake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tetherkube/tether/booking"
)

// ServeHTTP answers one request. Where a fault cuts the connection it panics with
// http.ErrAbortHandler, as net/http has it.
func (s *BookingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.serving.Enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.serving.Leave()

	c, allow := route(r.Method, r.URL.Path)
	if c.op == "" {
		s.noSuchOperation(w, r, allow)
		return
	}
	if err := c.read(w, r); err != nil {
		panic(http.ErrAbortHandler)
	}
	caller, known := s.callerOf(r)
	sub := s.subjectOf(c, caller)
	met := s.faults.meet(sub, time.Now())
	e := s.journal.add(BookingEntry{
		Op: c.op, Method: r.Method, Caller: caller, Key: c.key,
		Reference: sub.reference, BookingID: c.id, Faults: met.kinds,
	})
	// Whatever cuts the request short, its entry says that it is over.
	status, replayed, problem, id := 0, false, booking.Kind(""), sub.bookingID
	defer func() {
		s.journal.update(e, func(e *BookingEntry) {
			e.Done, e.Status, e.Replayed, e.Problem = true, status, replayed, problem
			if e.BookingID == "" {
				e.BookingID = id
			}
		})
	}()

	o := s.before(w.Header(), caller, known, c, met)
	if o == nil {
		o = s.carryOut(r.Context(), caller, c, met, e)
	}
	if o.booking != nil {
		id = o.booking.ID
	}
	o = s.spoil(r.Context(), w, *o, met.answer)
	answer := o.render(w.Header())
	status, replayed, problem = o.status, o.replay, kindOf(o.problem)
	if f := met.answer; f != nil && !s.garble(w, &answer, f.Kind) {
		status = 0
		panic(http.ErrAbortHandler)
	}
	status = answer.status
	answer.send(w)
}

// callerOf names who sends a request; nobody where the token is refused, whatever
// Authenticate says of it.
func (s *BookingServer) callerOf(r *http.Request) (caller string, known bool) {
	if token := bearer(r.Header); token != "" {
		caller, known = s.options.Authenticate(token)
	}
	if !known {
		caller = ""
	}
	return caller, known
}

func kindOf(p *booking.Problem) booking.Kind {
	if p == nil {
		return ""
	}
	k, _ := p.Kind()
	return k
}

// noSuchOperation is outside the contract, and says so by the type about:blank: a
// wrong base URL must not look like a booking that does not exist.
func (s *BookingServer) noSuchOperation(w http.ResponseWriter, r *http.Request, allow []string) {
	status := http.StatusNotFound
	if len(allow) > 0 {
		status = http.StatusMethodNotAllowed
		w.Header().Set("Allow", strings.Join(allow, ", "))
	}
	e := s.journal.add(BookingEntry{Method: r.Method})
	defer s.journal.update(e, func(e *BookingEntry) { e.Done, e.Status = true, status })
	p := booking.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: "the booking API has no such operation; see booking/openapi.yaml"}
	outcome{status: status, problem: &p}.render(w.Header()).send(w)
}

// subjectOf is what a request is about. A booking of someone else is not told.
func (s *BookingServer) subjectOf(c bookingCall, caller string) bookingSubject {
	sub := bookingSubject{op: c.op, reference: c.ref, bookingID: c.id, caller: caller}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.store.records[c.id]; c.id != "" && r != nil && r.caller == caller {
		sub.reference = r.current.ClientReference
	}
	return sub
}

// before is everything that answers a request without carrying it out; nil where
// nothing does.
func (s *BookingServer) before(h http.Header, caller string, known bool, c bookingCall, m bookingMeeting) *outcome {
	if f := m.instead; f != nil {
		switch f.Kind {
		case BookingRateLimit, BookingInternal, BookingUnavailable:
			return faultAnswer(h, *f)
		case BookingCutBefore:
			panic(http.ErrAbortHandler)
		}
	}
	if !known {
		o := refuse(booking.Unauthorized, "send a bearer token that this server knows")
		return &o
	}
	s.mu.Lock()
	if s.meters[caller] == nil {
		s.meters[caller] = &meter{}
	}
	wait, ok := s.meters[caller].take(s.options.RateLimit, time.Now(), h)
	s.mu.Unlock()
	if !ok {
		return faultAnswer(h, BookingFault{Kind: BookingRateLimit, RetryAfter: wait})
	}
	if c.wrong != nil {
		o := refuseWith(c.wrong)
		return &o
	}
	return nil
}

func faultAnswer(h http.Header, f BookingFault) *outcome {
	kind := booking.Internal
	switch f.Kind {
	case BookingRateLimit:
		kind = booking.RateLimited
		f.RetryAfter = max(f.RetryAfter, time.Second)
	case BookingUnavailable:
		kind = booking.Unavailable
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(wholeSeconds(f.RetryAfter)))
	}
	o := refuse(kind, "")
	return &o
}

// carryOut does what the request asks for, at the time that faults leave for it.
func (s *BookingServer) carryOut(ctx context.Context, caller string, c bookingCall, m bookingMeeting, e *note[BookingEntry]) *outcome {
	if f := m.instead; f != nil && f.Kind == BookingLateCommit {
		s.landLater(caller, c, f.Delay, e)
		panic(http.ErrAbortHandler)
	}
	mutation := c.op.Mutation()
	if mutation {
		if o := s.beginKey(caller, c); o != nil {
			return o
		}
	}
	if m.delay > 0 {
		// A server goes on where the client has gone; only Close ends it.
		over := context.WithoutCancel(ctx)
		if !mutation {
			over = ctx
		}
		if !s.serving.Wait(over, m.delay) {
			s.releaseKey(caller, c)
			panic(http.ErrAbortHandler)
		}
	}
	var forced *booking.Problem
	if f := m.instead; f != nil && f.Kind == BookingProblem {
		forced = forcedProblem(f.Problem)
	}
	o, ok := s.commit(caller, c, forced, e)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	return &o
}

// forcedProblem has what the contract wants beside the type.
func forcedProblem(k booking.Kind) *booking.Problem {
	p := booking.NewProblem(k, "")
	switch k {
	case booking.InvalidRequest:
		p.Errors = []booking.FieldError{{Field: "from", Detail: "is not served"}}
	case booking.InvalidPassenger:
		p.Errors = []booking.FieldError{{Field: "passengers[0].given_name", Detail: "is not accepted by the airline"}}
	case booking.PriceAboveLimit:
		price := booking.Cents(999_900, "EUR")
		p.Price = &price
	case booking.ReferenceTaken:
		p.BookingID = "bk-unknown"
	}
	return &p
}

// commit carries a request out and keeps the answer, in one step under the lock:
// a key that stands for an effect has its answer from the moment of the effect on.
// It reports false where the server was closed before.
func (s *BookingServer) commit(caller string, c bookingCall, forced *booking.Problem, e *note[BookingEntry]) (outcome, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving.Over() {
		return outcome{}, false
	}
	o := s.operateLocked(caller, c, forced)
	if c.op.Mutation() {
		o = s.finishLocked(keyOf(caller, c), o)
	}
	s.journal.update(e, func(e *BookingEntry) {
		e.Effect = o.effect
		if o.booking != nil {
			e.BookingID = o.booking.ID
		}
	})
	return o, true
}

// finishLocked carries out what was decided, together with the answer under its key.
// Where it cannot be kept nothing is done, and the key stands for nothing.
func (s *BookingServer) finishLocked(key string, o outcome) outcome {
	change, now := o.change, time.Now()
	o.change = nil
	entry := savedBookingEntry{}
	if o.kept() {
		entry.Key = saveKey(s.keys.entries[key], o, now)
	}
	if change != nil || entry.Key != nil {
		if err := s.keepLocked(entry.with(change)); err != nil {
			s.keys.release(key)
			return refuse(booking.Internal, err.Error())
		}
	}
	if change != nil {
		s.store.apply(change)
	}
	if o.kept() {
		s.keys.finish(key, o, now)
	} else {
		s.keys.release(key)
	}
	return o
}

func (s *BookingServer) operateLocked(caller string, c bookingCall, forced *booking.Problem) outcome {
	if forced != nil {
		return refuseWith(forced)
	}
	now := clock()
	switch c.op {
	case booking.OpCreate:
		return s.createLocked(caller, c.create, now)
	case booking.OpChange:
		return s.changeLocked(caller, c.id, c.ifMatch, c.change, now)
	case booking.OpCancel:
		return s.cancelLocked(caller, c.id, c.ifMatch, now)
	case booking.OpClose:
		return s.closeLocked(caller, c.ref, now)
	case booking.OpList:
		return s.listLocked(caller, c.ref, c.after, c.limit, now)
	}
	return s.getLocked(caller, c.id, now)
}

// kept tells whether an answer is a result, which a replay gets again.
func (o outcome) kept() bool {
	if o.problem == nil {
		return true
	}
	switch kindOf(o.problem) {
	case booking.NotFound, booking.SoldOut, booking.PriceAboveLimit, booking.FareNotChangeable, booking.StatusConflict,
		booking.ReferenceTaken, booking.ReferenceClosed, booking.VersionMismatch, booking.InvalidPassenger:
		return true
	}
	return false
}

func keyOf(caller string, c bookingCall) string { return caller + " " + c.key }

// contentOf is what must be the same for a key to stand for the same request.
// Order of fields and white space do not count.
func contentOf(c bookingCall) [32]byte {
	var v any = map[string]any{}
	if len(c.body) > 0 {
		d := json.NewDecoder(bytes.NewReader(c.body))
		d.UseNumber()
		_ = d.Decode(&v) // it was decoded before: cannot fail
	}
	body, _ := json.Marshal(v)
	return sha256.Sum256([]byte(string(c.op) + "\n" + c.path + "\n" + string(body)))
}

// beginKey answers what is kept, or refuses, or takes the key and answers nil.
func (s *BookingServer) beginKey(caller string, c bookingCall) *outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	var o outcome
	state, kept := s.keys.begin(keyOf(caller, c), contentOf(c), time.Now())
	switch state {
	case keyNew:
		return nil
	case keyReused:
		o = refuse(booking.KeyReused, "")
	case keyRunning:
		o = refuse(booking.KeyInProgress, "")
	case keyKept:
		o = kept
		o.effect, o.replay = false, true
	}
	return &o
}

func (s *BookingServer) releaseKey(caller string, c bookingCall) {
	if !c.op.Mutation() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.release(keyOf(caller, c))
}

// landLater carries a request out after a time, as if it had been on its way until
// then: what it meets, its own key included, is judged when it lands.
func (s *BookingServer) landLater(caller string, c bookingCall, d time.Duration, e *note[BookingEntry]) {
	arrived := s.journal.get(e)
	s.serving.Go(func() {
		if !s.serving.Wait(context.Background(), d) {
			return
		}
		landed := s.journal.add(BookingEntry{
			Op: c.op, Method: arrived.Method, Caller: caller, Key: c.key,
			Reference: arrived.Reference, BookingID: c.id, Late: true,
		})
		var o *outcome
		if c.op.Mutation() {
			o = s.beginKey(caller, c)
		}
		if o == nil {
			done, _ := s.commit(caller, c, nil, landed) // the zero outcome where Close came first
			o = &done
		}
		s.journal.update(landed, func(e *BookingEntry) {
			e.Done, e.Replayed, e.Problem = true, o.replay, kindOf(o.problem)
		})
	})
}

// spoil does to an answer what happens before it is written. What it gives back
// is what is answered in its place.
func (s *BookingServer) spoil(ctx context.Context, w http.ResponseWriter, o outcome, f *BookingFault) *outcome {
	if f == nil {
		return &o
	}
	switch f.Kind {
	case BookingCutAfter:
		panic(http.ErrAbortHandler)
	case BookingInternalAfter:
		return faultAnswer(w.Header(), BookingFault{Kind: BookingInternal, RetryAfter: f.RetryAfter})
	case BookingLateAnswer:
		if !s.serving.Wait(ctx, f.Delay) {
			panic(http.ErrAbortHandler)
		}
	}
	return &o
}

// hugeBody is the size of the answer of BookingHuge in bytes.
const hugeBody = 10 << 20

// garble makes an answer into what no client can use. It reports false where it
// has written the answer itself, in part, and the connection is to be cut.
func (s *BookingServer) garble(w http.ResponseWriter, r *rendered, k BookingFaultKind) bool {
	switch k {
	case BookingMalformed:
		r.body = []byte(`{"id": "bk-`)
	case BookingWrongType:
		r.contentType, r.body = "text/html", []byte("<html><body>Please sign in</body></html>\n")
	case BookingHuge:
		r.body = append(append([]byte(`{"padding":"`), bytes.Repeat([]byte{'x'}, hugeBody)...), `"}`...)
	case BookingTruncated:
		w.Header().Set("Content-Type", r.contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
		w.WriteHeader(r.status)
		w.Write(r.body[:len(r.body)/2])
		http.NewResponseController(w).Flush()
		return false
	}
	return true
}
