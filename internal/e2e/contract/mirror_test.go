package contract

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

// mirror is a user's controller of a built-in type: a ConfigMap of this name tells
// how many Tickets of its namespace are booked.
type mirror struct {
	tickets *tether.Informer[*v1.Ticket]
	configs *tether.Client[*corev1.ConfigMap]
}

const mirrorName = "booked-tickets"

// Reconcile counts, and applies what is not so already.
func (m *mirror) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (tether.Result, error) {
	booked := 0
	for t := range m.tickets.List(cm.Namespace) {
		if t.Status.BookingID != "" && t.DeletionTimestamp == nil {
			booked++
		}
	}
	if cm.Data["booked"] == strconv.Itoa(booked) {
		return tether.Done, nil
	}
	_, err := m.configs.Apply(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name},
		Data:       map[string]string{"booked": strconv.Itoa(booked)},
	})
	return tether.Done, err
}

// mirrorOf names the ConfigMap of a Ticket's namespace.
func mirrorOf(t *v1.Ticket) iter.Seq[tether.Key] {
	return slices.Values([]tether.Key{{Namespace: t.Namespace, Name: mirrorName}})
}

// bookings is a user's External: a booking for each Ticket.
type bookings struct{ *booking.Client }

func (b bookings) Observe(ctx context.Context, _ *v1.Ticket, c tether.Call) (tether.Observation, error) {
	found, err := b.Lookup(ctx, c.Reference)
	if err != nil || len(found) == 0 {
		return tether.Observation{State: tether.Absent}, err
	}
	return standing(found[0]), nil
}

func (b bookings) Create(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) {
	r := booking.Request{ClientReference: c.Reference, From: t.Spec.From, To: t.Spec.To, DepartureDate: t.Spec.DepartureDate}
	for _, p := range t.Spec.Passengers {
		r.Passengers = append(r.Passengers, booking.Passenger{GivenName: p.GivenName, FamilyName: p.FamilyName})
	}
	a, err := b.Client.Create(ctx, c.Key, r)
	return standing(a.Booking), err
}

func (b bookings) Update(context.Context, *v1.Ticket, tether.Call, tether.Observation) (tether.Observation, error) {
	return tether.Observation{}, tether.Terminal(fmt.Errorf("bookings of this test do not change"))
}

func (b bookings) Delete(ctx context.Context, _ *v1.Ticket, c tether.Call, seen tether.Observation) (tether.Observation, error) {
	a, err := b.Cancel(ctx, c.Key, seen.ID, seen.Version)
	return standing(a.Booking), err
}

func standing(b booking.Booking) tether.Observation {
	o := tether.Observation{State: tether.Present, ID: b.ID, Reference: b.ClientReference, Version: b.Version}
	if b.Status == booking.Cancelled || b.Status == booking.Failed {
		o.State = tether.Ended
	}
	return o
}

func TestASecondControllerMirrorsTheTicketsOfTheFirstFromTheSameInformer(t *testing.T) {
	t.Parallel()
	s := setup(t)
	site := fake.NewBookingServer(fake.BookingOptions{})
	if err := site.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	api, err := booking.NewClient(booking.Options{BaseURL: site.URL(), Token: booking.StaticToken("token-of-the-tests")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)

	tickets := tether.NewInformer(tether.Resource[*v1.Ticket]{GroupVersion: v1.GroupVersion, Kind: "Ticket", Plural: "tickets"}, s.here())
	o := s.here()
	o.FieldSelector = "metadata.name=" + mirrorName
	cms := tether.NewInformer(configs, o)
	flights := tether.Manage(tickets, bookings{api}, tether.ManageOptions[*v1.Ticket]{
		ID: func(t *v1.Ticket) *string { return &t.Status.BookingID }, Guarantee: tether.UniqueReference,
	})
	mirrors := tether.New(cms, &mirror{tickets, tether.NewClient(cms, tether.ClientOptions{})}, tether.Options{
		Name: "mirror", Watches: []tether.Watch{tether.Watches(tickets, mirrorOf)},
	})
	hooks := newHooks()
	r := s.start(t, tether.RunOptions{SingleProcess: true, Hooks: hooks}, flights, mirrors)

	s.make(t, configMaps, "ConfigMap", mirrorName, `{"data":{"kept":"as it is"}}`)
	s.make(t, configMaps, "ConfigMap", "another", `{}`)
	s.mirrors(t, 0)
	for i := range 3 {
		s.make(t, at(v1.GroupVersion.Group, "tickets"), "Ticket", fmt.Sprint("ticket-", i), `{"spec":{"from":"ICN","to":"JFK","departureDate":"2027-05-01","passengers":[{"givenName":"Test","familyName":"Passenger"}]}}`)
	}
	s.mirrors(t, 3)
	if err := s.on(at(v1.GroupVersion.Group, "tickets")).Delete(t.Context(), "ticket-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if cm := s.mirrors(t, 2); cm.Data["kept"] != "as it is" {
		t.Errorf("its data is %v", cm.Data)
	}
	s.patchOf(t, configMaps, mirrorName, `{"data":{"booked":"99"}}`)
	s.mirrors(t, 2)

	if n := len(site.Bookings()); n != 3 {
		t.Errorf("%d bookings were made", n)
	}
	if err := r.end(t); err != nil {
		t.Error(err)
	}
	// Every write said something new, and none woke the mirror itself.
	wrote := s.wire.log.all(ended(writes("configmaps")))
	for i, e := range wrote {
		if e.Code != http.StatusOK && e.Code != http.StatusCreated || e.Name != mirrorName || i > 0 && e.Body == wrote[i-1].Body && i != len(wrote)-1 {
			t.Errorf("%s: %s", e, e.Body)
		}
	}
	for _, p := range hooks.passes.all(func(p tether.PassInfo) bool { return p.Controller == "mirror" && p.Outcome != "done" }) {
		t.Errorf("a pass ended in %+v", p)
	}
}

// mirrors waits until the mirror tells a number.
func (s *stage) mirrors(t *testing.T, booked int) *corev1.ConfigMap {
	t.Helper()
	return as[corev1.ConfigMap](t, s.awaitOf(t, configMaps, mirrorName, fmt.Sprint("telling ", booked), func(u *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(u.Object, "data", "booked")
		return got == strconv.Itoa(booked)
	}))
}
