package fake_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// FuzzBookingServer holds for whatever a client sends: no panic, and an answer
// that is JSON of the contract, with nothing that tells of a failed server.
func FuzzBookingServer(f *testing.F) {
	f.Add("POST", "/v1/bookings", "", "application/json", "k", "", `{"client_reference":"r","from":"ICN","to":"JFK","departure_date":"2027-05-01","passengers":[{"given_name":"A","family_name":"B"}]}`)
	f.Add("GET", "/v1/bookings", "client_reference=r&limit=1&cursor=MSBy", "", "", "", "")
	f.Add("PATCH", "/v1/bookings/bk-1", "", "application/json", "k", `"v1"`, `{"cabin":"first","contact":{"email":"a@b"}}`)
	f.Add("POST", "/v1/bookings/bk-1/cancel", "", "", "k", "*", "")
	f.Add("POST", "/v1/references/r/close", "", "application/json", "k", "", "{}")
	f.Fuzz(func(t *testing.T, method, path, query, contentType, key, ifMatch, body string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(method, " \t\r\n") || method == "" {
			return
		}
		s := fake.NewBookingServer(fake.BookingOptions{})
		defer s.Close()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		for name, value := range map[string]string{"Authorization": "Bearer t", "Content-Type": contentType, "Idempotency-Key": key, "If-Match": ifMatch} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) || w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		var p booking.Problem
		if w.Code >= 400 && json.Unmarshal(w.Body.Bytes(), &p) != nil {
			t.Errorf("not a problem: %s", w.Body)
		}
		if _, known := p.Kind(); w.Code >= 400 && (p.Status != w.Code || !known && p.Type != "about:blank") {
			t.Errorf("%d with %s", w.Code, w.Body)
		}
		if e := s.Journal(); len(e) != 1 || !e[0].Done || e[0].Status != w.Code {
			t.Errorf("journal: %v", e)
		}
	})
}
