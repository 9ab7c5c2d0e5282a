package kube

import (
	"context"
	"net"
	"sync"
)

// dialer knows a transport's connections, so that they can be closed. A transport
// itself closes those that are idle, and one whose last stream is just being reset
// is not: it would stay, with its goroutines, until the server closes it.
type dialer struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex // guards the rest
	ends   map[uint64]func()
	next   uint64
	closed bool
}

// DialContext dials. After close it refuses.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialling, ok := d.enter(cancel)
	if !ok {
		return nil, net.ErrClosed
	}
	c, err := d.dial(ctx, network, address)
	d.leave(dialling)
	if err != nil {
		return nil, err
	}
	id, ok := d.enter(func() { c.Close() })
	if !ok {
		c.Close()
		return nil, net.ErrClosed
	}
	return &dialled{Conn: c, dialer: d, id: id}, nil
}

// close ends every connection, and every attempt to make one.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, end := range d.ends {
		end()
	}
	d.ends = nil
}

func (d *dialer) enter(end func()) (id uint64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, false
	}
	if d.ends == nil {
		d.ends = map[uint64]func(){}
	}
	d.next++
	d.ends[d.next] = end
	return d.next, true
}

func (d *dialer) leave(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ends, id)
}

// dialled is a connection that its dialer knows.
type dialled struct {
	net.Conn
	dialer *dialer
	id     uint64
}

// Close closes the connection; the dialer need not.
func (c *dialled) Close() error {
	c.dialer.leave(c.id)
	return c.Conn.Close()
}
