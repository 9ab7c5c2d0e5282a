package fake

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

// serving carries a handler over sockets and over memory, and owns every
// goroutine and connection that this takes, and what the handler does until its
// requests have ended.
type serving struct {
	tls     *tls.Config    // nil: plain HTTP; does not change once it serves
	closing chan struct{}  // closed by close: ends every watch and every wait
	running sync.WaitGroup // requests, and what goes on after they were answered
	loops   sync.WaitGroup // Serve calls
	conns   sync.WaitGroup // connections that a server has accepted

	mu         sync.Mutex // guards what follows
	closed     bool
	servers    []*http.Server
	transports []*http.Transport
	memory     *memory.Listener // nil before the first transport
}

func newServing() serving { return serving{closing: make(chan struct{})} }

var errServerClosed = errors.New("fake: the server is closed: make a new one")

// listen serves h on a TCP address, and returns the address that it got.
func (s *serving) listen(address string, h http.Handler) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errServerClosed
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	s.serveLocked(l, h)
	return l.Addr().String(), nil
}

// transport is a new transport that reaches h over memory, whatever the host is.
// Its idle connections are closed by close.
func (s *serving) transport(h http.Handler) *http.Transport {
	dial := s.dialer(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16}
	s.transports = append(s.transports, t)
	return t
}

// dialer is for who makes a transport of its own that reaches h over memory.
func (s *serving) dialer(h http.Handler) func(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		s.memory = memory.NewListener()
		if s.closed {
			_ = s.memory.Close() // it never fails
		} else {
			s.serveLocked(s.memory, h)
		}
	}
	return s.memory.Dial
}

func (s *serving) serveLocked(l net.Listener, h http.Handler) {
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
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
	s.loops.Go(func() { _ = server.Serve(l) }) // ends by close alone
}

// enter counts a request until running.Done, unless close was called.
func (s *serving) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

// over says that close was called: nothing is to be carried out any more.
func (s *serving) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// wait waits for d on the server's side; false where ctx ended first, or close was
// called.
func (s *serving) wait(ctx context.Context, d time.Duration) bool {
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

// close cuts every connection, and returns when all that it owned has ended. It may
// be called again.
func (s *serving) close() {
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
