package faketest

import (
	"context"
	"net"
	"sync"
)

// network is a process's connections. The zero value is ready.
type network struct {
	mu    sync.Mutex // guards what follows
	gone  bool       // cut: no connection any more
	conns map[*conn]struct{}
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer dials by next, and knows what comes of it.
func (n *network) dialer(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.gone {
			c.Close()
			return nil, &net.OpError{Op: "dial", Net: "memory", Err: net.ErrClosed}
		}
		known := &conn{c, n}
		if n.conns == nil {
			n.conns = map[*conn]struct{}{}
		}
		n.conns[known] = struct{}{}
		return known, nil
	}
}

// cut closes every connection, and lets none be made. It may be called again.
func (n *network) cut() {
	n.mu.Lock()
	conns := n.conns
	n.gone, n.conns = true, nil
	n.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
}

// conn is a connection that its network knows.
type conn struct {
	net.Conn
	network *network
}

// Close closes the connection; the network need not.
func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
