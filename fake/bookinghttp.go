package fake

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tetherkube/tether/booking"
)

// maxRequest bounds the body of a request in bytes.
const maxRequest = 64 << 10

// bookingCall is one request, read and understood as far as it goes.
type bookingCall struct {
	op      booking.Operation
	id      string // for get, change and cancel
	ref     string // for create, list and close
	key     string
	ifMatch string
	path    string
	body    []byte
	create  booking.Request
	change  booking.Change
	after   int // list: the seq that the page before ended with
	limit   int
	// wrong is what is wrong with the request, found while it was read.
	wrong *booking.Problem
}

// route finds the operation that a method and path stand for. allow has the
// methods of a path that has others.
func route(method, path string) (c bookingCall, allow []string) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	ops := map[string]booking.Operation{}
	switch {
	case slices.Equal(parts, []string{"v1", "bookings"}):
		ops = map[string]booking.Operation{http.MethodPost: booking.OpCreate, http.MethodGet: booking.OpList}
	case len(parts) == 3 && parts[0] == "v1" && parts[1] == "bookings" && parts[2] != "":
		ops = map[string]booking.Operation{http.MethodGet: booking.OpGet, http.MethodPatch: booking.OpChange}
		c.id = parts[2]
	case len(parts) == 4 && parts[0] == "v1" && parts[1] == "bookings" && parts[3] == "cancel":
		ops = map[string]booking.Operation{http.MethodPost: booking.OpCancel}
		c.id = parts[2]
	case len(parts) == 4 && parts[0] == "v1" && parts[1] == "references" && parts[3] == "close":
		ops = map[string]booking.Operation{http.MethodPost: booking.OpClose}
		c.ref = parts[2]
	}
	c.op, c.path = ops[method], path
	if c.op == "" {
		for m := range ops {
			allow = append(allow, m)
		}
		slices.Sort(allow)
	}
	return c, allow
}

// read takes in everything that a request for an operation carries.
func (c *bookingCall) read(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		c.wrong = problemOf(booking.TooLarge, "the body is larger than 64 KiB")
		return nil
	case err != nil:
		return err // the client has gone
	}
	c.body = body
	var m mistakes
	if c.op.Mutation() {
		c.readHeaders(r.Header, &m)
		if c.wrong == nil {
			c.wrong = m.problem(booking.InvalidRequest)
		}
		if c.wrong == nil {
			c.wrong = c.readBody(r.Header.Get("Content-Type"))
		}
		return nil
	}
	if c.op == booking.OpList {
		c.readQuery(r.URL.RawQuery, &m)
	}
	c.wrong = m.problem(booking.InvalidRequest)
	return nil
}

func problemOf(k booking.Kind, detail string) *booking.Problem {
	p := booking.NewProblem(k, detail)
	return &p
}

func (c *bookingCall) readHeaders(h http.Header, m *mistakes) {
	c.key = h.Get("Idempotency-Key")
	if !booking.ValidKey(c.key) {
		c.key = ""
		m.add("idempotency-key", `the header is missing or not valid: want 1 to 128 of letters, digits and "._:-"`)
	}
	if c.op != booking.OpChange && c.op != booking.OpCancel {
		return
	}
	c.ifMatch = h.Get("If-Match")
	quoted := len(c.ifMatch) > 2 && c.ifMatch[0] == '"' && strings.IndexByte(c.ifMatch[1:], '"') == len(c.ifMatch)-2
	switch {
	case c.ifMatch == "" && len(*m) == 0:
		c.wrong = problemOf(booking.VersionRequired, `send the booking's version as If-Match, as "v1"`)
	case c.ifMatch != "" && c.ifMatch != "*" && !quoted:
		m.add("if-match", `want the booking's version in quotes, as "v1", or *`)
	}
}

func (c *bookingCall) readBody(contentType string) *booking.Problem {
	optional := c.op == booking.OpCancel || c.op == booking.OpClose
	if c.op == booking.OpClose && !booking.ValidReference(c.ref) {
		var m mistakes
		m.reference(c.ref)
		return m.problem(booking.InvalidRequest)
	}
	if optional && len(c.body) == 0 {
		return nil
	}
	if t, _, err := mime.ParseMediaType(contentType); err != nil || t != "application/json" {
		return problemOf(booking.UnsupportedMediaType, "send the body as application/json")
	}
	switch c.op {
	case booking.OpCreate:
		if p := decodeStrict(c.body, &c.create); p != nil {
			return p
		}
		if p := checkRequest(c.create); p != nil {
			return p
		}
		c.ref = c.create.ClientReference
		return nil
	case booking.OpChange:
		if p := decodeStrict(c.body, &c.change); p != nil {
			return p
		}
		return checkChange(c.change)
	}
	return decodeStrict(c.body, &struct{}{})
}

func (c *bookingCall) readQuery(raw string, m *mistakes) {
	c.limit = 50
	query, err := url.ParseQuery(raw)
	if err != nil {
		m.add("query", "is not a valid query")
		return
	}
	if ref, ok := query["client_reference"]; ok {
		c.ref = ref[0]
		m.reference(c.ref)
	}
	if limit, ok := query["limit"]; ok {
		n, err := strconv.Atoi(limit[0])
		if err != nil || n < 1 || n > 100 {
			m.add("limit", "%.20q is not a number from 1 to 100", limit[0])
		}
		c.limit = n
	}
	if cursor, ok := query["cursor"]; ok {
		if c.after, ok = decodeCursor(cursor[0], c.ref); !ok {
			m.add("cursor", "is not one that this list gave out")
		}
	}
	for name := range query {
		if name != "client_reference" && name != "limit" && name != "cursor" {
			m.add(strings.ToLower(name), "there is no such parameter")
		}
	}
}

func encodeCursor(reference string, seq int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(seq) + " " + reference))
}

func decodeCursor(cursor, reference string) (int, bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, false
	}
	number, of, ok := strings.Cut(string(b), " ")
	seq, err := strconv.Atoi(number)
	return seq, ok && err == nil && seq >= 1 && of == reference
}

// bearer is the token of an Authorization header, "" for none.
func bearer(h http.Header) string {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// rendered is an answer in the form in which it is sent.
type rendered struct {
	status      int
	contentType string
	body        []byte
}

func (o outcome) render(h http.Header) rendered {
	r := rendered{status: o.status, contentType: "application/json"}
	body := o.body
	if o.problem != nil {
		r.contentType = booking.MediaTypeProblem
		body = o.problem
		switch kindOf(o.problem) {
		case booking.KeyInProgress:
			h.Set("Retry-After", "1")
		case booking.Unauthorized:
			h.Set("WWW-Authenticate", "Bearer")
		}
	} else if o.booking != nil {
		h.Set("ETag", `"`+o.booking.Version+`"`)
		if o.status == http.StatusCreated {
			h.Set("Location", "/v1/bookings/"+o.booking.ID)
		}
	}
	if o.replay {
		h.Set("Idempotent-Replayed", "true")
	}
	r.body, _ = json.Marshal(body) // our own types: cannot fail
	r.body = append(r.body, '\n')
	return r
}

func (r rendered) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", r.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	w.WriteHeader(r.status)
	w.Write(r.body)
}
