package tether

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// longestRetryAfter bounds what a server may ask for.
const longestRetryAfter = 24 * time.Hour

// FromHTTP says what an HTTP answer, or the lack of one, tells of a call's effect, in
// the words of this package: give it what the client returned, and return what it
// returns, after the cases that an [External] knows better. A 2xx is nil. It neither
// reads nor closes the body.
//
//	not sent (no address, refused, TLS)              NoEffect, Unreachable
//	400 405 406 411 413 414 415 417 422 431 501 505  Terminal
//	401 403 407                                      NoEffect, Unauthorized
//	429                                              NoEffect, RateLimited
//	other 3xx and 4xx but 408                        NoEffect: what was seen is not so any more
//	408, 5xx, time-out, connection lost, all else    unknown: it may have taken effect
//
// It cannot tell how often the request was sent: a [net/http.Transport] sends one with
// a header Idempotency-Key again by itself, unless its GetBody is nil and it has a body.
//
// A Retry-After counts with 429, 503 and 3xx, up to a day (RFC 9110, section
// 10.2.3). For an Observe only nil tells anything: a 404 is an error here, since only
// the author knows that it means an absence, and that a 403 does not.
func FromHTTP(resp *http.Response, err error) error {
	switch {
	case err != nil && notSent(err):
		return NoEffect(Reason(reasonUnreachable, err))
	case err != nil:
		return err
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	}
	code := resp.StatusCode
	err = fmt.Errorf("HTTP %d %s", code, http.StatusText(code))
	switch code {
	case http.StatusTooManyRequests:
		err = Reason(reasonRateLimited, err)
	case http.StatusServiceUnavailable:
		err = Reason(reasonUnavailable, err)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		err = Reason("Unauthorized", err)
	}
	if waits := code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable || code >= 300 && code < 400; waits {
		if d, ok := retryAfter(resp); ok {
			err = RetryAfter(err, d)
		}
	}
	switch {
	case refuses[code]:
		return Terminal(err)
	case code >= 300 && code < 500 && code != http.StatusRequestTimeout:
		return NoEffect(err)
	}
	return err
}

// refuses are the answers that only another request can help.
var refuses = map[int]bool{
	http.StatusBadRequest: true, http.StatusMethodNotAllowed: true, http.StatusNotAcceptable: true,
	http.StatusLengthRequired: true, http.StatusRequestEntityTooLarge: true, http.StatusRequestURITooLong: true,
	http.StatusUnsupportedMediaType: true, http.StatusExpectationFailed: true, http.StatusUnprocessableEntity: true,
	http.StatusRequestHeaderFieldsTooLarge: true, http.StatusNotImplemented: true, http.StatusHTTPVersionNotSupported: true,
}

// notSent tells whether a request cannot have reached the server.
func notSent(err error) bool {
	var dial *net.OpError
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &dns) || errors.As(err, &certificate)
}

// retryAfter is what the server asks for, as seconds or as a date.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	value := resp.Header.Get("Retry-After")
	if value == "" {
		return 0, false
	}
	d := longestRetryAfter
	n, notSeconds := strconv.ParseUint(value, 10, 32)
	at, notDate := http.ParseTime(value)
	switch {
	case notSeconds == nil:
		d = time.Duration(n) * time.Second
	case notDate == nil:
		from, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			from = time.Now()
		}
		d = at.Sub(from)
	case !errors.Is(notSeconds, strconv.ErrRange): // of more seconds than fit, a day is what counts
		return 0, false
	}
	return min(max(d, 0), longestRetryAfter), true
}
