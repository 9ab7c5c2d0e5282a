package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/internal/e2e/binaries"
	"github.com/tetherkube/tether/internal/e2e/machine"
	"github.com/tetherkube/tether/internal/e2e/process"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// Options say how to run it. The zero value works.
type Options struct {
	// Progress is told what takes long, in lines. [standard error]
	Progress io.Writer
	// Audit keeps a record of every request, for the Audit method.
	Audit bool
	// APIServerArgs are added to kube-apiserver's own, after them, so that they
	// win where a flag is given twice.
	APIServerArgs []string
	// Dir is a folder to make, for everything that is written. Stop removes it.
	// [a temporary one]
	Dir string
	// Machine is where it runs, for nodes that reach it at Address. Clients here
	// go on to reach it on loopback. [here, on loopback alone]
	Machine *machine.Machine
	Address netip.Addr
}

// ControlPlane is one that runs. Its methods may be called concurrently, but
// for Stop, StopAPIServer and StartAPIServer, which want to be alone.
type ControlPlane struct {
	options    Options
	programs   binaries.Set
	dir        string
	authority  *authority
	etcdPort   int
	securePort int
	audit      *Audit
	entrance   *proxy.TCP // on loopback, to the Machine; nil without one
	closing    sync.Once  // of the entrance

	// mu guards what follows.
	mu        sync.Mutex
	etcd      *process.Process
	apiServer *process.Process
}

// Start starts a control plane and returns when it is ready. It builds the
// programs first where that has not been done yet. Where ctx ends meanwhile,
// everything is taken down again; afterwards ctx has no meaning, and the caller
// owes a Stop.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	programs, err := binaries.Build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	// Nobody can hold a port for a process that is yet to start: where another
	// program was quicker, others are tried.
	const attempts = 4
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, o, programs)
		if err == nil || attempt == attempts || !errors.Is(err, errPortTaken) {
			return c, err
		}
	}
}

func start(ctx context.Context, o Options, programs binaries.Set) (_ *ControlPlane, err error) {
	dir := o.Dir // nobody but this user may enter either
	if dir == "" {
		dir, err = os.MkdirTemp("", "control-plane-*")
	} else {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{options: o, programs: programs, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.authority, err = newAuthority(dir, o.Address); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	c.etcdPort, c.securePort = ports[0], ports[1]
	if o.Machine != nil {
		if err := c.openEntrance(); err != nil {
			return nil, err
		}
	}
	if o.Audit {
		c.audit = newAudit()
	}
	if err := c.startEtcd(ports[2]); err != nil {
		return nil, err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) startEtcd(peerPort int) error {
	peer, client := loopbackURL("http", peerPort), loopbackURL("http", c.etcdPort)
	etcd, err := c.startProcess(process.Options{
		Path: c.programs.Etcd(),
		Args: []string{
			"--data-dir=" + filepath.Join(c.dir, "etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			// What is written need not outlive the machine.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		Dir:       c.dir,
		KeepLines: 2000,
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.etcd = etcd
	return nil
}

// Stop stops everything and removes what was written, kubeconfig files
// included. It may be called more than once.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	etcd := c.etcd
	c.mu.Unlock()
	err := c.StopAPIServer()
	if etcd != nil {
		err = errors.Join(err, etcd.Stop(5*time.Second))
	}
	if c.entrance != nil {
		c.closing.Do(func() { err = errors.Join(err, c.entrance.Close()) })
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// Ended waits until etcd or the API server, as it runs now, ends by itself, and
// tells which one, with its last lines. It returns nil when ctx ends. One that
// was stopped has not ended by itself.
func (c *ControlPlane) Ended(ctx context.Context) error {
	c.mu.Lock()
	etcd, apiServer := c.etcd, c.apiServer
	c.mu.Unlock()
	var apiServerEnded <-chan struct{} // of none, never
	if apiServer != nil {
		apiServerEnded = apiServer.Ended()
	}
	select {
	case <-etcd.Ended():
		return fmt.Errorf("etcd has ended; its last lines:\n%s", etcd.Log().Tail(20))
	case <-apiServerEnded:
		return fmt.Errorf("kube-apiserver has ended; its last lines:\n%s", apiServer.Log().Tail(20))
	case <-ctx.Done():
		return nil
	}
}

// URL is where the API server listens.
func (c *ControlPlane) URL() string { return loopbackURL("https", c.securePort) }

// BinDir is the folder with a kubectl of the server's version.
func (c *ControlPlane) BinDir() string { return c.programs.Dir }

// RESTConfig is a new configuration that may do anything, without a limit on
// the client's side.
func (c *ControlPlane) RESTConfig() *rest.Config {
	return &rest.Config{
		Host: c.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.caPEM,
			CertData: c.authority.adminCert,
			KeyData:  c.authority.adminKey,
		},
		QPS: -1,
	}
}

func loopbackURL(scheme string, port int) string {
	return scheme + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// freePorts finds ports that nobody uses now.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer l.Close() // only at the end, so that no port is found twice
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
