package openapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// canned answers every request with the same.
type canned struct {
	status            int
	contentType, body string
	header            string // of one more header
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {c.contentType}, "Etag": {`"v1"`}}
	if c.header != "" {
		h.Set(c.header, "x")
	}
	return &http.Response{StatusCode: c.status, Header: h, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

// TestAnAnswerThatIsNotDocumentedIsSeen shows that the tour could fail.
func TestAnAnswerThatIsNotDocumentedIsSeen(t *testing.T) {
	const good = `{"id":"bk-1","version":"v1","status":"confirmed","from":"ICN","to":"JFK","departure_date":"2027-05-01","cabin":"economy",` +
		`"passengers":[{"given_name":"A","family_name":"B"}],"record_locator":"ABCDEF","flight":{"number":"TK100","departure_time":"2027-05-01T10:00:00Z"},"seats":["1A"],` +
		`"price":{"amount":"1.00","currency":"EUR"},"fare_changeable":true,"booked_at":"2027-01-01T00:00:00Z","updated_at":"2027-01-01T00:00:00Z"}`
	edit := func(old, by string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not there to be changed", old)
		}
		return strings.Replace(good, old, by, 1)
	}
	c := load(t)
	for name, answer := range map[string]struct {
		canned
		good bool
	}{
		"as documented":          {canned{200, "application/json", good, ""}, true},
		"another status":         {canned{204, "application/json", good, ""}, false},
		"another content type":   {canned{200, "text/plain", good, ""}, false},
		"a field more":           {canned{200, "application/json", edit(`"id"`, `"airline":"x","id"`), ""}, false},
		"a header more":          {canned{200, "application/json", good, "X-Airline"}, false},
		"a field less":           {canned{200, "application/json", edit(`"version":"v1",`, ``), ""}, false},
		"confirmed, no seats":    {canned{200, "application/json", edit(`"seats":["1A"],`, ``), ""}, false},
		"cancelled by nobody":    {canned{200, "application/json", edit(`"confirmed"`, `"cancelled"`), ""}, false},
		"an unknown status":      {canned{200, "application/json", edit(`"confirmed"`, `"lost"`), ""}, false},
		"a time that is none":    {canned{200, "application/json", edit(`T10:00:00Z`, ``), ""}, false},
		"a number for an amount": {canned{200, "application/json", edit(`"1.00"`, `1.00`), ""}, false},
		"a problem of another":   {canned{404, booking.MediaTypeProblem, `{"type":"https://flights.com/problems/sold-out","title":"x","status":404}`, ""}, false},
		"its own problem":        {canned{404, booking.MediaTypeProblem, `{"type":"https://flights.com/problems/not-found","title":"x","status":404}`, ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got error
			transport := checked{
				contract: c, inner: answer.canned,
				request: func(_ *http.Request, err error) {
					if err != nil {
						t.Error(err)
					}
				},
				answer: func(_ *http.Request, err error) { got = err },
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/v1/bookings/bk-1", nil)
			req.Header.Set("Authorization", "Bearer t")
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if (got == nil) != answer.good {
				t.Errorf("the validator says %v", got)
			}
		})
	}
}

// TestWhatTheClientSendsIsDocumented holds the client's own requests to the
// document, and the answers that it takes.
func TestWhatTheClientSendsIsDocumented(t *testing.T) {
	s := fake.NewBookingServer(fake.BookingOptions{})
	t.Cleanup(s.Close)
	wrong := func(r *http.Request, err error) {
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	client, err := booking.NewClient(booking.Options{
		BaseURL: s.URL(), Token: booking.StaticToken("t"),
		Transport: checked{contract: load(t), inner: s.Transport(), request: wrong, answer: wrong},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	date, limit := "2027-06-01", booking.Cents(900_000, "EUR")
	a, err := client.Create(ctx, "k1", booking.Request{
		ClientReference: "r", From: "ICN", To: "JFK", DepartureDate: "2027-05-01", FlightNumber: "KE081", Cabin: booking.First,
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger", DateOfBirth: "1990-12-31"}},
		Contact:    &booking.Contact{Email: "a@example.com", Phone: "+82212345678"}, MaxPrice: &limit,
	})
	if err == nil {
		a, err = client.Change(ctx, "k2", a.Booking.ID, a.Booking.Version, booking.Change{DepartureDate: &date, MaxPrice: &limit})
	}
	if err == nil {
		_, err = client.Get(ctx, a.Booking.ID)
	}
	if err == nil {
		_, err = client.Cancel(ctx, "k3", a.Booking.ID, a.Booking.Version)
	}
	if err == nil {
		_, err = client.CloseReference(ctx, "k4", "r")
	}
	if err == nil {
		_, err = client.Lookup(ctx, "r")
	}
	if err != nil {
		t.Error(err)
	}
}
