package booking

import (
	"net/http"
	"strings"
	"time"
)

// MaxRetryAfter bounds what a server can ask for in Retry-After. A longer wait is
// cut to it, since a wrong header must not silence a caller for days.
const MaxRetryAfter = time.Hour

// retryAfter reads a Retry-After header: whole seconds, or an HTTP date. A value
// that is neither, or a date in the past, asks for nothing. The date is taken
// against the server's own clock where the answer tells it, since the two clocks
// may differ.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if isDigits(v, 1, 100) {
		v = strings.TrimLeft(v, "0")
		if len(v) > 9 { // beyond any bound, and beyond what fits
			return MaxRetryAfter
		}
		var seconds time.Duration
		for _, c := range []byte(v) {
			seconds = seconds*10 + time.Duration(c-'0')
		}
		return min(seconds*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}
