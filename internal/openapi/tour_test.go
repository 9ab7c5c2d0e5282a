package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// tour sends requests to a server and remembers which answers it has seen.
type tour struct {
	t        *testing.T
	contract contract
	server   *fake.BookingServer
	inner    http.RoundTripper
	seen     map[string]bool
	keys     int
}

func newTour(t *testing.T, o fake.BookingOptions) *tour {
	s := fake.NewBookingServer(o)
	t.Cleanup(s.Close)
	return &tour{t: t, contract: load(t), server: s, inner: s.Transport(), seen: map[string]bool{}}
}

// stop is one request with what it should meet. Headers that are not given are
// those of a good request; "-" leaves one out.
type stop struct {
	op      booking.Operation
	id      string // for get, change, cancel; the reference for close
	query   string
	body    string
	headers map[string]string
	fault   *fake.BookingFault
	kind    booking.Kind // "" for a success
	// invalid says that the document itself forbids the request.
	invalid bool
}

var methods = map[booking.Operation][2]string{
	booking.OpCreate: {"POST", "/v1/bookings"},
	booking.OpList:   {"GET", "/v1/bookings"},
	booking.OpGet:    {"GET", "/v1/bookings/%s"},
	booking.OpChange: {"PATCH", "/v1/bookings/%s"},
	booking.OpCancel: {"POST", "/v1/bookings/%s/cancel"},
	booking.OpClose:  {"POST", "/v1/references/%s/close"},
}

func (tr *tour) visit(s stop) (b booking.Booking) {
	t := tr.t
	t.Helper()
	url := tr.server.URL() + methods[s.op][1]
	if strings.Contains(url, "%s") {
		url = fmt.Sprintf(url, s.id)
	}
	req, err := http.NewRequestWithContext(t.Context(), methods[s.op][0], url+s.query, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	if s.body == "" {
		req.Body = http.NoBody
	}
	tr.headers(req, s)
	if s.fault != nil {
		defer tr.server.Inject(*s.fault).Remove()
	}
	about := fmt.Sprintf("%s %s: %s", req.Method, req.URL, s.body)
	transport := checked{
		contract: tr.contract, inner: tr.inner,
		request: func(_ *http.Request, err error) {
			if (err != nil) != s.invalid {
				t.Errorf("%s\nthe document says of the request: %v", about, err)
			}
		},
		answer: func(_ *http.Request, err error) {
			if err != nil {
				t.Errorf("%s\nthe document says of the answer: %v", about, err)
			}
		},
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	var p booking.Problem
	kind := booking.Kind("")
	if resp.StatusCode >= 400 {
		if err := json.Unmarshal(text, &p); err != nil {
			t.Errorf("%s: %v", about, err)
		}
		kind, _ = p.Kind()
	}
	if kind != s.kind {
		t.Fatalf("%s\ngot %d %s, want kind %q", about, resp.StatusCode, text, string(s.kind))
	}
	tr.seen[fmt.Sprintf("%s %d %s", s.op, resp.StatusCode, string(kind))] = true
	if kind == "" && s.op != booking.OpList && s.op != booking.OpClose {
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (tr *tour) headers(req *http.Request, s stop) {
	req.Header.Set("Authorization", "Bearer tour")
	if s.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.op.Mutation() {
		tr.keys++
		req.Header.Set("Idempotency-Key", fmt.Sprint("key-", tr.keys))
	}
	if s.op == booking.OpChange || s.op == booking.OpCancel {
		req.Header.Set("If-Match", "*")
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
		if value == "-" {
			req.Header.Del(name)
		}
	}
}

func body(reference string, edits ...string) string {
	b := `{"client_reference":"` + reference + `","from":"ICN","to":"JFK","departure_date":"2027-05-01","passengers":[{"given_name":"Test","family_name":"Passenger"}]}`
	return strings.NewReplacer(edits...).Replace(b)
}

func header(name, value string) map[string]string { return map[string]string{name: value} }

// TestATourMeetsEveryAnswerOfTheDocument also fails where the document promises an
// answer that the server never gives.
func TestATourMeetsEveryAnswerOfTheDocument(t *testing.T) {
	tr := newTour(t, fake.BookingOptions{Seed: 3, RateLimit: fake.RateLimit{Requests: 1000}})
	tr.successes()
	tr.refusalsOfCreate()
	tr.refusalsOfChange()
	for op := range methods {
		tr.refusalsOfAll(op)
	}
	for promise := range tr.contract.promises() {
		if !tr.seen[promise] {
			t.Errorf("the document has an answer that the tour did not meet: %s", promise)
		}
		delete(tr.seen, promise)
	}
	for answer := range tr.seen {
		t.Errorf("an answer that the document does not have: %s", answer)
	}
}

func (tr *tour) successes() {
	full := `{"client_reference":"full","from":"ICN","to":"JFK","departure_date":"2027-05-01","flight_number":"KE081","cabin":"business",` +
		`"passengers":[{"given_name":"Test","family_name":"Passenger","date_of_birth":"1990-12-31"},{"given_name":"Second","family_name":"O'Neil-김"}],` +
		`"contact":{"email":"a@example.com","phone":"+82212345678"},"max_price":{"amount":"99999.5","currency":"EUR"}}`
	b := tr.visit(stop{op: booking.OpCreate, body: full, headers: header("Idempotency-Key", "replay")})
	tr.visit(stop{op: booking.OpCreate, body: full, headers: header("Idempotency-Key", "replay")})
	tr.visit(stop{op: booking.OpCreate, body: body("", `"client_reference":"",`, "")})
	tr.visit(stop{op: booking.OpGet, id: b.ID})
	tr.visit(stop{op: booking.OpChange, id: b.ID, headers: header("If-Match", `"`+b.Version+`"`), body: `{"departure_date":"2027-06-01","flight_number":"","cabin":"first","contact":{},"max_price":{"amount":"99999","currency":"EUR"},"client_reference":"moved"}`})
	if err := tr.server.Reschedule(b.ID, 3600e9); err != nil {
		tr.t.Fatal(err)
	}
	tr.visit(stop{op: booking.OpGet, id: b.ID})
	tr.visit(stop{op: booking.OpList})
	tr.visit(stop{op: booking.OpList, query: "?client_reference=moved&limit=1"})
	tr.visit(stop{op: booking.OpClose, id: "moved"})
	tr.visit(stop{op: booking.OpClose, id: "moved", body: "{}"})
	tr.visit(stop{op: booking.OpCancel, id: b.ID})
	tr.visit(stop{op: booking.OpCancel, id: b.ID, body: "{}"})
	for i, end := range []func(string) error{tr.server.Fly, func(id string) error { return tr.server.CancelByAirline(id, "snow") }} {
		b := tr.visit(stop{op: booking.OpCreate, body: body(fmt.Sprint("end-", i))})
		if err := end(b.ID); err != nil {
			tr.t.Fatal(err)
		}
		tr.visit(stop{op: booking.OpGet, id: b.ID})
	}
}

func (tr *tour) refusalsOfCreate() {
	tr.visit(stop{op: booking.OpCreate, body: body("taken")})
	tr.visit(stop{op: booking.OpClose, id: "closed"})
	tr.server.SellOut("CDG", "JFK", "", true)
	for _, s := range []stop{
		{body: body("taken"), kind: booking.ReferenceTaken},
		{body: body("closed"), kind: booking.ReferenceClosed},
		{body: body("r1", "ICN", "CDG"), kind: booking.SoldOut},
		{body: body("r2", `"from"`, `"max_price":{"amount":"0.01","currency":"EUR"},"from"`), kind: booking.PriceAboveLimit},
		{body: body("r3", "Test", "R2D2"), kind: booking.InvalidPassenger},
		{body: body("r4", `"Test"`, `"Test","date_of_birth":"2030-01-01"`), kind: booking.InvalidPassenger},
		{body: body("r5", "JFK", "ICN"), kind: booking.InvalidRequest}, // two fields at once: no schema says it
		{body: body("r6", `"from"`, `"max_price":{"amount":"1","currency":"USD"},"from"`), kind: booking.InvalidRequest},
		{body: body("r7", "JFK", "New York"), kind: booking.InvalidRequest, invalid: true},
		{body: body("R8"), kind: booking.InvalidRequest, invalid: true},
		{body: body("r9", "2027-05-01", "2027-02-31"), kind: booking.InvalidRequest, invalid: true},
		{body: body("r10", `"from"`, `"cabin":"roof","from"`), kind: booking.InvalidRequest, invalid: true},
		{body: body("r11", `"from"`, `"seat":"1A","from"`), kind: booking.InvalidRequest, invalid: true},
		{body: body("r12", `"from"`, `"max_price":{"amount":"1e3","currency":"EUR"},"from"`), kind: booking.InvalidRequest, invalid: true},
		{body: body("r13", `[{"given_name":"Test","family_name":"Passenger"}]`, `[]`), kind: booking.InvalidRequest, invalid: true},
		{body: `{"from":`, kind: booking.InvalidRequest, invalid: true},
		{body: `[]`, kind: booking.InvalidRequest, invalid: true},
	} {
		s.op = booking.OpCreate
		tr.visit(s)
	}
}

func (tr *tour) refusalsOfChange() {
	b := tr.visit(stop{op: booking.OpCreate, body: body("change")})
	flown := tr.visit(stop{op: booking.OpCreate, body: body("flown")})
	fixed := tr.visit(stop{op: booking.OpCreate, body: body("fixed")})
	if err := tr.server.Fly(flown.ID); err != nil {
		tr.t.Fatal(err)
	}
	if err := tr.server.SetFareChangeable(fixed.ID, false); err != nil {
		tr.t.Fatal(err)
	}
	tr.server.SellOut("ICN", "JFK", "2027-12-24", true)
	for _, s := range []stop{
		{id: fixed.ID, body: `{"cabin":"first"}`, kind: booking.FareNotChangeable},
		{id: flown.ID, body: `{"cabin":"first"}`, kind: booking.StatusConflict},
		{id: b.ID, body: `{"departure_date":"2027-12-24"}`, kind: booking.SoldOut},
		{id: b.ID, body: `{"cabin":"first","max_price":{"amount":"1","currency":"EUR"}}`, kind: booking.PriceAboveLimit},
		{id: b.ID, body: `{"client_reference":"taken"}`, kind: booking.ReferenceTaken},
		{id: b.ID, body: `{"client_reference":"closed"}`, kind: booking.ReferenceClosed},
		{id: b.ID, body: `{}`, kind: booking.InvalidRequest, invalid: true},
		{id: b.ID, body: `{"passengers":[]}`, kind: booking.InvalidRequest, invalid: true},
		{id: b.ID, body: `{"cabin":"first"}`, headers: header("If-Match", "v1"), kind: booking.InvalidRequest, invalid: true},
	} {
		s.op = booking.OpChange
		tr.visit(s)
	}
	tr.visit(stop{op: booking.OpCancel, id: flown.ID, kind: booking.StatusConflict})
}

// refusalsOfAll are those that operations have in common.
func (tr *tour) refusalsOfAll(op booking.Operation) {
	mine := tr.visit(stop{op: booking.OpCreate, body: body("all-" + string(op))})
	good := stop{op: op, id: mine.ID}
	switch op {
	case booking.OpCreate:
		good.body = body("unused-" + string(op))
	case booking.OpChange:
		good.body = `{"contact":{"email":"b@example.com"}}`
	case booking.OpClose:
		good.id = "unused-" + string(op)
	}
	but := func(k booking.Kind, edit func(*stop)) {
		s := good
		s.kind = k
		edit(&s)
		tr.visit(s)
	}
	fault := func(k fake.BookingFaultKind, p booking.Kind) func(*stop) {
		return func(s *stop) { s.fault = &fake.BookingFault{Kind: k, Problem: p} }
	}
	but(booking.Unauthorized, func(s *stop) { s.headers, s.invalid = header("Authorization", "-"), true })
	but(booking.Forbidden, fault(fake.BookingProblem, booking.Forbidden))
	but(booking.RateLimited, fault(fake.BookingRateLimit, ""))
	but(booking.Internal, fault(fake.BookingInternal, ""))
	but(booking.Unavailable, fault(fake.BookingUnavailable, ""))
	if op != booking.OpCreate && op != booking.OpList && op != booking.OpClose {
		but(booking.NotFound, func(s *stop) { s.id = "bk-none" })
	}
	if op == booking.OpList {
		but(booking.InvalidRequest, func(s *stop) { s.query, s.invalid = "?limit=0", true })
		but(booking.InvalidRequest, func(s *stop) { s.query = "?cursor=nowhere" })
	}
	if !op.Mutation() {
		return
	}
	but(booking.InvalidRequest, func(s *stop) { s.headers, s.invalid = header("Idempotency-Key", "-"), true })
	but(booking.KeyInProgress, fault(fake.BookingProblem, booking.KeyInProgress))
	but(booking.TooLarge, func(s *stop) { s.body, s.invalid = `{"x":"`+strings.Repeat("x", 65<<10)+`"}`, true })
	but(booking.UnsupportedMediaType, func(s *stop) {
		s.body, s.headers, s.invalid = "from=ICN", header("Content-Type", "application/x-www-form-urlencoded"), true
	})
	but(booking.KeyReused, func(s *stop) { s.headers = header("Idempotency-Key", "replay") })
	if op == booking.OpChange || op == booking.OpCancel {
		but(booking.VersionMismatch, func(s *stop) { s.headers = header("If-Match", `"v0"`) })
		but(booking.VersionRequired, func(s *stop) { s.headers, s.invalid = header("If-Match", "-"), true })
	}
}
