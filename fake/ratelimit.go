package fake

import (
	"fmt"
	"net/http"
	"time"
)

// RateLimit allows Requests requests of one caller in each Window. The zero value
// is no limit.
type RateLimit struct {
	Requests int
	Window   time.Duration // counts in whole seconds, at least one
}

// meter counts one caller's requests. Its methods want the lock of its owner.
type meter struct {
	started time.Time
	used    int
}

// take counts one request. It sets the headers that tell what is left, and
// answers how long to wait where nothing is.
func (m *meter) take(limit RateLimit, now time.Time, h http.Header) (wait time.Duration, ok bool) {
	if limit.Requests <= 0 {
		return 0, true
	}
	window := max(limit.Window.Truncate(time.Second), time.Second)
	if m.started.IsZero() || now.Sub(m.started) >= window {
		m.started, m.used = now, 0
	}
	left := wholeSeconds(m.started.Add(window).Sub(now))
	ok = m.used < limit.Requests
	if ok {
		m.used++
	}
	h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, limit.Requests, int(window/time.Second)))
	h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, limit.Requests-m.used, left))
	return time.Duration(left) * time.Second, ok
}

// wholeSeconds rounds up: who waits for less comes back too early.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
