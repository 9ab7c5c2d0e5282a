package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// HTTPOptions say what an HTTP proxy stands in front of.
type HTTPOptions struct {
	// Name tells it from others in the journal.
	Name string
	// Target is the server's URL.
	Target string
	// Journal takes what is seen; proxies may share one. [one of its own]
	Journal *Journal
	// Certificate makes the proxy serve TLS. [plain HTTP]
	Certificate *tls.Certificate
	// Trust is what the server's certificate is checked against. [the system's]
	Trust *x509.CertPool
}

// HTTP passes requests to one server, with the client's own credentials where
// they are in a header, as tokens are. A client certificate does not get through.
type HTTP struct {
	options   HTTPOptions
	server    *http.Server
	listener  net.Listener
	transport *http.Transport
	done      sync.WaitGroup

	closing chan struct{} // closed by Close
	closed  sync.Once     // of closing

	// mu guards watches, each with what cuts it, and flow: what watches wait for
	// while they lag, closed while they do not.
	mu      sync.Mutex
	watches map[*http.Request]context.CancelFunc
	flow    chan struct{}
}

// ListenHTTP starts a proxy on loopback. It owes a Close.
func ListenHTTP(o HTTPOptions) (*HTTP, error) {
	target, err := url.Parse(o.Target)
	if err != nil {
		return nil, err
	}
	if o.Journal == nil {
		o.Journal = &Journal{}
	}
	p := &HTTP{options: o, closing: make(chan struct{}), watches: map[*http.Request]context.CancelFunc{}, flow: make(chan struct{})}
	close(p.flow)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	p.transport = &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: o.Trust, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		// The server's answer goes on as it is.
		DisableCompression: true,
	}
	quiet := log.New(io.Discard, "", 0) // cut connections are what this is for
	reverse := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport:      p.transport,
		FlushInterval:  -1, // a watch's events pass as they come
		ModifyResponse: p.after,
		// The client sees its connection cut, as it would by the server.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     quiet,
	}
	p.server = &http.Server{
		Handler:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(reverse, w, r) }),
		ErrorLog: quiet,
	}
	p.done.Go(func() {
		if o.Certificate == nil {
			_ = p.server.Serve(p.listener) // ends with Close, always
			return
		}
		p.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*o.Certificate}, MinVersion: tls.VersionTLS12}
		_ = p.server.ServeTLS(p.listener, "", "")
	})
	return p, nil
}

// URL is where the proxy serves.
func (p *HTTP) URL() string {
	scheme := "http"
	if p.options.Certificate != nil {
		scheme = "https"
	}
	return scheme + "://" + p.listener.Addr().String()
}

// Journal is what it has seen.
func (p *HTTP) Journal() *Journal { return p.options.Journal }

// CutWatches ends every watch that runs, in the middle of its stream.
func (p *HTTP) CutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cut := range p.watches {
		cut()
	}
}

// LagWatches keeps back what watches tell from now on, also those that begin later,
// until the returned function is called. Nothing is lost or put out of order. It
// must not be called again before.
func (p *HTTP) LagWatches() (flow func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lag := make(chan struct{})
	p.flow = lag
	return sync.OnceFunc(func() { close(lag) })
}

// pass waits until watches may tell what they have. It is an error where ctx, the
// watch's own, has ended.
func (p *HTTP) pass(ctx context.Context) error {
	p.mu.Lock()
	flow := p.flow
	p.mu.Unlock()
	select {
	case <-flow:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Close ends the proxy and every connection.
func (p *HTTP) Close() error {
	p.closed.Do(func() { close(p.closing) })
	err := p.server.Close()
	p.transport.CloseIdleConnections()
	p.done.Wait()
	return err
}

type exchangeKey struct{}

// maxBody is more than any request of a test has.
const maxBody = 64 << 20

func (p *HTTP) serve(reverse http.Handler, w http.ResponseWriter, r *http.Request) {
	e := p.options.Journal.begin(p.options.Name, r)
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), exchangeKey{}, e))
	defer cancel()
	r = r.WithContext(ctx)
	if isWatch(r) {
		p.mu.Lock()
		p.watches[r] = cancel
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.watches, r)
		}()
	}
	// The server notices that a client has gone only when it has read all that
	// the client sent.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // how net/http wants to be told
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch v := p.options.Journal.waitAt(Before, e, ctx.Done()); {
	case v.drop:
		panic(http.ErrAbortHandler)
	case v.keep != nil:
		r = r.WithContext(context.WithoutCancel(ctx))
		p.done.Go(func() { p.land(reverse, r, v.keep) })
		panic(http.ErrAbortHandler)
	case v.answer != nil:
		for name, values := range v.answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(v.answer.Status)
		_, _ = io.WriteString(w, v.answer.Body) // the client may have gone
		p.options.Journal.note(func() { e.Status = v.answer.Status })
		return
	}
	reverse.ServeHTTP(w, r)
}

// land sends a request whose client has gone, when the test says so.
func (p *HTTP) land(reverse http.Handler, r *http.Request, l *landing) {
	defer close(l.end)
	select {
	case <-l.begin:
	case <-p.closing:
		return
	}
	defer func() { _ = recover() }() // how a ReverseProxy tells that there is nobody to answer
	reverse.ServeHTTP(nobody{}, r)
}

// nobody takes an answer that no client waits for.
type nobody struct{}

func (nobody) Header() http.Header         { return http.Header{} }
func (nobody) Write(b []byte) (int, error) { return len(b), nil }
func (nobody) WriteHeader(int)             {}

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

var errDropped = errors.New("dropped by the test")

// after runs when the server has answered: what the request does is done.
func (p *HTTP) after(res *http.Response) error {
	ctx := res.Request.Context()
	e, ok := ctx.Value(exchangeKey{}).(*Exchange)
	if !ok {
		return nil
	}
	p.options.Journal.note(func() { e.Status = res.StatusCode })
	if isWatch(res.Request) {
		res.Body = &stream{
			ReadCloser: res.Body,
			told:       func(status int) { p.options.Journal.note(func() { e.Told = status }) },
			pass:       func() error { return p.pass(ctx) },
		}
	}
	v := p.options.Journal.waitAt(After, e, ctx.Done())
	if v.drop {
		return errDropped
	}
	if v.answer != nil {
		res.Body.Close()
		res.StatusCode, res.Status = v.answer.Status, http.StatusText(v.answer.Status)
		res.Header = v.answer.Header.Clone()
		if res.Header == nil {
			res.Header = http.Header{}
		}
		res.Body, res.ContentLength = io.NopCloser(strings.NewReader(v.answer.Body)), int64(len(v.answer.Body))
	}
	return nil
}
