package booking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

const (
	pageSize  = 100
	maxCursor = 1024
	maxLookup = 1000
)

// List yields the caller's bookings under a reference, of every status, or with
// an empty reference all of the caller's bookings. It asks for page after page
// while the loop runs; a page is not read before it is needed. The sequence ends
// with an error, beside a zero Booking, where a page cannot be read or MaxPages
// is not enough: what came before is then not the whole.
//
// Look-ups by reference may lag behind what was booked; look-ups by id do not.
func (c *Client) List(ctx context.Context, reference string) iter.Seq2[Booking, error] {
	return func(yield func(Booking, error) bool) {
		if reference != "" {
			if err := checkReference(OpList, reference); err != nil {
				yield(Booking{}, err)
				return
			}
		}
		cursor := ""
		for range c.maxPages {
			page, err := c.page(ctx, reference, cursor)
			if err != nil {
				yield(Booking{}, err)
				return
			}
			for _, b := range page.Bookings {
				if !yield(b, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			cursor = *page.NextCursor
		}
		yield(Booking{}, &Error{Op: OpList, Kind: BadAnswer, note: fmt.Sprintf("the list does not end within %d pages; raise MaxPages if it is right", c.maxPages)})
	}
}

// Lookup is every booking under a reference, in the order of their creation. More
// than 1000 of them are an error.
func (c *Client) Lookup(ctx context.Context, reference string) ([]Booking, error) {
	if err := checkReference(OpList, reference); err != nil {
		return nil, err
	}
	var found []Booking
	for b, err := range c.List(ctx, reference) {
		if err != nil {
			return nil, err
		}
		if len(found) == maxLookup {
			return nil, &Error{Op: OpList, Kind: BadAnswer, note: fmt.Sprintf("more than %d bookings under one reference", maxLookup)}
		}
		found = append(found, b)
	}
	return found, nil
}

// Find is the booking of an id, or what [Client.Lookup] finds under a reference where the
// id is "". A booking that this caller does not have is none, and no error. By id, what is
// booked shows at once; look-ups by reference may lag.
func (c *Client) Find(ctx context.Context, id, reference string) ([]Booking, error) {
	if id == "" {
		return c.Lookup(ctx, reference)
	}
	b, err := c.Get(ctx, id)
	switch {
	case errors.Is(err, NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []Booking{b}, nil
}

func (c *Client) page(ctx context.Context, reference, cursor string) (Page, error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if reference != "" {
		query.Set("client_reference", reference)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var page Page
	_, err := c.do(ctx, exchange{op: OpList, method: http.MethodGet, path: "/v1/bookings", query: query}, &page,
		func() string {
			// A missing list must not read as an empty one: that would prove absence.
			if page.Bookings == nil {
				return "a list without bookings"
			}
			if n := page.NextCursor; n != nil && (*n == "" || len(*n) > maxCursor || *n == cursor) {
				return "a cursor that leads nowhere"
			}
			return checkAll(page.Bookings, reference)
		})
	return orZero(page, err)
}
