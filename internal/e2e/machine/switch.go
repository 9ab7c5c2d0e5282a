package machine

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// bridge is the name of the interface that a switch is.
const bridge = "switch"

// Switch is a network between machines.
type Switch struct {
	hub     *Machine
	network netip.Prefix
	plugged []plug // in the order in which they came
}

// A plug is a machine on the switch, and the addresses behind it.
type plug struct {
	machine *Machine
	address netip.Addr
	behind  netip.Prefix
}

// NewSwitch makes a network in which the hub has an address of its own, and
// which ends with it.
func NewSwitch(ctx context.Context, hub *Machine, address netip.Prefix) (*Switch, error) {
	err := hub.configure(ctx,
		"link set lo up",
		"link add "+bridge+" type bridge",
		fmt.Sprintf("address add %s dev %s", address, bridge),
		"link set "+bridge+" up",
	)
	return &Switch{hub: hub, network: address}, err
}

// Address is the hub's.
func (s *Switch) Address() netip.Addr { return s.network.Addr() }

// Plug connects a machine under an address of the network, and tells the others
// that what is behind it is reached by that. It may not be called concurrently.
func (s *Switch) Plug(ctx context.Context, m *Machine, address netip.Addr, behind netip.Prefix) error {
	if err := s.hub.configure(ctx,
		// The kernel takes the id as it is outside, where `ip` runs.
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", m.name, m.first.Pid()),
		fmt.Sprintf("link set %s master %s up", m.name, bridge),
		fmt.Sprintf("route add %s via %s", behind, address),
	); err != nil {
		return err
	}
	lines := []string{
		"link set lo up",
		fmt.Sprintf("address add %s dev eth0", netip.PrefixFrom(address, s.network.Bits())),
		"link set eth0 up",
		// Nothing is there, but an address that means a Service has to have a
		// way to go before it is replaced by a pod's.
		"route add default via " + s.Address().String(),
	}
	for _, other := range s.plugged {
		lines = append(lines, fmt.Sprintf("route add %s via %s", other.behind, other.address))
		if err := other.machine.configure(ctx, fmt.Sprintf("route add %s via %s", behind, address)); err != nil {
			return err
		}
	}
	s.plugged = append(s.plugged, plug{machine: m, address: address, behind: behind})
	return m.configure(ctx, lines...)
}

// configure runs `ip` on lines in the machine's network.
func (m *Machine) configure(ctx context.Context, lines ...string) error {
	_, err := m.run(ctx, m.namespaces.enterNetwork, strings.Join(lines, "\n")+"\n", "ip", "-batch", "-")
	return err
}
