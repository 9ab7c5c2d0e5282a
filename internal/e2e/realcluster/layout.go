package realcluster

import (
	"fmt"
	"net/netip"
)

// Addresses are the cluster's own: nothing of it is seen outside, so that they
// may be in use there.
const (
	podNetwork   = "10.244.0.0/16"
	controlName  = "control"
	pauseImage   = "localhost/pause:1"
	containerdAt = "/run/containerd/containerd.sock" // on every node
)

// hubAddress is that of the machine with the control plane, in the network of
// the nodes.
func hubAddress() netip.Prefix { return netip.MustParsePrefix("10.200.0.1/24") }

// The nodes are counted from 1. There are as many as have an address.
const maxNodes = 200

func nodeName(n int) string { return fmt.Sprintf("node%d", n) }

func nodeAddress(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, 0, byte(10 + n)}) }

func podsOf(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(n), 0}), 24)
}
