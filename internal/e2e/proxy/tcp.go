package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// TCP passes connections on loopback to one address. It does not look into what
// it passes, so TLS stays between the two ends. All methods may be called
// concurrently.
type TCP struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	done     sync.WaitGroup

	// mu guards what follows.
	mu      sync.Mutex
	conns   map[net.Conn]struct{} // both ends of every connection; nil after Close
	refuses bool
	flows   chan struct{} // closed while bytes pass
}

// ListenTCP starts a proxy in front of the target, a host and a port. It owes a
// Close.
func ListenTCP(target string) (*TCP, error) {
	p, err := ListenTCPTo(func() (net.Conn, error) { return net.Dial("tcp", target) })
	if err != nil {
		return nil, fmt.Errorf("a proxy in front of %s: %w", target, err)
	}
	return p, nil
}

// ListenTCPTo is as ListenTCP, in front of whatever dial connects to. Dial may be
// called concurrently.
func ListenTCPTo(dial func() (net.Conn, error)) (*TCP, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &TCP{listener: l, dial: dial, conns: map[net.Conn]struct{}{}, flows: make(chan struct{})}
	close(p.flows)
	p.done.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *TCP) Addr() string { return p.listener.Addr().String() }

// Cut closes every connection. New ones are served.
func (p *TCP) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *TCP) cutLocked() {
	for c := range p.conns {
		c.Close()
	}
}

// Refuse closes every connection, and new ones as soon as they come, until
// Serve.
func (p *TCP) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = true
	p.cutLocked()
}

// Stall lets no byte pass in either direction until Serve. Connections stay
// open, and new ones are accepted: nobody is told anything.
func (p *TCP) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flows:
		p.flows = make(chan struct{})
	default: // it stalls already
	}
}

// Serve ends Refuse and Stall. What was stalled goes on.
func (p *TCP) Serve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serveLocked()
}

func (p *TCP) serveLocked() {
	p.refuses = false
	select {
	case <-p.flows:
	default:
		close(p.flows)
	}
}

// Close ends the proxy and every connection, and waits until nothing of it runs.
func (p *TCP) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.cutLocked()
	p.conns = nil
	p.serveLocked() // frees what waits
	p.mu.Unlock()
	p.done.Wait()
	return err
}

func (p *TCP) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of this one connection: its client has gone already
		}
		if p.keep(c) {
			p.done.Go(func() { p.pass(c) })
		}
	}
}

// keep makes a connection one that Cut closes. It closes it at once, and says
// no, where connections are refused.
func (p *TCP) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses || p.conns == nil {
		c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *TCP) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *TCP) pass(client net.Conn) {
	defer p.forget(client)
	server, err := p.dial()
	if err != nil {
		return // the client sees its connection close, as it would without a proxy
	}
	if !p.keep(server) {
		return
	}
	defer p.forget(server)
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client) })
	both.Go(func() { p.copy(client, server) })
	both.Wait()
}

// copy passes one direction, and closes both when it ends: a half-open
// connection is of no use to HTTP.
func (p *TCP) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		flows := p.flows
		p.mu.Unlock()
		<-flows
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
