package realcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/internal/e2e/binaries"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/machine"
	"github.com/tetherkube/tether/internal/e2e/process"
)

// Options say what the cluster is like. The zero value works.
type Options struct {
	// Nodes is how many there are: node1, node2 and so on. [1]
	Nodes int
	// Images are files to load on every node; see LoadImage.
	Images []string
	// ShortTolerations has the cluster notice within some 12 s that a node is
	// silent, and replace its pods 2 s later. [50 s, and 5 min]
	ShortTolerations bool
	// Progress is told what takes long, in lines. [standard error]
	Progress io.Writer
	// Audit keeps a record of every request, for the Audit method.
	Audit bool
	// APIServerArgs and ControllerManagerArgs are added to a program's own, after
	// them, so that they win where a flag is given twice.
	APIServerArgs, ControllerManagerArgs []string
}

// Cluster is one that runs. It is its control plane as well, whose methods, but
// for Stop and Ended, are those of a control plane without nodes. They may be
// called concurrently, but for Stop and those that say otherwise there.
type Cluster struct {
	*controlplane.ControlPlane

	options     Options
	controlSet  binaries.Set
	nodeSet     binaries.NodeSet
	dir         string
	group       string // of all control groups, as an absolute name
	sweeper     *machine.Sweeper
	hub         *machine.Machine // of the control plane
	network     *machine.Switch
	controllers []*process.Process
	nodes       []*Node
}

// Start starts a cluster and returns when its nodes are ready to run pods. It
// builds the programs first where that has not been done yet. Where ctx ends
// meanwhile, everything is taken down again; afterwards ctx has no meaning, and
// the caller owes a Stop.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return nil, fmt.Errorf("Options.Nodes is %d: there may be 1 to %d", o.Nodes, maxNodes)
	}
	if err := CheckRequirements(); err != nil {
		return nil, err
	}
	c := &Cluster{options: o}
	if c.controlSet, err = binaries.Build(ctx, o.Progress); err != nil {
		return nil, err
	}
	if c.nodeSet, err = binaries.BuildNodes(ctx, o.Progress); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		return nil, err
	}
	return c, c.ready(ctx)
}

// prepare makes what everything stands on: a folder, machines and their network.
func (c *Cluster) prepare(ctx context.Context) (err error) {
	if c.sweeper, err = machine.StartSweeper(c.nodeSet.Sweep()); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "real-cluster-*"); err != nil { // nobody but this user may enter
		return err
	}
	if err := c.sweeper.Folder(c.dir); err != nil {
		return err
	}
	c.group = "/tether-" + filepath.Base(c.dir)
	if c.hub, err = c.newMachine(ctx, controlName); err != nil {
		return err
	}
	if c.network, err = machine.NewSwitch(ctx, c.hub, hubAddress()); err != nil {
		return err
	}
	for n := 1; n <= c.options.Nodes; n++ {
		node, err := c.newNode(ctx, n)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, node)
	}
	return nil
}

func (c *Cluster) newMachine(ctx context.Context, name string) (*machine.Machine, error) {
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return machine.Start(ctx, machine.Options{Name: name, Pause: c.nodeSet.Pause(), Dir: dir, Sweeper: c.sweeper})
}

// startAll starts the programs. Nodes take images while the control plane begins,
// and their kubelets find it ready.
func (c *Cluster) startAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	errs := make([]error, 1+len(c.nodes))
	try := func(i int, do func() error) {
		wg.Go(func() {
			if errs[i] = do(); errs[i] != nil {
				cancel(errs[i]) // the others need not go on
			}
		})
	}
	try(0, func() error { return c.startControlPlane(ctx) })
	for i, node := range c.nodes {
		try(1+i, func() error { return node.startRuntime(ctx) })
	}
	wg.Wait()
	if errors.Join(errs...) != nil {
		return context.Cause(ctx) // what came after the first is no news
	}
	if err := c.startControllers(); err != nil {
		return err
	}
	for _, node := range c.nodes {
		if err := node.startKubelet(); err != nil {
			return err
		}
		if err := node.startProxy(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startControlPlane(ctx context.Context) (err error) {
	args := c.options.APIServerArgs
	if c.options.ShortTolerations {
		args = append([]string{"--default-not-ready-toleration-seconds=2", "--default-unreachable-toleration-seconds=2"}, args...)
	}
	c.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Progress: c.options.Progress, Audit: c.options.Audit, APIServerArgs: args,
		Dir: filepath.Join(c.dir, "control-plane"), Machine: c.hub, Address: c.network.Address(),
	})
	return err
}

// Nodes are the cluster's, in order.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Client is a new client that may do anything.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(c.RESTConfig())
}

// Listen listens where pods, nodes and the API server can connect to, at a port
// of their choice or, where it is 0, any: what a test runs beside the cluster is
// reached there, by the listener's address.
func (c *Cluster) Listen(ctx context.Context, port int) (net.Listener, error) {
	return c.hub.Listen(ctx, "tcp", netip.AddrPortFrom(c.network.Address(), uint16(port)).String())
}

// Dial connects to the address of a pod, or of whatever else can be reached from
// where the API server is. Services are reached from nodes alone.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.hub.Dial(ctx, network, address)
}

// Ended waits until a program of the cluster ends by itself, and tells which one,
// with its last lines. It returns nil when ctx ends. One that was stopped has not
// ended by itself.
func (c *Cluster) Ended(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error)
	tell := func(err error) {
		if err == nil {
			return
		}
		select {
		case ends <- err:
		case <-ctx.Done():
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { tell(c.ControlPlane.Ended(ctx)) })
	programs := c.controllers
	for _, node := range c.nodes {
		programs = append(programs[:len(programs):len(programs)], node.programs...)
	}
	for _, p := range programs {
		wg.Go(func() {
			select {
			case <-p.Ended():
				tell(fmt.Errorf("%s has ended; its last lines:\n%s", p.Name(), p.Log().Tail(20)))
			case <-ctx.Done():
			}
		})
	}
	var first error
	select {
	case first = <-ends:
	case <-ctx.Done():
	}
	cancel()
	wg.Wait()
	return first
}

// Stop ends everything and removes what was written, kubeconfig files included.
// It returns when nothing is left, and may be called more than once.
func (c *Cluster) Stop() error {
	var errs []error
	for _, node := range c.nodes {
		errs = append(errs, node.machine.Stop())
	}
	if c.hub != nil {
		errs = append(errs, c.hub.Stop())
	}
	for _, p := range append(c.allPrograms(), c.controllers...) {
		select {
		case <-p.Ended(): // its output has been read
		case <-time.After(10 * time.Second):
			errs = append(errs, fmt.Errorf("%s goes on without its machine", p.Name()))
		}
	}
	if c.ControlPlane != nil {
		errs = append(errs, c.ControlPlane.Stop())
	}
	if c.sweeper != nil {
		errs = append(errs, c.sweeper.Sweep())
	}
	return errors.Join(errs...)
}

func (c *Cluster) allPrograms() []*process.Process {
	var all []*process.Process
	for _, node := range c.nodes {
		all = append(all, node.programs...)
	}
	return all
}
