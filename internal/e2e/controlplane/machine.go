package controlplane

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/internal/e2e/process"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// The files that the API server reads where there is a Machine.
const (
	kubeletClientCertFile = "kubelet-client.crt"
	kubeletClientKeyFile  = "kubelet-client.key"
)

// startProcess starts a program where the control plane runs.
func (c *ControlPlane) startProcess(o process.Options) (*process.Process, error) {
	if c.options.Machine != nil {
		return c.options.Machine.Start(o)
	}
	return process.Start(o)
}

// openEntrance lets clients on loopback reach the API server on the Machine, at
// the port that it has there.
func (c *ControlPlane) openEntrance() (err error) {
	c.entrance, err = proxy.ListenTCPTo(func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return c.options.Machine.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.securePort)))
	})
	if err != nil {
		return err
	}
	address, err := netip.ParseAddrPort(c.entrance.Addr())
	c.securePort = int(address.Port())
	return err
}

// reachArgs say who reaches the API server, and whom it reaches.
func (c *ControlPlane) reachArgs() ([]string, error) {
	if c.options.Machine == nil {
		return []string{
			"--bind-address=127.0.0.1",
			// Nobody reaches this server through the Service `kubernetes`, whose
			// endpoints may not be on loopback.
			"--endpoint-reconciler-type=none",
			"--authorization-mode=RBAC",
		}, nil
	}
	cert, key, err := c.authority.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(c.dir, name) }
	if err := errors.Join(
		os.WriteFile(file(kubeletClientCertFile), cert, 0o600),
		os.WriteFile(file(kubeletClientKeyFile), key, 0o600),
	); err != nil {
		return nil, err
	}
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + c.options.Address.String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate=" + file(kubeletClientCertFile), "--kubelet-client-key=" + file(kubeletClientKeyFile),
		"--kubelet-certificate-authority=" + file(caFile),
		"--kubelet-preferred-address-types=InternalIP",
		// No kube-proxy runs where the API server does: it goes to a Service's
		// pods by itself.
		"--enable-aggregator-routing=true",
	}, nil
}

// MachineURL is where programs on other machines reach the API server.
func (c *ControlPlane) MachineURL() string {
	return (&url.URL{Scheme: "https", Host: net.JoinHostPort(c.options.Address.String(), strconv.Itoa(c.securePort))}).String()
}

// Client is a new configuration for a user of some groups, who needs to exist
// nowhere else.
func (c *ControlPlane) Client(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	cfg := c.RESTConfig()
	cfg.CertData, cfg.KeyData = cert, key
	return cfg, nil
}

// Files are those of the control plane that its other programs read.
type Files struct {
	CA                string // who signs for servers and clients
	ServiceAccountKey string // what signs tokens
}

// Files tells where they are.
func (c *ControlPlane) Files() Files {
	return Files{CA: filepath.Join(c.dir, caFile), ServiceAccountKey: filepath.Join(c.dir, accountKeyFile)}
}

// WriteServingCertificate writes a certificate, for a server at an address that
// every client of this control plane trusts, and its key. They go with the
// control plane.
func (c *ControlPlane) WriteServingCertificate(name string, address netip.Addr) (certFile, keyFile string, err error) {
	cert, key, err := c.authority.serving(address)
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(c.dir, name+".crt"), filepath.Join(c.dir, name+".key")
	return certFile, keyFile, errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600))
}
