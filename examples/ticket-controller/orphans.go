package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
)

// orphans lists live bookings of this cluster that no Ticket derives a reference of.
// Bookings are listed first, so that what is booked meanwhile is not among them, and
// looked at once more in the end, so that what is cancelled meanwhile is not either.
func (d *desk) orphans(ctx context.Context, stdout io.Writer) error {
	listed, known, err := d.listed(ctx)
	if err != nil {
		return err
	}
	c, err := d.claims(ctx, known)
	if err != nil {
		return err
	}
	if c.unknown == c.booked && c.booked > 0 {
		return fmt.Errorf("the account of this token has none of the bookings that %d Tickets say they have: is it the one that the controller books with?", c.booked)
	}
	table := tabwriter.NewWriter(stdout, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "BOOKING\tFROM\tTO\tDATE\tSTATE\tLOCATOR\tREFERENCE") // Flush tells
	n := 0
	for _, b := range listed {
		if c.references[b.ClientReference] {
			continue
		}
		now, err := d.flights.api.Get(ctx, b.ID)
		switch {
		case is(err, booking.NotFound):
			continue
		case err != nil:
			return fmt.Errorf("look at booking %s again: %w", b.ID, err)
		case !standing(now) || now.ClientReference != b.ClientReference:
			continue
		}
		n++
		_, _ = fmt.Fprintln(table, strings.Join([]string{now.ID, now.From, now.To, now.DepartureDate, string(now.Status), now.RecordLocator, now.ClientReference}, "\t"))
	}
	switch {
	case n > 0 && table.Flush() != nil:
		return errors.New("the table could not be written")
	case n == 0:
		_, _ = fmt.Fprintln(stdout, "every booking of this cluster has its Ticket")
	}
	for _, u := range c.unreadable {
		_, _ = fmt.Fprintln(stdout, u)
	}
	if c.unknown > 0 {
		_, _ = fmt.Fprintf(stdout, "%d of %d Tickets have a booking that the account of this token does not know; see their conditions\n", c.unknown, c.booked)
	}
	return nil
}

// listed are the bookings of this cluster that are standing, and the ids of all that the
// account has, ended ones too.
func (d *desk) listed(ctx context.Context) (listed []booking.Booking, known map[string]bool, err error) {
	here := []tether.References{d.references}
	for _, id := range d.formerClusterIDs {
		here = append(here, managed(d.settings, nil).References(id))
	}
	known = map[string]bool{}
	for b, err := range d.flights.api.List(ctx, "") {
		if err != nil {
			return nil, nil, fmt.Errorf("list the bookings: %w", err)
		}
		known[b.ID] = true
		ours := func(r tether.References) bool { return r.InCluster(b.ClientReference) }
		if standing(b) && slices.ContainsFunc(here, ours) {
			listed = append(listed, b)
		}
	}
	return listed, known, nil
}

// claims is what Tickets say of bookings.
type claims struct {
	references      map[string]bool // that a Ticket's booking carries, or will
	unreadable      []string        // Tickets whose claim cannot be read, and why
	booked, unknown int             // Tickets with a booking, and those with one that is not known
}

func (d *desk) claims(ctx context.Context, known map[string]bool) (claims, error) {
	c := claims{references: map[string]bool{}}
	for t, err := range d.all(ctx) {
		if err != nil {
			return c, err
		}
		claim, err := d.references.Claim(t)
		if err != nil {
			c.unreadable = append(c.unreadable, fmt.Sprintf("%s/%s: %v; a booking listed here may be its own", t.GetNamespace(), t.GetName(), err))
		}
		// What was just taken over carries references that no claim has yet.
		for _, reference := range append(claim.References, d.references.Of(t, 1), d.references.Of(t, 2)) {
			c.references[reference] = true
		}
		if id, _, _ := unstructured.NestedString(t.Object, "status", "bookingID"); id != "" {
			c.booked++
			if !known[id] {
				c.unknown++
			}
		}
	}
	return c, nil
}

// standing tells whether a booking is one to do something about: a flown one is not.
func standing(b booking.Booking) bool {
	return b.Status == booking.Pending || b.Status == booking.Confirmed
}
