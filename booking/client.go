package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options configure a [Client]. BaseURL and Token are required.
type Options struct {
	// BaseURL is where the API lives, without /v1: https://api.example.com. The
	// token is sent to this host alone. With http the token can be read on the way.
	BaseURL string
	// Token gives the bearer token. It is called for each request.
	Token TokenSource
	// Transport carries the requests [an http.Transport of the client's own, with
	// the proxy that the environment names]. It must not send a request again by
	// itself, and it stays the caller's: Close does not touch it.
	Transport http.RoundTripper
	// Timeout bounds one request with its answer, and the token's coming before it [30s]. A list is one request for
	// each page. The context of a call may set an earlier deadline.
	Timeout time.Duration
	// MaxBody bounds the body of an answer in bytes, after decompression [1 MiB].
	MaxBody int64
	// MaxPages bounds a list [1000]. A list that is longer ends with an error.
	MaxPages int
	// UserAgent is sent with each request [tether-booking].
	UserAgent string
}

// Client speaks to one booking API. It is safe for concurrent use.
type Client struct {
	base      string // without a slash at the end
	token     TokenSource
	transport http.RoundTripper
	own       *http.Transport // nil where the transport is the caller's
	timeout   time.Duration
	maxBody   int64
	maxPages  int
	userAgent string
}

// NewClient makes a client. It starts nothing and connects to nothing. The error
// names every option that is wrong.
func NewClient(o Options) (*Client, error) {
	base, err := checkBaseURL(o.BaseURL)
	errs := []error{err}
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if o.Token == nil {
		bad("Token", "is nil: give a source, as booking.TokenFile(path)")
	}
	if o.Timeout < 0 {
		bad("Timeout", "%v is negative: give a positive duration, or 0 for 30s", o.Timeout)
	}
	if o.MaxBody < 0 {
		bad("MaxBody", "%d is negative: give a number of bytes, or 0 for 1 MiB", o.MaxBody)
	}
	if o.MaxPages < 0 {
		bad("MaxPages", "%d is negative: give a number of pages, or 0 for 1000", o.MaxPages)
	}
	if strings.ContainsAny(o.UserAgent, "\r\n\x00") {
		bad("UserAgent", "has a line break: give one line")
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("booking: options: %w", err)
	}
	c := &Client{
		base: base, token: o.Token, transport: o.Transport,
		timeout: cmp.Or(o.Timeout, 30*time.Second), maxBody: cmp.Or(o.MaxBody, 1<<20),
		maxPages: cmp.Or(o.MaxPages, 1000), userAgent: cmp.Or(o.UserAgent, "tether-booking"),
	}
	if c.transport == nil {
		c.own = newTransport()
		c.transport = c.own
	}
	return c, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

func checkBaseURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return "", errors.New("BaseURL: is empty: give the address of the booking API, as https://api.example.com")
	case err != nil:
		// url.Parse's error repeats its input, which may hold a password.
		return "", errors.New("BaseURL: is not a URL: give one as https://api.example.com")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("BaseURL: scheme %q is neither http nor https: give a URL as https://api.example.com", u.Scheme)
	case u.Hostname() == "":
		return "", errors.New("BaseURL: has no host: give a URL as https://api.example.com")
	case u.User != nil:
		return "", errors.New("BaseURL: has a user or password: take them out and give Token")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("BaseURL: has a query or fragment: take it out")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Close gives back idle connections of the client's own transport. It may be
// called more than once; calls that run are not cut.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Answer is what a mutation that took effect, or a read, is answered with.
type Answer struct {
	Booking Booking
	// Replayed says that the server kept this answer from an earlier request with
	// the same idempotency key. It proves that the effect happened; how the
	// booking stands now, only a look-up tells.
	Replayed bool
}

// Create books. key is the idempotency key: 1 to 128 of letters, digits and "._:-".
func (c *Client) Create(ctx context.Context, key string, r Request) (Answer, error) {
	var a Answer
	if err := checkKey(OpCreate, key); err != nil {
		return a, err
	}
	var err error
	a.Replayed, err = c.do(ctx, exchange{op: OpCreate, method: http.MethodPost, path: "/v1/bookings", key: key, body: r}, &a.Booking,
		func() string {
			if a.Booking.ClientReference != r.ClientReference {
				return "the booking has another client_reference than was sent"
			}
			return checkBooking(a.Booking)
		})
	return orZero(a, err)
}

// Get reads a booking by its id. A booking that this caller does not have is an
// error of kind [NotFound].
func (c *Client) Get(ctx context.Context, id string) (Booking, error) {
	if err := checkID(OpGet, id); err != nil {
		return Booking{}, err
	}
	var b Booking
	_, err := c.do(ctx, exchange{op: OpGet, method: http.MethodGet, path: "/v1/bookings/" + id}, &b, sameID(&b, id))
	return orZero(b, err)
}

// Change changes a booking, if version is still its version.
func (c *Client) Change(ctx context.Context, key, id, version string, ch Change) (Answer, error) {
	return c.mutate(ctx, exchange{op: OpChange, method: http.MethodPatch, path: "/v1/bookings/" + id, key: key, version: version, body: ch}, id)
}

// Cancel cancels a booking, if version is still its version. Cancelling a
// cancelled booking succeeds and has no effect.
func (c *Client) Cancel(ctx context.Context, key, id, version string) (Answer, error) {
	return c.mutate(ctx, exchange{op: OpCancel, method: http.MethodPost, path: "/v1/bookings/" + id + "/cancel", key: key, version: version, body: struct{}{}}, id)
}

func (c *Client) mutate(ctx context.Context, x exchange, id string) (Answer, error) {
	if err := cmp.Or(checkID(x.op, id), checkKey(x.op, x.key), checkVersion(x.op, x.version)); err != nil {
		return Answer{}, err
	}
	var a Answer
	var err error
	a.Replayed, err = c.do(ctx, x, &a.Booking, sameID(&a.Booking, id))
	return orZero(a, err)
}

// Closed is the answer to [Client.CloseReference].
type Closed struct {
	Reference string
	// Bookings are all bookings under the reference, of every status.
	Bookings []Booking
	// Replayed is as in [Answer]: Bookings are as they were then.
	Replayed bool
}

// CloseReference is the fence: afterwards no create with the reference takes
// effect, however late it arrives, and no booking can be put under it. It
// answers what exists. Closing a closed reference succeeds.
func (c *Client) CloseReference(ctx context.Context, key, reference string) (Closed, error) {
	if err := cmp.Or(checkReference(OpClose, reference), checkKey(OpClose, key)); err != nil {
		return Closed{}, err
	}
	var body ClosedReference
	replayed, err := c.do(ctx, exchange{op: OpClose, method: http.MethodPost, path: "/v1/references/" + reference + "/close", key: key, body: struct{}{}}, &body,
		func() string {
			if !body.Closed || body.ClientReference != reference {
				return "it does not say that the reference is closed"
			}
			return checkAll(body.Bookings, reference)
		})
	if err != nil {
		return Closed{}, err
	}
	return Closed{Reference: reference, Bookings: body.Bookings, Replayed: replayed}, nil
}

// orZero keeps an answer that failed a check from being used by mistake.
func orZero[T any](v T, err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}
