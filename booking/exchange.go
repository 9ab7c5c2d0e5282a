package booking

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// exchange is one request with its answer.
type exchange struct {
	op           Operation
	method, path string
	query        url.Values
	key, version string
	body         any // nil for reads; every mutation has one, see newRequest
}

// do sends x once and decodes a good answer into into. check says what is wrong
// with what was decoded; an answer that fails it is a [BadAnswer].
func (c *Client) do(ctx context.Context, x exchange, into any, check func() string) (replayed bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	token, err := c.token(bounded)
	if err == nil {
		err = checkToken(token)
	}
	if err != nil {
		return false, &Error{Op: x.op, Kind: NoToken, note: tokenNote(err), err: err}
	}
	if ctx.Err() != nil {
		return false, &Error{Op: x.op, Kind: NotSent, note: "the context was over before", err: cause(ctx)}
	}

	var sight sight
	req, err := c.newRequest(sight.watch(bounded), x, token)
	if err != nil {
		return false, badArgument(x.op, "the request cannot be written as JSON")
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return false, c.broken(ctx, bounded, x.op, sight.neverSent(), err)
	}
	defer resp.Body.Close()
	body, readErr := io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
	a := answer{op: x.op, status: resp.StatusCode, header: resp.Header, body: body}
	a.tooLarge = int64(len(body)) > c.maxBody
	if readErr != nil {
		if e := a.byStatusAlone(); e != nil {
			return false, e
		}
		return false, c.broken(ctx, bounded, x.op, false, readErr)
	}
	return a.decode(into, check)
}

func (c *Client) newRequest(ctx context.Context, x exchange, token string) (*http.Request, error) {
	target := c.base + x.path
	if len(x.query) > 0 {
		target += "?" + x.query.Encode()
	}
	var body io.Reader
	if x.body != nil {
		b, err := json.Marshal(x.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, target, body)
	if err != nil {
		return nil, err
	}
	// http.Transport takes a request with an Idempotency-Key for one that it may
	// send again by itself, as long as it has no body or one that it can rewind.
	// Then a second send would be hidden from the caller.
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "application/json, "+MediaTypeProblem)
	if x.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if x.key != "" {
		req.Header.Set("Idempotency-Key", x.key)
	}
	if x.version != "" {
		req.Header.Set("If-Match", `"`+x.version+`"`)
	}
	return req, nil
}

// sight watches a transport at work, to tell afterwards whether a request that
// failed can have left this process.
type sight struct{ asked, got atomic.Bool }

func (s *sight) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.got.Store(true) },
	})
}

// neverSent holds only if the transport was seen asking for a connection and
// never got one. A transport that tells nothing proves nothing.
func (s *sight) neverSent() bool { return s.asked.Load() && !s.got.Load() }

// broken makes the error for a request that no complete answer came to.
func (c *Client) broken(ctx, bounded context.Context, op Operation, neverSent bool, err error) *Error {
	e := &Error{Op: op, Kind: ConnectionLost, note: reasonOf(err), err: err}
	switch {
	case ctx.Err() != nil:
		e.Kind, e.note, e.err = Canceled, "", cause(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.Kind, e.note = TimedOut, "the deadline of the caller has passed"
		}
	case bounded.Err() != nil:
		e.Kind, e.note, e.err = TimedOut, fmt.Sprintf("none within %v", c.timeout), bounded.Err()
	}
	if neverSent {
		e.Kind = NotSent
	}
	return e
}

// cause is the context's error with its cause, so that both can be asked for.
func cause(ctx context.Context) error {
	err, why := ctx.Err(), context.Cause(ctx)
	if why == nil || errors.Is(err, why) {
		return err
	}
	return fmt.Errorf("%w: %w", err, why)
}

// reasonOf is the innermost reason of a network error, without addresses: those
// differ from one try to the next.
func reasonOf(err error) string {
	var (
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
		wrong x509.CertificateInvalidError
		op    *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return "cannot resolve the host: " + dns.Err
	case errors.As(err, &cert) && errors.As(err, &wrong) && wrong.Reason == x509.Expired:
		return "the server's certificate has expired, or is not valid yet"
	case errors.As(err, &cert):
		return "the server's certificate is not trusted"
	case errors.As(err, &op) && op.Err != nil:
		return reasonBelow(op)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed by the server"
	}
	return ""
}

// reasonBelow goes down through operations, since each names addresses.
func reasonBelow(op *net.OpError) string {
	for {
		var inner *net.OpError
		if !errors.As(op.Err, &inner) || inner.Err == nil {
			return op.Err.Error()
		}
		op = inner
	}
}

func tokenNote(err error) string {
	if errors.Is(err, errEmptyToken) || errors.Is(err, errBadToken) {
		return err.Error()
	}
	return "the token source failed"
}
