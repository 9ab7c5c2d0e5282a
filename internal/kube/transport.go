package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Request is one request that was answered, or failed.
type Request struct {
	Method      string
	Resource    string // plural, with "/subresource" where there is one
	Watch       bool
	Code        int // 0 where there was no answer
	Duration    time.Duration
	Err         error
	Unsent      bool // refused here: the lease was not held
	ContentSize int64
}

// Conn is a connection to an API server that one run owns: made by Dial, closed by
// Close, shared with nobody.
type Conn struct {
	// Config is a private copy, without a client-side rate limit unless one was given.
	Config *rest.Config
	// Client carries the credentials of Config.
	Client *http.Client

	own  *http.Transport // nil where Config brought its own transport
	dial *dialer         // of own
	skew atomic.Int64    // nanoseconds that the server's clock is ahead
}

// Dial prepares a connection; nothing is sent. observe hears of every request; it
// may be nil.
func Dial(cfg *rest.Config, observe func(Request)) (*Conn, error) {
	c := &Conn{Config: rest.CopyConfig(cfg)}
	if c.Config.QPS == 0 && c.Config.RateLimiter == nil {
		c.Config.QPS = -1 // the server's priority and fairness does it
	}
	if c.Config.ContentType == "" { // clients of built-in types would choose protobuf, which not every server speaks
		c.Config.ContentType, c.Config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	}
	if c.Config.UserAgent == "" {
		c.Config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	tc, err := c.Config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	base := tc.Transport
	if base == nil {
		tls, err := transport.TLSConfigFor(tc)
		if err != nil {
			return nil, fmt.Errorf("TLS settings: %w", err)
		}
		c.own = &http.Transport{TLSClientConfig: tls, Proxy: tc.Proxy, MaxIdleConnsPerHost: 25}
		if tc.DialHolder != nil {
			c.own.DialContext = tc.DialHolder.Dial
		}
		c.own = utilnet.SetTransportDefaults(c.own)
		c.dial = &dialer{dial: c.own.DialContext}
		c.own.DialContext = c.dial.DialContext
		base = c.own
	}
	rt, err := transport.HTTPWrappersForConfig(tc, &meter{next: base, conn: c, observe: observe})
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	c.Client = &http.Client{Transport: rt, Timeout: c.Config.Timeout}
	return c, nil
}

// Close ends every connection; it comes after the last request.
func (c *Conn) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
		c.dial.close()
	}
}

// Now is the API server's time, as far as the Date of its answers tells.
func (c *Conn) Now() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) }

// Age is how long ago the API server made an object that has this creation time,
// negative where that is yet to come. The server's clock is known to half a second,
// and a creation time has whole ones: what was just made may seem to be of the
// future, and is new.
func (c *Conn) Age(created time.Time) time.Duration {
	age := c.Now().Sub(created)
	if age < 0 && age > -time.Second {
		return 0
	}
	return age
}

type meter struct {
	next    http.RoundTripper
	conn    *Conn
	observe func(Request)
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := m.next.RoundTrip(r)
	if err == nil {
		if date, derr := http.ParseTime(resp.Header.Get("Date")); derr == nil {
			m.conn.skew.Store(int64(time.Until(date) + time.Second/2)) // Date has no fractions
		}
	}
	if m.observe != nil {
		q := Request{
			Method: r.Method, Resource: resourceOf(r.URL.Path), Watch: r.URL.Query().Get("watch") != "",
			Duration: time.Since(start), Err: err,
		}
		if err == nil {
			q.Code = resp.StatusCode
		}
		m.observe(q)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport that cancels a request.
func (m *meter) WrappedRoundTripper() http.RoundTripper { return m.next }

// resourceOf is the resource that a path names: what /api/v1 or /apis/g/v is
// followed by, without namespace and name.
func resourceOf(path string) string {
	p := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(p) > 2 && p[0] == "api":
		p = p[2:]
	case len(p) > 3 && p[0] == "apis":
		p = p[3:]
	default:
		return "discovery"
	}
	if p[0] == "namespaces" && len(p) > 2 && p[2] != "status" && p[2] != "finalize" {
		p = p[2:]
	}
	if len(p) > 2 {
		return p[0] + "/" + p[2]
	}
	return p[0]
}
