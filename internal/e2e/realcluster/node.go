package realcluster

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/tetherkube/tether/internal/e2e/machine"
	"github.com/tetherkube/tether/internal/e2e/process"
)

// Node is a machine that runs pods. Its methods may be called concurrently.
type Node struct {
	cluster  *Cluster
	name     string
	address  netip.Addr
	pods     netip.Prefix
	dir      string // for its files
	group    string // under which its pods are counted, as an absolute name
	machine  *machine.Machine
	programs []*process.Process
}

// newNode makes a node's machine and connects it.
func (c *Cluster) newNode(ctx context.Context, number int) (_ *Node, err error) {
	n := &Node{
		cluster: c, name: nodeName(number), address: nodeAddress(number), pods: podsOf(number),
		dir: filepath.Join(c.dir, nodeName(number)), group: c.group + "/" + nodeName(number),
	}
	if n.machine, err = c.newMachine(ctx, n.name); err != nil {
		return nil, err
	}
	if err := machine.Cgroup(n.group, c.sweeper); err != nil {
		return nil, err
	}
	return n, c.network.Plug(ctx, n.machine, n.address, n.pods)
}

// Name is the node's, in the cluster and as a host.
func (n *Node) Name() string { return n.name }

// Address is the node's.
func (n *Node) Address() netip.Addr { return n.address }

// Dial connects from the node, as a pod on it would, to an address of numbers: a
// pod's or a Service's.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.machine.Dial(ctx, network, address)
}

// Log is what kubelet, containerd and kube-proxy wrote last, as one text.
func (n *Node) Log(lines int) string {
	var all string
	for _, p := range n.programs {
		all += n.name + " " + p.Name() + ":\n" + p.Log().Tail(lines) + "\n"
	}
	return all
}

func (n *Node) start(program string, args ...string) (*process.Process, error) {
	p, err := n.machine.Start(process.Options{Path: program, Args: args, Env: n.environment(), KeepLines: 2000})
	if err != nil {
		return nil, err
	}
	n.programs = append(n.programs, p)
	return p, nil
}

// file is the path of one of the node's files, which is the same on its machine.
func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }
