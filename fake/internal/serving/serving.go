// Package serving carries handlers over sockets and over memory, for the servers of
// fake and for what faketest serves beside them.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tetherkube/tether/fake/internal/memory"
)

// Serving carries a handler over sockets and over memory, and owns every goroutine and
// connection that this takes, and what the handler does until its requests have ended.
// It is made by New, and safe for concurrent use.
type Serving struct {
	handler http.Handler
	options Options
	closing chan struct{}  // closed by Close: ends every watch and every wait
	running sync.WaitGroup // requests, and what goes on after they were answered
	loops   sync.WaitGroup // Serve calls
	conns   sync.WaitGroup // connections that a server has accepted

	mu         sync.Mutex // guards what follows
	closed     bool
	servers    []*http.Server
	transports []*http.Transport
	memory     *memory.Listener // nil before the first transport
}

// Options configure a [Serving]. The zero value works.
type Options struct {
	// TLS is how connections are secured [plain HTTP].
	TLS *tls.Config
	// Idle is how long a connection without a request is kept [for ever].
	Idle time.Duration
}

// New makes one for a handler, and starts nothing.
func New(h http.Handler, o Options) *Serving {
	return &Serving{handler: h, options: o, closing: make(chan struct{})}
}

var errServerClosed = errors.New("fake: the server is closed: make a new one")

// Listen serves the handler on a TCP address, and returns the address that it got.
func (s *Serving) Listen(address string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errServerClosed
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	s.serveLocked(l)
	return l.Addr().String(), nil
}

// Transport is a new transport that reaches the handler over memory, whatever the host
// is. Its idle connections are closed by Close.
func (s *Serving) Transport() *http.Transport {
	dial := s.Dialer()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16}
	s.transports = append(s.transports, t)
	return t
}

// Dialer is for who makes a transport of its own that reaches the handler over
// memory.
func (s *Serving) Dialer() func(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		s.memory = memory.NewListener()
		if s.closed {
			_ = s.memory.Close() // it never fails
		} else {
			s.serveLocked(s.memory)
		}
	}
	return s.memory.Dial
}

func (s *Serving) serveLocked(l net.Listener) {
	if s.options.TLS != nil {
		l = tls.NewListener(l, s.options.TLS)
	}
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       s.options.Idle,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.conns.Done()
			}
		},
	}
	s.servers = append(s.servers, server)
	s.loops.Go(func() { _ = server.Serve(l) }) // ends by Close alone
}

// Enter counts a request until Leave, unless Close was called.
func (s *Serving) Enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

// Leave ends what Enter began.
func (s *Serving) Leave() { s.running.Done() }

// Go runs f, which outlives the request that it comes of. It is called between Enter
// and Leave.
func (s *Serving) Go(f func()) { s.running.Go(f) }

// Closing is closed by Close.
func (s *Serving) Closing() <-chan struct{} { return s.closing }

// Over says that Close was called: nothing is to be carried out any more.
func (s *Serving) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Wait waits for d on the server's side; false where ctx ended first, or Close was
// called.
func (s *Serving) Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.closing:
	}
	return false
}

// Close cuts every connection, and returns when all that it owned has ended. It may
// be called again.
func (s *Serving) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	servers, transports := s.servers, s.transports
	s.mu.Unlock()
	for _, server := range servers {
		_ = server.Close() // what it could say of its listener has no use
	}
	s.loops.Wait()
	// A connection that was accepted while Close went through the others was
	// missed by it, and is known by now.
	for _, server := range servers {
		_ = server.Close() // as above
	}
	s.conns.Wait()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	s.running.Wait()
}
