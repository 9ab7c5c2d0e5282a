package booking_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tetherkube/tether/booking"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "s3cret-token"

// serve is a client of a server that answers with h.
func serve(t *testing.T, h http.HandlerFunc, edit ...func(*booking.Options)) *booking.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return connect(t, server.URL, edit...)
}

func connect(t *testing.T, url string, edit ...func(*booking.Options)) *booking.Client {
	t.Helper()
	o := booking.Options{BaseURL: url, Token: booking.StaticToken(token)}
	for _, e := range edit {
		e(&o)
	}
	c, err := booking.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func example() booking.Booking {
	return booking.Booking{
		ID: "bk-1", ClientReference: "r", Version: "v1", Status: booking.Confirmed, From: "ICN", To: "JFK",
		DepartureDate: "2027-05-01", Cabin: booking.Economy, Price: booking.Money{Amount: "250.00", Currency: "EUR"},
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	}
}

func answer(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if s, ok := body.(string); ok {
		io.WriteString(w, s)
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	w.Write(text)
}

func request() booking.Request {
	return booking.Request{ClientReference: "r", From: "ICN", To: "JFK", DepartureDate: "2027-05-01", Passengers: example().Passengers}
}

func TestARequestCarriesWhatTheContractWants(t *testing.T) {
	for name, c := range map[string]struct {
		call func(*booking.Client) error
		want string
	}{
		"create": {
			func(c *booking.Client) error { _, err := c.Create(t.Context(), "k", request()); return err },
			`POST /base/v1/bookings key=k if= type=application/json {"client_reference":"r","from":"ICN","to":"JFK","departure_date":"2027-05-01","passengers":[{"given_name":"Test","family_name":"Passenger"}]}`,
		},
		"get": {
			func(c *booking.Client) error { _, err := c.Get(t.Context(), "bk-1"); return err },
			`GET /base/v1/bookings/bk-1 key= if= type= `,
		},
		"list": {
			func(c *booking.Client) error { _, err := c.Lookup(t.Context(), "r"); return err },
			`GET /base/v1/bookings?client_reference=r&limit=100 key= if= type= `,
		},
		"change": {
			func(c *booking.Client) error {
				none := ""
				_, err := c.Change(t.Context(), "k", "bk-1", "v1", booking.Change{FlightNumber: &none})
				return err
			},
			`PATCH /base/v1/bookings/bk-1 key=k if="v1" type=application/json {"flight_number":""}`,
		},
		"cancel": {
			func(c *booking.Client) error { _, err := c.Cancel(t.Context(), "k", "bk-1", "v1"); return err },
			`POST /base/v1/bookings/bk-1/cancel key=k if="v1" type=application/json {}`,
		},
		"close": {
			func(c *booking.Client) error { _, err := c.CloseReference(t.Context(), "k", "r"); return err },
			`POST /base/v1/references/r/close key=k if= type=application/json {}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				h := r.Header
				got = fmt.Sprintf("%s %s key=%s if=%s type=%s %s", r.Method, r.URL, h.Get("Idempotency-Key"), h.Get("If-Match"), h.Get("Content-Type"), body)
				if h.Get("Authorization") != "Bearer "+token {
					got += " without the token"
				}
				switch name {
				case "create":
					answer(w, 201, "application/json", example())
				case "list":
					answer(w, 200, "application/json", booking.Page{Bookings: []booking.Booking{example()}})
				case "close":
					answer(w, 200, "application/json", booking.ClosedReference{ClientReference: "r", Closed: true})
				default:
					answer(w, 200, "application/json; charset=utf-8", example())
				}
			}, func(o *booking.Options) { o.BaseURL += "/base/" })
			if err := c.call(client); err != nil {
				t.Error(err)
			}
			if got != c.want {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}

func TestAnAnswerIsReadForWhatItProves(t *testing.T) {
	problem := func(k booking.Kind, edit func(*booking.Problem)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			p := booking.NewProblem(k, "server text "+token)
			if edit != nil {
				edit(&p)
			}
			answer(w, p.Status, booking.MediaTypeProblem, p)
		}
	}
	plain := func(status int, contentType string, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { answer(w, status, contentType, body) }
	}
	edited := func(edit func(*booking.Booking)) http.HandlerFunc {
		b := example()
		edit(&b)
		return plain(201, "application/json", b)
	}
	type proof struct {
		handler      http.HandlerFunc
		kind         booking.Kind
		create, read booking.Class
	}
	cases := map[string]proof{
		"404 of a proxy":               {plain(404, "text/html", "not here"), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"404 of another API":           {plain(404, booking.MediaTypeProblem, `{"type":"about:blank","title":"x","status":404}`), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"problem of another status":    {problem(booking.SoldOut, func(p *booking.Problem) { p.Status = 410 }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"problem under another status": {plain(404, booking.MediaTypeProblem, booking.NewProblem(booking.SoldOut, "")), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"403 of a firewall":            {plain(403, "text/html", "no"), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"401 of a gateway":             {plain(401, "text/html", "no"), booking.Unauthorized, booking.Denied, booking.Denied},
		"429 of a gateway":             {plain(429, "text/html", "no"), booking.RateLimited, booking.Deferred, booking.CannotTell},
		"408":                          {plain(408, "text/plain", "late"), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"500":                          {plain(500, "text/plain", "oops"), booking.Internal, booking.OutcomeUnknown, booking.CannotTell},
		"502":                          {plain(502, "text/plain", "oops"), booking.Internal, booking.OutcomeUnknown, booking.CannotTell},
		"503":                          {plain(503, "text/plain", "oops"), booking.Unavailable, booking.OutcomeUnknown, booking.CannotTell},
		"202":                          {plain(202, "application/json", example()), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"HTML":                         {plain(201, "text/html", "<html>"), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"no content type": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			w.WriteHeader(http.StatusCreated)
		}, booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"half an object":             {plain(201, "application/json", `{"id":"bk-`), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"two objects":                {plain(201, "application/json", `{"id":"bk-1"}{}`), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"null":                       {plain(201, "application/json", `null`), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"too large":                  {plain(201, "application/json", strings.Repeat(" ", 1<<20+1)), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"no id":                      {edited(func(b *booking.Booking) { b.ID = "" }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"an id that is a path":       {edited(func(b *booking.Booking) { b.ID = "../x" }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"no version":                 {edited(func(b *booking.Booking) { b.Version = "" }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"unknown status":             {edited(func(b *booking.Booking) { b.Status = "lost" }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"another reference":          {edited(func(b *booking.Booking) { b.ClientReference = "other" }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
		"a price that is no decimal": {edited(func(b *booking.Booking) { b.Price.Amount = "1e3" }), booking.BadAnswer, booking.OutcomeUnknown, booking.CannotTell},
	}
	for _, k := range booking.ProblemKinds() {
		c := proof{problem(k, nil), k, booking.Refused, booking.CannotTell}
		switch k {
		case booking.Unauthorized, booking.Forbidden:
			c.create, c.read = booking.Denied, booking.Denied
		case booking.RateLimited:
			c.create = booking.Deferred
		case booking.KeyInProgress, booking.Internal, booking.Unavailable:
			c.create = booking.OutcomeUnknown
		case booking.NotFound:
			continue // has no place in answer to a create; see below
		}
		cases["problem "+string(k)] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := serve(t, c.handler)
			_, err := client.Create(t.Context(), "k", request())
			wantError(t, err, booking.OpCreate, c.kind, c.create)
			_, err = client.Get(t.Context(), "bk-1")
			if c.handler != nil && name != "another reference" && !strings.HasPrefix(name, "no id") {
				wantError(t, err, booking.OpGet, c.kind, c.read)
			}
		})
	}
	t.Run("not found", func(t *testing.T) {
		client := serve(t, problem(booking.NotFound, nil))
		_, err := client.Get(t.Context(), "bk-1")
		wantError(t, err, booking.OpGet, booking.NotFound, booking.Absent)
		_, err = client.Cancel(t.Context(), "k", "bk-1", "v1")
		wantError(t, err, booking.OpCancel, booking.NotFound, booking.Absent)
		_, err = client.Create(t.Context(), "k", request())
		wantError(t, err, booking.OpCreate, booking.BadAnswer, booking.OutcomeUnknown)
		_, err = client.Lookup(t.Context(), "r")
		wantError(t, err, booking.OpList, booking.BadAnswer, booking.CannotTell)
	})
}

func wantError(t *testing.T, err error, op booking.Operation, k booking.Kind, class booking.Class) {
	t.Helper()
	_ = failed(t, err, op, k, class) // for those who want to see more of it
}

// failed also holds every message to what it must not have.
func failed(t *testing.T, err error, op booking.Operation, k booking.Kind, class booking.Class) *booking.Error {
	t.Helper()
	var e *booking.Error
	if !errors.As(err, &e) || e.Op != op || e.Kind != k || e.Class() != class || !errors.Is(err, k) || errors.Is(err, booking.Kind("other")) {
		t.Fatalf("got %v, want %s of class %v", err, k, class)
	}
	if e.Definite() != (class != booking.OutcomeUnknown) {
		t.Errorf("Definite is %v for %v", e.Definite(), class)
	}
	if !strings.HasPrefix(e.Error(), "booking: "+string(op)+": ") {
		t.Errorf("the message does not begin with the operation: %s", e)
	}
	for _, forbidden := range []string{token, "server text", "s3cret"} {
		if strings.Contains(e.Error(), forbidden) {
			t.Errorf("the message has %q: %s", forbidden, e)
		}
	}
	return e
}

func TestAnErrorTellsTheDetailsThatTheContractHas(t *testing.T) {
	for want, p := range map[string]booking.Problem{
		"booking: create: the price is above the limit: 300.00 EUR (HTTP 409)":        with(booking.PriceAboveLimit, func(p *booking.Problem) { p.Price = &booking.Money{Amount: "300.00", Currency: "EUR"} }),
		"booking: create: the price is above the limit (HTTP 409)":                    with(booking.PriceAboveLimit, func(p *booking.Problem) { p.Price = &booking.Money{Amount: "call +1 555", Currency: "EUR"} }),
		"booking: create: the reference is taken by another booking: bk-7 (HTTP 409)": with(booking.ReferenceTaken, func(p *booking.Problem) { p.BookingID = "bk-7" }),
		"booking: create: the reference is taken by another booking (HTTP 409)":       with(booking.ReferenceTaken, func(p *booking.Problem) { p.BookingID = "bk 7\n" }),
		"booking: create: a passenger is not valid: passengers[0].given_name (HTTP 422)": with(booking.InvalidPassenger, func(p *booking.Problem) {
			p.Errors = []booking.FieldError{{Field: "passengers[0].given_name", Detail: "x"}, {Field: "Please call us!", Detail: "x"}}
		}),
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, p.Status, booking.MediaTypeProblem, p) })
		if _, err := client.Create(t.Context(), "k", request()); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func with(k booking.Kind, edit func(*booking.Problem)) booking.Problem {
	p := booking.NewProblem(k, "")
	edit(&p)
	return p
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	date := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) // another clock than this one
	for value, want := range map[string]time.Duration{
		"":                        0,
		"0":                       0,
		"7":                       7 * time.Second,
		" 7 ":                     7 * time.Second,
		"-7":                      0,
		"1.5":                     0,
		"soon":                    0,
		"3601":                    time.Hour,
		"99999999999999999999999": time.Hour,
		date.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		date.Add(-time.Second).Format(http.TimeFormat):     0,
		date.AddDate(1, 0, 0).Format(http.TimeFormat):      time.Hour,
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", date.Format(http.TimeFormat))
			w.Header().Set("Retry-After", value)
			p := booking.NewProblem(booking.RateLimited, "")
			answer(w, 429, booking.MediaTypeProblem, p)
		})
		_, err := client.Create(t.Context(), "k", request())
		if e := failed(t, err, booking.OpCreate, booking.RateLimited, booking.Deferred); e.RetryAfter != want {
			t.Errorf("%q: %v, want %v", value, e.RetryAfter, want)
		}
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	var followed atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/here" {
				followed.Add(1)
			}
			target := "/here"
			if status%2 == 0 {
				target = other.URL
			}
			http.Redirect(w, r, target, status)
		})
		_, err := client.Create(t.Context(), "k", request())
		wantError(t, err, booking.OpCreate, booking.BadAnswer, booking.OutcomeUnknown)
		_, err = client.Get(t.Context(), "bk-1")
		if e := failed(t, err, booking.OpGet, booking.BadAnswer, booking.CannotTell); !strings.Contains(e.Error(), "BaseURL") {
			t.Errorf("the message has no remedy: %v", e)
		}
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestAMutationIsSentOnceThoughItsConnectionDies has the server take the second
// request on a kept connection and close it without a word. http.Transport would
// by itself send it again, since it carries an Idempotency-Key.
func TestAMutationIsSentOnceThoughItsConnectionDies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mutations, reads atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serveOnce(conn, &mutations, &reads)
		}
	}()
	defer func() { l.Close(); <-done }()
	client := connect(t, "http://"+l.Addr().String())
	none := ""
	for name, mutate := range map[string]func() error{
		"create": func() error { _, err := client.Create(t.Context(), "k", request()); return err },
		"change": func() error {
			_, err := client.Change(t.Context(), "k", "bk-1", "v1", booking.Change{FlightNumber: &none})
			return err
		},
		"cancel": func() error { _, err := client.Cancel(t.Context(), "k", "bk-1", "v1"); return err },
		"close":  func() error { _, err := client.CloseReference(t.Context(), "k", "r"); return err },
	} {
		if _, err := client.Get(t.Context(), "bk-1"); err != nil {
			t.Fatal(err)
		}
		before := mutations.Load()
		err := mutate()
		wantError(t, err, booking.Operation(name), booking.ConnectionLost, booking.OutcomeUnknown)
		if n := mutations.Load() - before; n != 1 {
			t.Errorf("%s was sent %d times", name, n)
		}
	}
}

// serveOnce answers a read and then takes one more request without answering it.
func serveOnce(conn net.Conn, mutations, reads *atomic.Int32) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if req.Method != http.MethodGet {
			mutations.Add(1)
			return
		}
		reads.Add(1)
		body, _ := json.Marshal(example())
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

func TestARequestThatNeverLeftIsDefinite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	client := connect(t, nobody)
	_, err = client.Create(t.Context(), "k", request())
	if e := failed(t, err, booking.OpCreate, booking.NotSent, booking.Deferred); !strings.Contains(e.Error(), "refused") {
		t.Errorf("the message does not say why: %v", e)
	}
	_, err = client.Get(t.Context(), "bk-1")
	wantError(t, err, booking.OpGet, booking.NotSent, booking.CannotTell)

	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = client.Create(ctx, "k", request())
	wantError(t, err, booking.OpCreate, booking.NotSent, booking.Deferred)
	if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", errors.Unwrap(err))
	}

	// A dial outlives the request that it was begun for: the transport keeps the
	// connection for the next one.
	over := make(chan struct{})
	defer close(over)
	hanging := connect(t, "http://booking.invalid", func(o *booking.Options) {
		o.Timeout = time.Millisecond
		o.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-over
			return nil, net.ErrClosed
		}}
	})
	_, err = hanging.Create(t.Context(), "k", request())
	wantError(t, err, booking.OpCreate, booking.NotSent, booking.Deferred)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not a deadline: %v", errors.Unwrap(err))
	}

	silent := connect(t, nobody, func(o *booking.Options) { o.Transport = broken{} })
	_, err = silent.Create(t.Context(), "k", request())
	wantError(t, err, booking.OpCreate, booking.ConnectionLost, booking.OutcomeUnknown)
}

func TestACertificateThatIsRefusedSaysWhy(t *testing.T) {
	site := httptest.NewUnstartedServer(http.NotFoundHandler())
	site.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes
	site.StartTLS()
	t.Cleanup(site.Close)
	pool := x509.NewCertPool()
	pool.AddCert(site.Certificate())
	for want, config := range map[string]*tls.Config{
		"the server's certificate is not trusted":                   {},
		"the server's certificate has expired, or is not valid yet": {RootCAs: pool, Time: func() time.Time { return site.Certificate().NotAfter.Add(time.Hour) }},
	} {
		client := connect(t, site.URL, func(o *booking.Options) { o.Transport = &http.Transport{TLSClientConfig: config} })
		_, err := client.Create(t.Context(), "k", request())
		if e := failed(t, err, booking.OpCreate, booking.NotSent, booking.Deferred); !strings.Contains(e.Error(), want) {
			t.Errorf("got %v, want %s", e, want)
		}
	}
}

// broken is a transport that does not tell what it does.
type broken struct{}

func (broken) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("who knows")}
}

func TestASentRequestWithoutAnAnswerInTimeIsUnknown(t *testing.T) {
	arrived := make(chan struct{}, 4)
	hang := func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	}
	client := serve(t, hang, func(o *booking.Options) { o.Timeout = time.Second })
	_, err := client.Create(t.Context(), "k", request())
	if e := failed(t, err, booking.OpCreate, booking.TimedOut, booking.OutcomeUnknown); !strings.Contains(e.Error(), "1s") {
		t.Errorf("the message does not say how long: %v", e)
	}
	<-arrived

	patient := serve(t, hang)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(why) }()
	_, err = patient.Create(ctx, "k", request())
	wantError(t, err, booking.OpCreate, booking.Canceled, booking.OutcomeUnknown)
	if !errors.Is(err, why) {
		t.Errorf("the cause is lost: %v", errors.Unwrap(err))
	}
}

func TestATokenThatDoesNotComeIsNotWaitedForLongerThanARequest(t *testing.T) {
	client := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }, func(o *booking.Options) {
		o.Timeout = 10 * time.Millisecond
		o.Token = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	})
	_, err := client.Create(t.Context(), "k", request())
	if wantError(t, err, booking.OpCreate, booking.NoToken, booking.Deferred); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the reason is lost: %v", err)
	}
}

func TestABookingIsFoundByItsIDOrByItsReference(t *testing.T) {
	var asked []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.Query().Get("client_reference"))
		switch r.URL.Path {
		case "/v1/bookings/bk-1":
			answer(w, 200, "application/json", example())
		case "/v1/bookings":
			answer(w, 200, "application/json", `{"bookings": [], "next_cursor": null}`)
		default:
			answer(w, 404, booking.MediaTypeProblem, booking.NewProblem(booking.NotFound, "no such booking"))
		}
	})
	for _, x := range []struct {
		id, reference string
		want          int
	}{{"bk-1", "r", 1}, {"bk-2", "r", 0}, {"", "r", 0}} {
		if found, err := client.Find(t.Context(), x.id, x.reference); err != nil || len(found) != x.want {
			t.Errorf("%+v: %+v, %v", x, found, err)
		}
	}
	if _, err := client.Find(t.Context(), "../r", "r"); !errors.Is(err, booking.BadArgument) {
		t.Errorf("got %v", err)
	}
	if want := []string{"/v1/bookings/bk-1?", "/v1/bookings/bk-2?", "/v1/bookings?r"}; !cmp.Equal(asked, want) {
		t.Error(cmp.Diff(want, asked))
	}
}

func TestATokenIsReadForEachRequestAndNeverTold(t *testing.T) {
	var got []string
	file := filepath.Join(t.TempDir(), "token")
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		answer(w, 200, "application/json", example())
	}, func(o *booking.Options) { o.Token = booking.TokenFile(file) })
	get := func() error { _, err := client.Get(t.Context(), "bk-1"); return err }

	wantError(t, get(), booking.OpGet, booking.NoToken, booking.CannotTell)
	if !errors.Is(get(), os.ErrNotExist) {
		t.Error("the reason is lost")
	}
	for _, content := range []string{"first\n", " second ", "\n \n", "s3cret\x00token", "s3cret token"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := get(); err != nil {
			wantError(t, err, booking.OpGet, booking.NoToken, booking.CannotTell)
		}
	}
	if want := []string{"Bearer first", "Bearer second"}; !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	_, err := client.Create(t.Context(), "k", request())
	wantError(t, err, booking.OpCreate, booking.NoToken, booking.Deferred)
}

func TestAListIsReadToItsEndAndNoFurther(t *testing.T) {
	pages := map[string]string{"": "a", "a": "b", "b": ""}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		p := booking.Page{Bookings: []booking.Booking{example()}}
		if next := pages[r.FormValue("cursor")]; next != "" {
			p.NextCursor = &next
		}
		answer(w, 200, "application/json", p)
	}, func(o *booking.Options) { o.MaxPages = 3 })
	if found, err := client.Lookup(t.Context(), "r"); err != nil || len(found) != 3 {
		t.Errorf("%d bookings, %v", len(found), err)
	}
	for name, body := range map[string]string{
		"no list":             `{}`,
		"null for a list":     `{"bookings":null}`,
		"an array":            `[]`,
		"an empty cursor":     `{"bookings":[],"next_cursor":""}`,
		"a cursor for ever":   `{"bookings":[],"next_cursor":"same"}`,
		"a filter overlooked": `{"bookings":[{"id":"bk-1","client_reference":"other","version":"v1","status":"confirmed","price":{"amount":"1","currency":"EUR"}}]}`,
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "application/json", body) })
		found, err := client.Lookup(t.Context(), "r")
		wantError(t, err, booking.OpList, booking.BadAnswer, booking.CannotTell)
		if found != nil {
			t.Errorf("%s: got %v beside an error", name, found)
		}
	}
	n := 0
	endless := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		next := fmt.Sprint(n)
		answer(w, 200, "application/json", booking.Page{Bookings: []booking.Booking{example()}, NextCursor: &next})
	})
	_, err := endless.Lookup(t.Context(), "r")
	wantError(t, err, booking.OpList, booking.BadAnswer, booking.CannotTell)
	if n > 1001 {
		t.Errorf("%d pages were read", n)
	}
}

func TestABadArgumentSendsNothing(t *testing.T) {
	client := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	ctx := t.Context()
	long := strings.Repeat("x", 64)
	for name, err := range map[string]error{
		"key":       second(client.Create(ctx, "", request())),
		"line":      second(client.Create(ctx, "a\r\nb", request())),
		"id":        second(client.Get(ctx, "")),
		"path":      second(client.Get(ctx, "../references/r")),
		"version":   second(client.Cancel(ctx, "k", "bk-1", "")),
		"quote":     second(client.Cancel(ctx, "k", "bk-1", `v1", "v2`)),
		"reference": second(client.Lookup(ctx, "")),
		"long":      second(client.CloseReference(ctx, "k", long)),
		"capitals":  second(client.CloseReference(ctx, "k", "R")),
	} {
		var e *booking.Error
		if !errors.As(err, &e) || e.Kind != booking.BadArgument || e.Class() != booking.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	_, err := booking.NewClient(booking.Options{BaseURL: "ftp://x", Timeout: -1, MaxBody: -1, MaxPages: -1, UserAgent: "a\nb"})
	for _, field := range []string{"BaseURL", "Token", "Timeout", "MaxBody", "MaxPages", "UserAgent"} {
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s is not named: %v", field, err)
		}
	}
	for _, url := range []string{"", "api.example.com", "https://", "https://user:s3cret@x", "https://x?y", "https://x#y", "http://[::1", "http://s3cret:%zz@x"} {
		_, err := booking.NewClient(booking.Options{BaseURL: url, Token: booking.StaticToken("t")})
		if err == nil || !strings.Contains(err.Error(), "BaseURL: ") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
