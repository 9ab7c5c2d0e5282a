package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

func smallest() *v1.Ticket {
	return &v1.Ticket{Spec: v1.TicketSpec{
		From: "ICN", To: "JFK", DepartureDate: "2027-05-01", Passengers: []v1.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	}}
}

func setup(t *testing.T) (*fake.BookingServer, *flights) {
	t.Helper()
	server := fake.NewBookingServer(fake.BookingOptions{Seed: 1})
	t.Cleanup(func() { server.Close() })
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: server.Transport(), Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return server, &flights{api}
}

func TestABookingsLife(t *testing.T) {
	t.Parallel()
	server, f := setup(t)
	ctx, tk := t.Context(), smallest()
	c := tether.Call{Reference: "ref-1", Key: "create-1"}
	o, err := f.Observe(ctx, tk, c)
	if err != nil || o.State != tether.Absent {
		t.Fatalf("before: %+v, %v", o, err)
	}
	o, err = f.Create(ctx, tk, c)
	if err != nil || o.State != tether.Present || o.Reference != "ref-1" || o.ID == "" || len(o.Differs) > 0 {
		t.Fatalf("create: %+v, %v", o, err)
	}
	if tk.Status.State != v1.BookingConfirmed || tk.Status.RecordLocator == "" || tk.Status.Price == nil || tk.Status.Flight == nil || tk.Status.LastObservedAt == nil {
		t.Errorf("status is not filled: %+v", tk.Status)
	}
	if again, err := f.Create(ctx, tk, c); err != nil || !again.Replay || again.ID != o.ID {
		t.Errorf("create again: %+v, %v", again, err)
	}
	if taken, err := f.Create(ctx, tk, tether.Call{Reference: "ref-1", Key: "create-2"}); err != nil || !taken.Replay || taken.ID != o.ID {
		t.Errorf("reference taken: %+v, %v", taken, err)
	}
	tk.Spec.DepartureDate = "2027-06-01"
	seen, err := f.Observe(ctx, tk, tether.Call{ID: o.ID})
	if err != nil || !slices.Equal(seen.Differs, []string{"spec.departureDate"}) || seen.Replace {
		t.Fatalf("changed: %+v, %v", seen, err)
	}
	if o, err = f.Update(ctx, tk, tether.Call{Key: "update-1", ID: o.ID}, seen); err != nil || len(o.Differs) > 0 {
		t.Fatalf("update: %+v, %v", o, err)
	}
	if _, err := f.Update(ctx, tk, tether.Call{Key: "update-2", ID: o.ID}, seen); !is(err, booking.VersionMismatch) {
		t.Errorf("an old version: %v", err)
	}
	if o, err = f.Delete(ctx, tk, tether.Call{Key: "delete-1", ID: o.ID}, o); err != nil || o.State != tether.Ended || o.Reason != "Cancelled" {
		t.Fatalf("delete: %+v, %v", o, err)
	}
	if o, err = f.Fence(ctx, tk, tether.Call{Reference: "ref-2", Key: "fence-1"}); err != nil || o.State != tether.Closed {
		t.Fatalf("fence: %+v, %v", o, err)
	}
	if o, err = f.Create(ctx, tk, tether.Call{Reference: "ref-2", Key: "create-3"}); err != nil || o.State != tether.Closed {
		t.Errorf("create after a fence: %+v, %v", o, err)
	}
	if n := server.CreatesInEffect("ref-1"); n != 1 {
		t.Errorf("%d creates took effect, want 1", n)
	}
}

func TestAFlownTicketIsDoneWithAndDoesNotChange(t *testing.T) {
	t.Parallel()
	server, f := setup(t)
	ctx, tk := t.Context(), smallest()
	o, err := f.Create(ctx, tk, tether.Call{Reference: "ref-1", Key: "create-1"})
	if err != nil {
		t.Fatal(err)
	}
	before := o
	if err := server.Fly(o.ID); err != nil {
		t.Fatal(err)
	}
	if o, err = f.Observe(ctx, tk, tether.Call{ID: o.ID}); err != nil || o.State != tether.Present || len(o.Differs) > 0 {
		t.Errorf("flown: %+v, %v", o, err)
	}
	tk.Spec.DepartureDate = "2027-06-01"
	if o, err = f.Observe(ctx, tk, tether.Call{ID: o.ID}); err != nil || len(o.Differs) != 1 || o.Replace {
		t.Errorf("flown, and changed: %+v, %v", o, err)
	}
	if _, err := f.Update(ctx, tk, tether.Call{Key: "update-1", ID: o.ID}, o); err == nil || !strings.Contains(err.Error(), "has been flown") {
		t.Errorf("update: %v", err)
	}
	if ended, err := f.Delete(ctx, tk, tether.Call{Key: "delete-1", ID: o.ID}, before); err == nil {
		t.Errorf("an old version is cancelled: %+v", ended)
	}
	if ended, err := f.Delete(ctx, tk, tether.Call{Key: "delete-2", ID: o.ID}, o); err != nil || ended.State != tether.Ended {
		t.Errorf("delete: %+v, %v", ended, err)
	}
	tk.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if o, err = f.Observe(ctx, tk, tether.Call{Reference: "ref-1"}); err != nil || o.State != tether.Ended {
		t.Errorf("flown, and being deleted: %+v, %v", o, err)
	}
}

func TestEachFieldIsChangedInPlaceOrReplaced(t *testing.T) {
	t.Parallel()
	spec := smallest().Spec
	booked := booking.Booking{From: spec.From, To: spec.To, DepartureDate: "2027-05-01", Cabin: booking.Economy, FareChangeable: true, Passengers: passengers(spec)}
	for _, c := range []struct {
		name    string
		change  func(*v1.TicketSpec)
		fixed   bool
		path    string
		replace bool
	}{
		{"nothing", func(*v1.TicketSpec) {}, true, "", false},
		{"cabin by default", func(s *v1.TicketSpec) { s.Cabin = v1.CabinEconomy }, false, "", false},
		{"empty contact", func(s *v1.TicketSpec) { s.Contact = &v1.Contact{} }, false, "", false},
		{"maxPrice", func(s *v1.TicketSpec) { s.MaxPrice = &v1.Money{Amount: "1", Currency: "EUR"} }, false, "", false},
		{"date", func(s *v1.TicketSpec) { s.DepartureDate = "2027-05-02" }, false, "spec.departureDate", false},
		{"date, fixed fare", func(s *v1.TicketSpec) { s.DepartureDate = "2027-05-02" }, true, "spec.departureDate", true},
		{"cabin, fixed fare", func(s *v1.TicketSpec) { s.Cabin = v1.CabinFirst }, true, "spec.cabin", true},
		{"flight, fixed fare", func(s *v1.TicketSpec) { s.FlightNumber = "KE81" }, true, "spec.flightNumber", true},
		{"contact, fixed fare", func(s *v1.TicketSpec) { s.Contact = &v1.Contact{Email: "a@b.example"} }, true, "spec.contact", false},
		{"passenger", func(s *v1.TicketSpec) { s.Passengers[0].GivenName = "Other" }, false, "spec.passengers", true},
	} {
		tk, b := smallest(), booked
		c.change(&tk.Spec)
		b.FareChangeable = !c.fixed
		paths, replace := differs(tk, b)
		if strings.Join(paths, ",") != c.path || replace != c.replace {
			t.Errorf("%s: %v, replace %v; want %q, %v", c.name, paths, replace, c.path, c.replace)
		}
	}
}

func TestEveryKindOfErrorHasItsOutcome(t *testing.T) {
	t.Parallel()
	want := map[booking.Kind]effect{
		booking.SoldOut: rejected, booking.PriceAboveLimit: rejected, booking.InvalidPassenger: rejected, booking.InvalidRequest: rejected,
		booking.TooLarge: rejected, booking.UnsupportedMediaType: rejected,
		booking.KeyInProgress: unknown, booking.Internal: unknown, booking.Unavailable: unknown,
	}
	for _, kind := range booking.ProblemKinds() {
		e := problem(t, kind)
		expected, ok := want[kind]
		if !ok {
			expected = noEffect
		}
		if got, _ := judge(e); got != expected {
			t.Errorf("%s: %s, want %s", string(kind), got, expected)
		}
		if strings.Contains(outcome(smallest(), e).Error(), "secret detail") {
			t.Errorf("%s: the server's text reaches people", string(kind))
		}
	}
	kept := problem(t, booking.SoldOut)
	kept.Replayed = true
	if got, _ := judge(kept); got != noEffect {
		t.Errorf("a refusal kept under the key: %s, want %s", got, noEffect)
	}
	plain := errors.New("anything")
	if !errors.Is(outcome(smallest(), plain), plain) {
		t.Error("an error of another kind is lost")
	}
}

func TestWhatTheDefinitionAcceptsTheAirlineDoesToo(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	tk := smallest()
	tk.Spec.FlightNumber, tk.Spec.Contact = "KE81A", &v1.Contact{Phone: "+123456"}
	o, err := f.Create(t.Context(), tk, tether.Call{Key: "k", Reference: "r"})
	if err != nil || o.State != tether.Present {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWhatTheAirlineDoesNotAcceptIsNamedAsTheTicketHasIt(t *testing.T) {
	t.Parallel()
	for _, kind := range []booking.Kind{booking.InvalidPassenger, booking.InvalidRequest} {
		e := &booking.Error{Kind: kind, Fields: []string{"passengers[0].given_name", "contact.email", "max_price", "_"}}
		got := outcome(smallest(), e).Error()
		if want := "spec.passengers[0].givenName, spec.contact.email, spec.maxPrice, spec.;"; !strings.Contains(got, want) {
			t.Errorf("%s: %q does not name %q", string(kind), got, want)
		}
	}
}

type answering struct{ p booking.Problem }

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := json.Marshal(a.p)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: a.p.Status, Header: http.Header{"Content-Type": {booking.MediaTypeProblem}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// problem is the error of a create that the server answers with this kind.
func problem(t *testing.T, kind booking.Kind) *booking.Error {
	t.Helper()
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: answering{booking.NewProblem(kind, "secret detail")}})
	if err != nil {
		t.Fatal(err)
	}
	_, created := api.Create(t.Context(), "k", request(smallest(), "ref"))
	_, changed := api.Change(t.Context(), "k", "id", "v", change(smallest(), []string{"spec.cabin"}))
	for _, err := range []error{created, changed} {
		var e *booking.Error
		if errors.As(err, &e) && e.Kind == kind {
			return e
		}
	}
	t.Fatalf("got %v and %v, want %s", created, changed, string(kind))
	return nil
}

func TestWhatIsWrongWithATicketIsNamed(t *testing.T) {
	t.Parallel()
	f := &flights{}
	if err := f.Validate(context.Background(), smallest()); err != nil {
		t.Errorf("the smallest Ticket: %v", err)
	}
	for want, change := range map[string]func(*v1.Ticket){
		"spec.from and spec.to":  func(t *v1.Ticket) { t.Spec.To = "ICN" },
		"spec.departureDate":     func(t *v1.Ticket) { t.Spec.DepartureDate = "tomorrow" },
		"has passed":             func(t *v1.Ticket) { t.Spec.DepartureDate = "2020-01-01" },
		"spec.flightNumber":      func(t *v1.Ticket) { t.Spec.FlightNumber = "my usual one" },
		"spec.cabin":             func(t *v1.Ticket) { t.Spec.Cabin = "balcony" },
		"spec.passengers: there": func(t *v1.Ticket) { t.Spec.Passengers = nil },
		"spec.passengers[0]":     func(t *v1.Ticket) { t.Spec.Passengers[0].GivenName = " " },
		"spec.maxPrice":          func(t *v1.Ticket) { t.Spec.MaxPrice = &v1.Money{Amount: "much", Currency: "EUR"} },
		`spec.onLost: "Forget"`:  func(t *v1.Ticket) { t.Spec.OnLost = "Forget" },
		"spec.deletionPolicy":    func(t *v1.Ticket) { t.Spec.DeletionPolicy = "cancel" },
		`spec.replace: "Both"`:   func(t *v1.Ticket) { t.Spec.Replace = "Both" },
	} {
		tk := smallest()
		change(tk)
		if err := f.Validate(context.Background(), tk); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	flown := smallest()
	flown.Spec.DepartureDate, flown.Status.BookingID = "2020-01-01", "b"
	if err := f.Validate(context.Background(), flown); err != nil {
		t.Errorf("a flown Ticket: %v", err)
	}
}

func TestADeletionPolicyThatIsNotKnownCancelsNothing(t *testing.T) {
	t.Parallel()
	for word, want := range map[v1.DeletionPolicy]tether.Deletion{
		"": tether.DeleteOutside, v1.DeletionPolicyCancel: tether.DeleteOutside,
		v1.DeletionPolicyRetain: tether.RetainOutside, "retain": tether.RetainOutside,
	} {
		tk := smallest()
		tk.Spec.DeletionPolicy = word
		if got := policy(tk).Deletion; got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

func TestWhatATicketWishesReachesTheLibrary(t *testing.T) {
	t.Parallel()
	tk := smallest()
	if got, want := policy(tk), (tether.Policy{}); got != want {
		t.Errorf("without a wish: %+v, want %+v", got, want)
	}
	tk.Spec.OnLost, tk.Spec.Replace, tk.Spec.DeletionPolicy = v1.OnLostRecreate, v1.ReplaceDeleteFirst, v1.DeletionPolicyRetain
	if got, want := policy(tk), (tether.Policy{OnLost: tether.RecreateLoss, Replace: tether.DeleteFirst, Deletion: tether.RetainOutside}); got != want {
		t.Errorf("with each: %+v, want %+v", got, want)
	}
}

func TestAnIDThatIsNoneIsAnAbsenceAndNoError(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	for _, id := range []string{"a b", "../x?y=1", strings.Repeat("x", 300), "bk-none"} {
		if o, err := f.Observe(t.Context(), smallest(), tether.Call{ID: id}); err != nil || o.State != tether.Absent {
			t.Errorf("%.20q: %+v, %v", id, o, err)
		}
	}
}

func TestABookingThatTheAirlineDoesNotKnowAnyMoreIsToldAsSuch(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	k := smallest()
	k.Status = v1.TicketStatus{BookingID: "bk_gone", State: v1.BookingConfirmed}
	for _, x := range []struct {
		id   string
		want v1.BookingState
	}{{"bk_another", v1.BookingConfirmed}, {"bk_gone", v1.BookingNotFound}} {
		if o, err := f.Observe(t.Context(), k, tether.Call{ID: x.id}); err != nil || o.State != tether.Absent || k.Status.State != x.want {
			t.Errorf("%s: %v, %v, status.state is %s, want %s", x.id, o.State, err, k.Status.State, x.want)
		}
	}
}

func TestWhatIsNewInStatusIsAsOfNow(t *testing.T) {
	t.Parallel()
	tk := smallest()
	// What is finer than a second has no place in status, and is not news when it is read again.
	departs := time.Now().Truncate(time.Second).Add(300 * time.Millisecond)
	b := booking.Booking{Status: booking.Confirmed, BookedAt: departs, Flight: &booking.Flight{Number: "KE81", DepartureTime: departs}}
	fill(&tk.Status, b)
	raw, err := json.Marshal(tk.Status)
	if err == nil {
		tk.Status = v1.TicketStatus{}
		err = json.Unmarshal(raw, &tk.Status)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	tk.Status.LastObservedAt = &before
	fill(&tk.Status, b)
	if !tk.Status.LastObservedAt.Equal(&before) {
		t.Error("nothing is new, and lastObservedAt moved")
	}
	b.Flight = &booking.Flight{Number: "KE81", DepartureTime: time.Now().Add(time.Hour)}
	fill(&tk.Status, b)
	if tk.Status.LastObservedAt.Equal(&before) {
		t.Error("the departure is new, and lastObservedAt is old")
	}
}

func TestABookedTicketDoesNotMoveToADayThatHasPassed(t *testing.T) {
	t.Parallel()
	tk := smallest()
	tk.Status.BookingID = "bk-1"
	tk.Status.Flight = &v1.Flight{Departure: new(metav1.NewTime(time.Now()))}
	tk.Spec.DepartureDate = "2020-02-20"
	if err := new(flights).Validate(t.Context(), tk); err == nil || !strings.Contains(err.Error(), "has passed") {
		t.Errorf("got %v", err)
	}
	tk.Status.Flight.Departure = new(metav1.NewTime(time.Date(2020, 2, 20, 9, 0, 0, 0, time.UTC))) // it left then, and is right
	if err := new(flights).Validate(t.Context(), tk); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestATokenFileThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.TokenFile("/none/token")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&flights{api}).Observe(t.Context(), smallest(), tether.Call{ID: "bk-1"})
	if err == nil || !strings.Contains(err.Error(), "/none/token") {
		t.Errorf("got %v", err)
	}
}

func TestABookingIsPutUnderAnotherReferenceAndListedUnderIt(t *testing.T) {
	t.Parallel()
	_, f := setup(t)
	tk := smallest()
	o, err := f.Create(t.Context(), tk, tether.Call{Reference: "before", Key: "create-1"})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := f.Rebind(t.Context(), tk, tether.Call{Reference: "after", Key: "rebind-1", ID: o.ID}, o)
	if err != nil || moved.Reference != "after" || moved.ID != o.ID || moved.State != tether.Present {
		t.Fatalf("got %+v, %v", moved, err)
	}
	if _, err := f.Rebind(t.Context(), tk, tether.Call{Reference: "late", Key: "rebind-2", ID: o.ID}, o); !is(err, booking.VersionMismatch) {
		t.Errorf("on an old version: %v", err)
	}
	if _, err := f.Delete(t.Context(), tk, tether.Call{Key: "delete-1", ID: o.ID}, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context(), tk, tether.Call{Reference: "second", Key: "create-2"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for l, err := range f.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, l.Reference+" "+l.State.String())
	}
	slices.Sort(got)
	if want := []string{"after Ended", "second Present"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func TestABookingOfAnotherRouteIsNotAdopted(t *testing.T) {
	t.Parallel()
	allow := allowAdopt(settings{allowAdopt: true})
	tk := &v1.Ticket{Spec: v1.TicketSpec{From: "ICN", To: "JFK"}}
	for _, c := range []struct {
		from, to string
		want     bool
	}{{"ICN", "JFK", true}, {"FRA", "JFK", false}, {"ICN", "MUC", false}} {
		paths, replace := differs(tk, booking.Booking{From: c.from, To: c.to, Cabin: booking.Economy})
		if err := allow(tk, tether.Observation{Differs: paths, Replace: replace}); (err == nil) != c.want {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	if allowAdopt(settings{}) != nil {
		t.Error("adoption is allowed though nobody asked for it")
	}
}

// What is adopted and cannot be changed in place would be cancelled, and another one
// booked: somebody else's seat would be gone.
func TestABookingThatWouldBeReplacedIsNotAdopted(t *testing.T) {
	t.Parallel()
	allow, tk := allowAdopt(settings{allowAdopt: true}), smallest()
	same := booking.Booking{
		From: tk.Spec.From, To: tk.Spec.To, DepartureDate: tk.Spec.DepartureDate, Cabin: booking.Economy, Passengers: passengers(tk.Spec), FareChangeable: true,
	}
	another, moved, fixed := same, same, same
	another.Passengers = []booking.Passenger{{GivenName: "Someone", FamilyName: "Else"}}
	moved.DepartureDate = "2027-12-24"
	fixed.DepartureDate, fixed.FareChangeable = "2027-12-24", false
	for name, x := range map[string]struct {
		b    booking.Booking
		want string // in the refusal; "" for none
	}{"the same": {same, ""}, "another passenger's": {another, "spec.passengers"}, "to be moved": {moved, ""}, "not to be moved": {fixed, "spec.departureDate"}} {
		o := tether.Observation{}
		o.Differs, o.Replace = differs(tk, x.b)
		switch err := allow(tk, o); {
		case (err == nil) != (x.want == ""), err != nil && !strings.Contains(err.Error(), x.want):
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

func TestAnotherRouteThatCamePastAnOlderDefinitionChangesNothing(t *testing.T) {
	t.Parallel()
	server, f := setup(t)
	tk := smallest()
	o, err := f.Create(t.Context(), tk, tether.Call{Reference: "r", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	tk.Spec.To = "CDG"
	tk.Spec.Passengers[0].GivenName = "Another" // which alone would replace it
	seen, err := f.Observe(t.Context(), tk, tether.Call{ID: o.ID})
	if err != nil || seen.Replace || !slices.Contains(seen.Differs, pathTo) {
		t.Fatalf("seen as %+v, %v", seen, err)
	}
	before := len(server.Journal())
	if _, err := f.Update(t.Context(), tk, tether.Call{Key: "u", ID: o.ID}, seen); err == nil || !strings.Contains(err.Error(), "change them back") {
		t.Errorf("got %v", err)
	}
	if n := len(server.Journal()) - before; n != 0 {
		t.Errorf("%d calls were made", n)
	}
}
