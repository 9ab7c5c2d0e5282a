package fake_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server and one caller's client over memory.
type fixture struct {
	*fake.BookingServer
	client *booking.Client
}

func setup(t *testing.T, o fake.BookingOptions) fixture {
	t.Helper()
	s := fake.NewBookingServer(o)
	t.Cleanup(s.Close)
	return fixture{s, client(t, s, "one")}
}

func client(t *testing.T, s *fake.BookingServer, token string) *booking.Client {
	t.Helper()
	c, err := booking.NewClient(booking.Options{BaseURL: s.URL(), Transport: s.Transport(), Token: booking.StaticToken(token)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request(reference string) booking.Request {
	return booking.Request{
		ClientReference: reference, From: "ICN", To: "JFK", DepartureDate: "2027-05-01",
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantKind(t *testing.T, s *fake.BookingServer, err error, k booking.Kind, c booking.Class) {
	t.Helper()
	var e *booking.Error
	if !errors.As(err, &e) || e.Kind != k || e.Class() != c {
		t.Fatalf("got error %v, want kind %s and class %v\n%s", err, k, c, s.Transcript())
	}
}

func ptr[T any](v T) *T { return &v }

func TestALifeIsBookedReadChangedAndCancelled(t *testing.T) {
	s := setup(t, fake.BookingOptions{Seed: 7})
	ctx := t.Context()
	made := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("life")))
	b := made.Booking
	if b.Status != booking.Confirmed || b.RecordLocator == "" || b.Flight == nil || len(b.Seats) != 1 || b.Cabin != booking.Economy {
		t.Fatalf("booked: %+v", b)
	}
	if got := must[booking.Booking](t)(s.client.Get(ctx, b.ID)); !cmp.Equal(got, b) {
		t.Error(cmp.Diff(b, got))
	}
	changed := must[booking.Answer](t)(s.client.Change(ctx, "k2", b.ID, b.Version, booking.Change{
		DepartureDate: ptr("2027-06-01"), Cabin: ptr(booking.Business), Contact: &booking.Contact{Email: "a@example.com"},
	})).Booking
	if changed.DepartureDate != "2027-06-01" || changed.Flight.DepartureTime.Format(time.DateOnly) != "2027-06-01" || changed.Contact.Email != "a@example.com" {
		t.Errorf("changed: %+v", changed)
	}
	if want := s.Price("ICN", "JFK", booking.Business, 1); changed.Price != want || changed.Price == b.Price {
		t.Errorf("price %v after %v, want %v", changed.Price, b.Price, want)
	}
	again := must[booking.Answer](t)(s.client.Change(ctx, "k3", b.ID, changed.Version, booking.Change{Cabin: ptr(booking.Business)})).Booking
	if again.Version != changed.Version {
		t.Errorf("a change to what already is made version %s of %s", again.Version, changed.Version)
	}
	gone := must[booking.Answer](t)(s.client.Cancel(ctx, "k4", b.ID, changed.Version)).Booking
	if gone.Status != booking.Cancelled || gone.Cancellation.By != booking.ByCaller {
		t.Errorf("cancelled: %+v", gone)
	}
	if again := must[booking.Answer](t)(s.client.Cancel(ctx, "k5", b.ID, gone.Version)); again.Booking.Version != gone.Version {
		t.Error("cancelling again made a new version")
	}
	found := must[[]booking.Booking](t)(s.client.Lookup(ctx, "life"))
	if !cmp.Equal(found, []booking.Booking{gone}) {
		t.Error(cmp.Diff([]booking.Booking{gone}, found))
	}
	if s.CreatesInEffect("life") != 1 || len(s.Live("life")) != 0 {
		t.Error(s.Transcript())
	}
}

func TestEachRefusalHasItsKind(t *testing.T) {
	s := setup(t, fake.BookingOptions{})
	ctx := t.Context()
	made := must[booking.Answer](t)(s.client.Create(ctx, "base", request("base"))).Booking
	n := 0
	create := func(edit func(*booking.Request)) error {
		n++
		r := request(fmt.Sprintf("r%d", n))
		edit(&r)
		_, err := s.client.Create(ctx, fmt.Sprintf("c%d", n), r)
		return err
	}
	s.SellOut("CDG", "JFK", "", true)
	s.SellOut("ICN", "JFK", "2027-12-24", true)
	price := s.Price("ICN", "JFK", booking.Economy, 1)
	cents := must[int64](t)(price.Cents())

	for name, c := range map[string]struct {
		err   error
		kind  booking.Kind
		class booking.Class
	}{
		"sold out route":      {create(func(r *booking.Request) { r.From = "CDG" }), booking.SoldOut, booking.Refused},
		"sold out day":        {create(func(r *booking.Request) { r.DepartureDate = "2027-12-24" }), booking.SoldOut, booking.Refused},
		"a cent too dear":     {create(func(r *booking.Request) { r.MaxPrice = ptr(booking.Cents(cents-1, "EUR")) }), booking.PriceAboveLimit, booking.Refused},
		"limit in won":        {create(func(r *booking.Request) { r.MaxPrice = ptr(booking.Cents(1, "KRW")) }), booking.InvalidRequest, booking.Refused},
		"name with a digit":   {create(func(r *booking.Request) { r.Passengers[0].GivenName = "R2D2" }), booking.InvalidPassenger, booking.Refused},
		"born too late":       {create(func(r *booking.Request) { r.Passengers[0].DateOfBirth = "2027-05-02" }), booking.InvalidPassenger, booking.Refused},
		"ten passengers":      {create(func(r *booking.Request) { r.Passengers = make([]booking.Passenger, 10) }), booking.InvalidRequest, booking.Refused},
		"same place":          {create(func(r *booking.Request) { r.To = "ICN" }), booking.InvalidRequest, booking.Refused},
		"31 February":         {create(func(r *booking.Request) { r.DepartureDate = "2027-02-31" }), booking.InvalidRequest, booking.Refused},
		"reference taken":     {create(func(r *booking.Request) { r.ClientReference = "base" }), booking.ReferenceTaken, booking.Refused},
		"unknown booking":     {second(s.client.Get(ctx, "bk-none")), booking.NotFound, booking.Absent},
		"old version":         {second(s.client.Cancel(ctx, "x1", made.ID, "v0")), booking.VersionMismatch, booking.Refused},
		"unknown to cancel":   {second(s.client.Cancel(ctx, "x2", "bk-none", "v1")), booking.NotFound, booking.Absent},
		"empty change":        {second(s.client.Change(ctx, "x3", made.ID, made.Version, booking.Change{})), booking.InvalidRequest, booking.Refused},
		"key of another call": {second(s.client.Cancel(ctx, "base", made.ID, made.Version)), booking.KeyReused, booking.Refused},
	} {
		t.Run(name, func(t *testing.T) { wantKind(t, s.BookingServer, c.err, c.kind, c.class) })
	}
	if err := create(func(r *booking.Request) { r.MaxPrice = &price }); err != nil {
		t.Errorf("a price equal to the limit: %v", err)
	}
	other := client(t, s.BookingServer, "two")
	_, err := other.Get(ctx, made.ID)
	wantKind(t, s.BookingServer, err, booking.NotFound, booking.Absent)
	if _, err := other.Create(ctx, "base", request("base")); err != nil {
		t.Errorf("another caller's reference and key count: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestAReferenceIsAsUniqueAsTheServerSays(t *testing.T) {
	for uniqueness, want := range map[fake.ReferenceUniqueness]struct{ whileLive, afterCancel, afterFlown error }{
		fake.UniqueForever: {booking.ReferenceTaken, booking.ReferenceTaken, booking.ReferenceTaken},
		fake.UniqueLive:    {booking.ReferenceTaken, nil, booking.ReferenceTaken},
		fake.UniqueNone:    {nil, nil, nil},
	} {
		t.Run(string(uniqueness), func(t *testing.T) {
			s := setup(t, fake.BookingOptions{ReferenceUniqueness: uniqueness})
			ctx := t.Context()
			first := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("r"))).Booking
			_, err := s.client.Create(ctx, "k2", request("r"))
			check(t, "while live", err, want.whileLive)
			var e *booking.Error
			if errors.As(err, &e) && e.BookingID != first.ID {
				t.Errorf("the refusal names booking %q, want %s", e.BookingID, first.ID)
			}
			for _, b := range s.Live("r") {
				must[booking.Answer](t)(s.client.Cancel(ctx, "cancel-"+b.ID, b.ID, b.Version))
			}
			_, err = s.client.Create(ctx, "k3", request("r"))
			check(t, "after cancel", err, want.afterCancel)

			flown := must[booking.Answer](t)(s.client.Create(ctx, "k4", request("f"))).Booking
			if err := s.Fly(flown.ID); err != nil {
				t.Fatal(err)
			}
			_, err = s.client.Create(ctx, "k5", request("f"))
			check(t, "after flown", err, want.afterFlown)
		})
	}
}

func check(t *testing.T, when string, err, want error) {
	t.Helper()
	if want == nil && err != nil || !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", when, err, want)
	}
}

func TestAClosedReferenceTakesNothingAndTellsWhatExists(t *testing.T) {
	s := setup(t, fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone, ReferenceLag: time.Hour})
	ctx := t.Context()
	made := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("r"))).Booking
	other := must[booking.Answer](t)(s.client.Create(ctx, "k2", request("other"))).Booking
	closed := must[booking.Closed](t)(s.client.CloseReference(ctx, "k3", "r"))
	if !cmp.Equal(closed.Bookings, []booking.Booking{made}) {
		t.Errorf("the close tells %+v, want the one booking, although lists lag", closed.Bookings)
	}
	_, err := s.client.Create(ctx, "k4", request("r"))
	wantKind(t, s.BookingServer, err, booking.ReferenceClosed, booking.Refused)
	_, err = s.client.Change(ctx, "k5", other.ID, other.Version, booking.Change{ClientReference: ptr("r")})
	wantKind(t, s.BookingServer, err, booking.ReferenceClosed, booking.Refused)
	replay := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("r")))
	if !replay.Replayed || replay.Booking.ID != made.ID {
		t.Errorf("a replay across a close: %+v", replay)
	}
	if empty := must[booking.Closed](t)(s.client.CloseReference(ctx, "k6", "never")); len(empty.Bookings) != 0 {
		t.Errorf("closing an unused reference tells %+v", empty.Bookings)
	}
}

func TestABookingCanBePutUnderAnotherReferenceWhateverItsStatus(t *testing.T) {
	s := setup(t, fake.BookingOptions{})
	ctx := t.Context()
	made := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("old"))).Booking
	if err := s.Fly(made.ID); err != nil {
		t.Fatal(err)
	}
	flown := must[booking.Booking](t)(s.client.Get(ctx, made.ID))
	_, err := s.client.Change(ctx, "k2", made.ID, flown.Version, booking.Change{Cabin: ptr(booking.First)})
	wantKind(t, s.BookingServer, err, booking.StatusConflict, booking.Refused)
	_, err = s.client.Cancel(ctx, "k3", made.ID, flown.Version)
	wantKind(t, s.BookingServer, err, booking.StatusConflict, booking.Refused)
	moved := must[booking.Answer](t)(s.client.Change(ctx, "k4", made.ID, flown.Version, booking.Change{ClientReference: ptr("new")})).Booking
	if moved.ClientReference != "new" || moved.Status != booking.Flown {
		t.Errorf("moved: %+v", moved)
	}
	if found := must[[]booking.Booking](t)(s.client.Lookup(ctx, "old")); len(found) != 0 {
		t.Errorf("still under the old reference: %+v", found)
	}
	_, err = s.client.Create(ctx, "k5", request("old"))
	wantKind(t, s.BookingServer, err, booking.ReferenceTaken, booking.Refused)
}

func TestAnAirlineActsAtItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, fake.BookingOptions{ConfirmAfter: time.Minute, RescheduleAfter: time.Hour, FlownAfter: 2 * time.Hour})
		made := must[booking.Answer](t)(s.client.Create(t.Context(), "k1", request("r"))).Booking
		if made.Status != booking.Pending || made.RecordLocator != "" || made.Flight != nil || made.Seats != nil {
			t.Errorf("pending: %+v", made)
		}
		at := func(d time.Duration) booking.Booking {
			t.Helper()
			time.Sleep(time.Until(made.BookedAt.Add(d)))
			return must[booking.Booking](t)(s.client.Get(t.Context(), made.ID))
		}
		if b := at(time.Minute - time.Millisecond); b.Status != booking.Pending {
			t.Errorf("confirmed too early: %+v", b)
		}
		confirmed := at(time.Minute)
		if confirmed.Status != booking.Confirmed || confirmed.Version == made.Version {
			t.Errorf("confirmed: %+v", confirmed)
		}
		moved := at(90 * time.Minute)
		if c := moved.ScheduleChange; c == nil || !c.PreviousDepartureTime.Equal(confirmed.Flight.DepartureTime) || !c.ChangedAt.Equal(made.BookedAt.Add(time.Hour)) {
			t.Errorf("rescheduled: %+v", moved)
		}
		if d := moved.Flight.DepartureTime.Sub(confirmed.Flight.DepartureTime); d != 3*time.Hour {
			t.Errorf("rescheduled by %v", d)
		}
		if b := at(3 * time.Hour); b.Status != booking.Flown {
			t.Errorf("flown: %+v", b)
		}
		s.Close()
	})
}

func TestAnAirlineActsWhenTold(t *testing.T) {
	s := setup(t, fake.BookingOptions{ConfirmAfter: time.Hour})
	ctx := t.Context()
	for name, c := range map[string]struct {
		act  func(id string) error
		want booking.Status
	}{
		"confirm": {s.Confirm, booking.Confirmed},
		"fail":    {func(id string) error { return s.Fail(id, "no answer") }, booking.Failed},
		"cancel":  {func(id string) error { return s.CancelByAirline(id, "snow") }, booking.Cancelled},
	} {
		b := must[booking.Answer](t)(s.client.Create(ctx, name, request(name))).Booking
		if err := c.act(b.ID); err != nil {
			t.Fatal(err)
		}
		if got := must[booking.Booking](t)(s.client.Get(ctx, b.ID)); got.Status != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b := must[booking.Answer](t)(s.client.Create(ctx, "lose", request("lose"))).Booking
	if err := s.Fly(b.ID); err == nil {
		t.Error("a pending booking flew")
	}
	if err := s.Lose(b.ID); err != nil {
		t.Fatal(err)
	}
	_, err := s.client.Get(ctx, b.ID)
	wantKind(t, s.BookingServer, err, booking.NotFound, booking.Absent)
	if found := must[[]booking.Booking](t)(s.client.Lookup(ctx, "lose")); len(found) != 0 || len(s.Live("lose")) != 0 {
		t.Error("a lost booking is still found")
	}
}

func TestAFixedFareCannotBeChanged(t *testing.T) {
	s := setup(t, fake.BookingOptions{FixedFares: 1})
	ctx := t.Context()
	b := must[booking.Answer](t)(s.client.Create(ctx, "k1", request("r"))).Booking
	_, err := s.client.Change(ctx, "k2", b.ID, b.Version, booking.Change{DepartureDate: ptr("2027-06-01")})
	wantKind(t, s.BookingServer, err, booking.FareNotChangeable, booking.Refused)
	must[booking.Answer](t)(s.client.Change(ctx, "k3", b.ID, b.Version, booking.Change{Contact: &booking.Contact{Phone: "+82212345678"}}))
	if err := s.SetFareChangeable(b.ID, true); err != nil {
		t.Fatal(err)
	}
	now := must[booking.Booking](t)(s.client.Get(ctx, b.ID))
	must[booking.Answer](t)(s.client.Change(ctx, "k4", b.ID, now.Version, booking.Change{DepartureDate: ptr("2027-06-01")}))
}

func TestATokenThatIsRefusedHasNoCaller(t *testing.T) {
	s := setup(t, fake.BookingOptions{
		Authenticate: func(token string) (string, bool) { return "caller " + token, token != "two" },
		RateLimit:    fake.RateLimit{Requests: 1, Window: time.Hour},
	})
	fault := s.Inject(fake.BookingFault{Kind: fake.BookingInternal, Caller: "caller two"})
	refused := client(t, s.BookingServer, "two")
	for _, key := range []string{"k1", "k2"} {
		_, err := refused.Create(t.Context(), key, request("r"))
		wantKind(t, s.BookingServer, err, booking.Unauthorized, booking.Denied)
	}
	must[booking.Answer](t)(s.client.Create(t.Context(), "k3", request("r")))
	var callers []string
	for _, e := range s.Journal() {
		callers = append(callers, e.Caller)
	}
	if diff := cmp.Diff([]string{"", "", "caller one"}, callers); diff != "" || fault.Met() != 0 {
		t.Errorf("met %d; callers (-want +got):\n%s", fault.Met(), diff)
	}
}

func TestListsArePagedCompleteAndPerCaller(t *testing.T) {
	s := setup(t, fake.BookingOptions{ReferenceUniqueness: fake.UniqueNone})
	ctx := t.Context()
	var want []string
	for i := range 230 {
		ref := fmt.Sprintf("r%d", i)
		if i%2 == 0 {
			ref = "even"
		}
		b := must[booking.Answer](t)(s.client.Create(ctx, fmt.Sprintf("k%d", i), request(ref))).Booking
		want = append(want, b.ID)
	}
	must[booking.Answer](t)(client(t, s.BookingServer, "two").Create(ctx, "k", request("even")))
	var got []string
	for b, err := range s.client.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.ID)
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	if even := must[[]booking.Booking](t)(s.client.Lookup(ctx, "even")); len(even) != 115 {
		t.Errorf("%d under one reference, want 115", len(even))
	}
	for b, err := range s.client.List(ctx, "") {
		if err != nil || b.ID != want[0] {
			t.Errorf("got %v %v", b.ID, err)
		}
		break
	}
}

func TestASeedFixesWhatIsTold(t *testing.T) {
	tell := func(seed uint64) []booking.Booking {
		s := setup(t, fake.BookingOptions{Seed: seed})
		var got []booking.Booking
		for i := range 5 {
			b := must[booking.Answer](t)(s.client.Create(t.Context(), fmt.Sprint("k", i), request(fmt.Sprint("r", i)))).Booking
			b.BookedAt, b.UpdatedAt = time.Time{}, time.Time{}
			got = append(got, b)
		}
		return got
	}
	if a, b := tell(1), tell(1); !cmp.Equal(a, b) {
		t.Error(cmp.Diff(a, b))
	}
	if a, b := tell(1), tell(2); a[0].ID == b[0].ID || a[0].RecordLocator == b[0].RecordLocator || a[0].Price == b[0].Price {
		t.Errorf("two seeds tell the same: %+v and %+v", a[0], b[0])
	}
}

func TestARateLimitIsToldAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, fake.BookingOptions{RateLimit: fake.RateLimit{Requests: 2, Window: 10 * time.Second}})
		defer s.Close()
		ctx := t.Context()
		must[booking.Answer](t)(s.client.Create(ctx, "k1", request("a")))
		time.Sleep(3500 * time.Millisecond)
		must[[]booking.Booking](t)(s.client.Lookup(ctx, "a"))
		_, err := s.client.Create(ctx, "k2", request("b"))
		wantKind(t, s.BookingServer, err, booking.RateLimited, booking.Deferred)
		var e *booking.Error
		errors.As(err, &e)
		if e.RetryAfter != 7*time.Second {
			t.Errorf("Retry-After %v, want the rest of the window, rounded up: 7s", e.RetryAfter)
		}
		must[booking.Answer](t)(client(t, s.BookingServer, "two").Create(ctx, "k", request("c")))
		time.Sleep(e.RetryAfter)
		must[booking.Answer](t)(s.client.Create(ctx, "k2", request("b")))
	})
}

func TestAServerOverASocketStopsWithClientsAtWork(t *testing.T) {
	s := fake.NewBookingServer(fake.BookingOptions{})
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.Inject(fake.BookingFault{Kind: fake.BookingLatency, Delay: time.Hour})
	c := must[*booking.Client](t)(booking.NewClient(booking.Options{BaseURL: s.URL(), Transport: &http.Transport{DisableKeepAlives: true}, Token: booking.StaticToken("t")}))
	failed := make(chan error)
	go func() { failed <- second(c.Create(context.Background(), "k", request("r"))) }()
	if _, err := s.Await(t.Context(), func(e fake.BookingEntry) bool { return e.Reference == "r" }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	wantKind(t, s, <-failed, booking.ConnectionLost, booking.OutcomeUnknown)
	if len(s.Bookings()) != 0 {
		t.Error("a request that Close cut took effect")
	}
	if err := s.Start("127.0.0.1:0"); err == nil {
		t.Error("a closed server started")
	}
	_, err := c.Get(t.Context(), "bk-1")
	wantKind(t, s, err, booking.NotSent, booking.CannotTell)
}
