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
)

// serving carries a handler over sockets and over memory, and owns every
// goroutine and connection that this takes. The zero value is ready.
type serving struct {
	tls   *tls.Config    // nil: plain HTTP; does not change once it serves
	loops sync.WaitGroup // Serve calls
	conns sync.WaitGroup // connections that a server has accepted

	mu         sync.Mutex // guards what follows
	closed     bool
	servers    []*http.Server
	transports []*http.Transport
	memory     *memoryListener // nil before the first transport
}

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
		s.memory = newMemoryListener()
		if s.closed {
			_ = s.memory.Close() // it never fails
		} else {
			s.serveLocked(s.memory, h)
		}
	}
	return s.memory.dial
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

// close cuts every connection and returns when all that it owned has ended. What
// the handler does by then is the handler's to end. It may be called again.
func (s *serving) close() {
	s.mu.Lock()
	s.closed = true
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
}
