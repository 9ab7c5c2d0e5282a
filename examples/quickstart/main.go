// Command quickstart is a whole controller: it books a flight for every Ticket.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

type flights struct{ *booking.Client }

func (f flights) Observe(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) {
	found, err := f.Find(ctx, c.ID, c.Reference)
	if err != nil || len(found) == 0 {
		return tether.Observation{State: tether.Absent}, err
	}
	return seen(t, found[0], false, nil)
}

func (f flights) Create(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) {
	r := booking.Request{ClientReference: c.Reference, From: t.Spec.From, To: t.Spec.To, DepartureDate: t.Spec.DepartureDate}
	for _, p := range t.Spec.Passengers {
		r.Passengers = append(r.Passengers, booking.Passenger{GivenName: p.GivenName, FamilyName: p.FamilyName})
	}
	a, err := f.Client.Create(ctx, c.Key, r)
	return seen(t, a.Booking, a.Replayed, err)
}

func (f flights) Update(ctx context.Context, t *v1.Ticket, c tether.Call, o tether.Observation) (tether.Observation, error) {
	a, err := f.Change(ctx, c.Key, o.ID, o.Version, booking.Change{DepartureDate: &t.Spec.DepartureDate})
	return seen(t, a.Booking, a.Replayed, err)
}

func (f flights) Delete(ctx context.Context, t *v1.Ticket, c tether.Call, o tether.Observation) (tether.Observation, error) {
	a, err := f.Cancel(ctx, c.Key, o.ID, o.Version)
	return seen(t, a.Booking, a.Replayed, err)
}

func seen(t *v1.Ticket, b booking.Booking, replayed bool, err error) (tether.Observation, error) {
	if e := (*booking.Error)(nil); errors.As(err, &e) && e.Class() == booking.Refused {
		return tether.Observation{}, tether.Terminal(err) // sold out, for example: only a change can help
	} else if e != nil && e.Definite() {
		return tether.Observation{}, tether.NoEffect(err) // what may have taken effect stays a plain error
	}
	o := tether.Observation{State: tether.Present, ID: b.ID, Reference: b.ClientReference, Version: b.Version, Replay: replayed}
	if b.Status == booking.Cancelled || b.Status == booking.Failed || b.Status == booking.Flown && t.DeletionTimestamp != nil {
		o.State = tether.Ended
	} else if b.DepartureDate != t.Spec.DepartureDate {
		o.Differs = []string{"spec.departureDate"}
	}
	return o, err
}

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	api, apiErr := booking.NewClient(booking.Options{BaseURL: os.Getenv("BOOKING_URL"), Token: booking.StaticToken(os.Getenv("BOOKING_TOKEN"))})
	if err != nil || apiErr != nil {
		log.Fatal(errors.Join(err, apiErr))
	}
	in := tether.NewInformer(tether.Resource[*v1.Ticket]{GroupVersion: v1.GroupVersion, Kind: "Ticket", Plural: "tickets"}, tether.InformerOptions{})
	c := tether.Manage(in, flights{api}, tether.ManageOptions[*v1.Ticket]{ID: func(t *v1.Ticket) *string { return &t.Status.BookingID }, Guarantee: tether.UniqueReference})
	log.Fatal(tether.Run(context.Background(), cfg, tether.RunOptions{SingleProcess: true}, c))
}
