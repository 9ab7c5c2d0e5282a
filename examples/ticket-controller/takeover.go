package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

// takeOverOne makes a Ticket of another cluster this one's. It is paused until its
// booking carries the reference that the controller here derives for it; then its
// old claim is dropped by the annotation for that, and the controller finds the
// booking by itself. Wherever it is cut short, it goes on the next time.
func (d *desk) takeOverOne(ctx context.Context, p plan) (plan, error) {
	t := p.have
	id, _, _ := unstructured.NestedString(p.was.Object, "status", "bookingID")
	err := d.accountKnows(ctx, id, p.claim)
	if err != nil {
		return p, err
	}
	switch {
	case t == nil:
		t, err = d.create(ctx, fresh(p.was, map[string]string{annotationPaused: "true", annotationTaking: "true"}))
	case t.GetAnnotations()[annotationTaking] == "":
		t, err = d.annotate(ctx, t, map[string]any{annotationPaused: "true", annotationTaking: "true"})
	}
	if err != nil {
		return p, err
	}
	live, err := d.closeAndFind(ctx, t, p.claim, id)
	if err != nil {
		return p, err
	}
	drop := map[string]any{annotationTaking: nil, annotationPaused: nil, annotationNew: string(p.claim.UID)}
	if paused, ok := p.was.GetAnnotations()[annotationPaused]; ok { // by a person
		drop[annotationPaused] = paused
	}
	if len(live) == 0 && id != "" {
		delete(drop, annotationNew)
		p.why += fmt.Sprintf("; its booking %s does not stand for it any more, and it is left Stalled: annotate it with %s=%s to have another made", id, annotationNew, p.claim.UID)
	}
	for n, b := range live {
		reference := d.references.Of(t, n+1)
		if b.ClientReference == reference {
			continue
		}
		call := tether.Call{Reference: reference, Key: newKey(reference), ID: b.ID}
		if _, err := d.flights.Rebind(ctx, &v1.Ticket{}, call, tether.Observation{ID: b.ID, Version: b.Version}); err != nil {
			return p, fmt.Errorf("put booking %s under reference %s: %w", b.ID, reference, err)
		}
	}
	_, err = d.annotate(ctx, t, drop)
	return p, err
}

// accountKnows fails where the booking API has never heard of a booking, before anything
// is changed: another account's token shows none of them.
func (d *desk) accountKnows(ctx context.Context, id string, claim tether.Claim) error {
	if id == "" {
		return nil
	}
	switch _, err := d.flights.api.Get(ctx, id); {
	case is(err, booking.NotFound):
		return fmt.Errorf("the booking API does not know booking %s by this token: is it that of the account which the other cluster books with? Nothing was changed. Where the booking is gone for certain, restore without --take-over, and annotate the Ticket with %s=%s to have another made", id, annotationNew, claim.UID)
	case err != nil:
		return fmt.Errorf("look at booking %s: %w", id, err)
	}
	return nil
}

// newKey is an idempotency key that was never used: what is done here is as good
// done twice, and an answer that was kept under a key would tell how things stood
// then.
func newKey(reference string) string {
	return fmt.Sprintf("take-over-%s-%d", reference, time.Now().UnixNano())
}

// closeAndFind closes every reference that the other cluster may still book under,
// and returns what is live under them, or under the new ones already: oldest first.
func (d *desk) closeAndFind(ctx context.Context, t *unstructured.Unstructured, claim tether.Claim, id string) ([]booking.Booking, error) {
	var found []booking.Booking
	taken := []string{d.references.Of(t, 1), d.references.Of(t, 2)} // by an earlier try
	for _, reference := range taken {
		under, err := d.flights.api.Lookup(ctx, reference)
		if err != nil {
			return nil, fmt.Errorf("look for what was taken over already: %w", err)
		}
		found = append(found, under...)
	}
	for _, reference := range slices.Backward(claim.References) {
		closed, err := d.flights.api.CloseReference(ctx, newKey(reference), reference)
		if err != nil {
			return nil, fmt.Errorf("close reference %s: %w", reference, err)
		}
		found = append(found, closed.Bookings...)
	}
	if id != "" { // look-ups by reference lag
		b, err := d.flights.api.Get(ctx, id)
		switch known := slices.Contains(slices.Concat(taken, claim.References), b.ClientReference); {
		case is(err, booking.NotFound), err == nil && !known:
		case err != nil:
			return nil, fmt.Errorf("look at booking %s: %w", id, err)
		default:
			found = append([]booking.Booking{b}, found...)
		}
	}
	var live []booking.Booking
	for _, b := range found {
		same := func(other booking.Booking) bool { return other.ID == b.ID }
		if b.Status != booking.Cancelled && b.Status != booking.Failed && !slices.ContainsFunc(live, same) {
			live = append(live, b)
		}
	}
	if len(live) > 2 {
		return nil, errors.New("more than two bookings stand for it; cancel all but one at the booking API")
	}
	return live, nil
}
