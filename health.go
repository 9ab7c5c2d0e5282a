package tether

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Health answers /livez and /readyz, for the probes of a pod; with ?verbose each
// check is named, with its reason. Give it to [RunOptions], and serve it wherever
// suits, from before [Run] until after it. The zero value is ready for use: it is
// alive, and not ready until Run has synced. A synced standby is ready.
type Health struct {
	mu     sync.Mutex // guards checks
	checks func() (live, ready []check)
}

// check is one named condition; "" in reason means that it holds.
type check struct{ name, reason string }

func (h *Health) set(checks func() (live, ready []check)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = checks
}

// ServeHTTP answers a path that ends in /livez or /healthz, or in /readyz: 200
// where all checks hold, else 503; anything else is 404.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	checks := h.checks
	h.mu.Unlock()
	live, ready := []check{{name: "process"}}, []check{{name: "run", reason: "Run has not begun, or has ended"}}
	if checks != nil {
		live, ready = checks()
	}
	var list []check
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case strings.HasSuffix(path, "/livez"), strings.HasSuffix(path, "/healthz"):
		list = live
	case strings.HasSuffix(path, "/readyz"):
		list = ready
	default:
		http.NotFound(w, r)
		return
	}
	name := path[strings.LastIndex(path, "/")+1:]
	good := !slices.ContainsFunc(list, func(c check) bool { return c.reason != "" })
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if _, verbose := r.URL.Query()["verbose"]; !verbose && good {
		_, _ = fmt.Fprint(w, "ok") // the client may have gone
		return
	}
	for _, c := range list {
		if c.reason == "" {
			_, _ = fmt.Fprintf(w, "[+]%s ok\n", c.name)
		} else {
			_, _ = fmt.Fprintf(w, "[-]%s failed: %s\n", c.name, c.reason)
		}
	}
	_, _ = fmt.Fprintf(w, "%s check %s\n", name, map[bool]string{true: "passed", false: "failed"}[good])
}
