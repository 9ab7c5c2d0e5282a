// Package memory connects clients and servers within the process.
package memory

import (
	"context"
	"net"
	"sync"
)

// Listener is a listener whose connections are pipes within the process. A
// goroutine that waits on one is durably blocked in the sense of testing/synctest,
// which is not so for a socket.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener makes a listener, which has to be closed.
func NewListener() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Connections that stand are not touched.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is a name only.
func (l *Listener) Addr() net.Addr { return addr{} }

// Dial has the signature of http.Transport.DialContext; every address leads here.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	var err error
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	client.Close()
	server.Close()
	return nil, &net.OpError{Op: "dial", Net: "memory", Addr: addr{}, Err: err}
}

type addr struct{}

func (addr) Network() string { return "memory" }
func (addr) String() string  { return "memory" }
