package machine

import (
	"context"
	"net"
)

// Dial connects from the machine, by its routes, to an address that is numbers:
// nobody there knows names.
func (m *Machine) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = m.on(m.namespaces.enterNetwork, func() (err error) {
		var d net.Dialer // a socket stays in the network that it was made in
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Listen listens on the machine, for whoever can reach it.
func (m *Machine) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	err = m.on(m.namespaces.enterNetwork, func() (err error) {
		var c net.ListenConfig
		l, err = c.Listen(ctx, network, address)
		return err
	})
	return l, err
}
