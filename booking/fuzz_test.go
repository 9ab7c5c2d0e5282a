package booking_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tetherkube/tether/booking"
)

// canned answers every request with the same.
type canned struct {
	status int
	header http.Header
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	return &http.Response{StatusCode: c.status, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

// FuzzAnswer holds for whatever a server sends: no panic, an error of the known
// kind or a booking that can be used, and no server's text in a message.
func FuzzAnswer(f *testing.F) {
	f.Add(201, "application/json", "", `{"id":"bk-1","client_reference":"r","version":"v1","status":"confirmed","price":{"amount":"1.00","currency":"EUR"}}`)
	f.Add(409, booking.MediaTypeProblem, "3", `{"type":"https://flights.com/problems/sold-out","status":409}`)
	f.Add(409, booking.MediaTypeProblem, "Mon, 01 Jan 2035 00:00:00 GMT", `{"type":"https://flights.com/problems/reference-taken","status":409,"booking_id":"bk-2"}`)
	f.Add(422, booking.MediaTypeProblem, "", `{"type":"https://flights.com/problems/invalid-passenger","status":422,"errors":[{"field":"passengers[0]"}]}`)
	f.Fuzz(func(t *testing.T, status int, contentType, retryAfter, body string) {
		h := http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}}
		c, err := booking.NewClient(booking.Options{BaseURL: "http://x", Token: booking.StaticToken("t"), Transport: canned{status, h, body}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Create(t.Context(), "k", booking.Request{ClientReference: "r"})
		var e *booking.Error
		switch {
		case err == nil:
			if _, bad := a.Booking.Price.Cents(); a.Booking.ID == "" || a.Booking.Version == "" || !a.Booking.Status.Valid() || a.Booking.ClientReference != "r" || bad != nil {
				t.Errorf("a booking that cannot be used: %+v", a.Booking)
			}
		case !errors.As(err, &e):
			t.Errorf("not an *Error: %v", err)
		case e.RetryAfter < 0 || e.RetryAfter > booking.MaxRetryAfter:
			t.Errorf("RetryAfter %v", e.RetryAfter)
		case strings.ContainsAny(e.Error(), "\n\r\x00") || len(e.Error()) > 2000:
			t.Errorf("a message that cannot be shown: %q", e.Error())
		}
	})
}

func FuzzMoney(f *testing.F) {
	f.Add("250.00", "EUR")
	f.Add("007.5", "USD")
	f.Fuzz(func(t *testing.T, amount, currency string) {
		n, err := booking.Money{Amount: amount, Currency: currency}.Cents()
		if err != nil {
			return
		}
		if again, err := booking.Cents(n, currency).Cents(); err != nil || again != n {
			t.Errorf("%q is %d, and back %d, %v", amount, n, again, err)
		}
	})
}
