package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/internal/e2e/process"
)

// errPortTaken says that another program was quicker to take a port.
var errPortTaken = errors.New("a port is in use")

// StartAPIServer starts the API server on its port of before, and returns when
// it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	args, err := c.apiServerArgs()
	if err != nil {
		return err
	}
	var stdout io.Writer
	if c.audit != nil {
		c.audit.restarted()
		stdout = c.audit
	}
	apiServer, err := c.startProcess(process.Options{
		Path: c.programs.APIServer(), Args: append(args, c.options.APIServerArgs...),
		Dir: c.dir, Stdout: stdout, KeepLines: 2000,
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.apiServer = apiServer
	etcd := c.etcd
	c.mu.Unlock()
	return c.ready(ctx, etcd, apiServer)
}

// StopAPIServer stops the API server, and leaves etcd and with it everything
// that is stored. It may be called where none runs.
func (c *ControlPlane) StopAPIServer() error {
	c.mu.Lock()
	apiServer := c.apiServer
	c.apiServer = nil
	c.mu.Unlock()
	if apiServer == nil {
		return nil
	}
	// A server that drains its requests waits for as long as a client holds
	// one. Etcd has what was answered, so nothing is lost by not waiting.
	return apiServer.Kill()
}

// RestartAPIServer stops the API server and starts it again. Its cache of
// events is lost by that: a watch from an older resourceVersion is answered 410.
func (c *ControlPlane) RestartAPIServer(ctx context.Context) error {
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

func (c *ControlPlane) apiServerArgs() ([]string, error) {
	file := func(name string) string { return filepath.Join(c.dir, name) }
	args := []string{
		"--etcd-servers=" + loopbackURL("http", c.etcdPort),
		"--secure-port=" + strconv.Itoa(c.securePort),
		"--tls-cert-file=" + file(servingCertFile), "--tls-private-key-file=" + file(servingKeyFile),
		"--client-ca-file=" + file(caFile),
		"--cert-dir=" + file("certs"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + file(accountKeyFile),
		"--service-account-key-file=" + file(accountPublicFile),
		"--service-cluster-ip-range=10.96.0.0/24",
		"--allow-privileged=true",
		"--profiling=false",
	}
	reach, err := c.reachArgs()
	if err != nil {
		return nil, err
	}
	args = append(args, reach...)
	if c.audit != nil {
		if err := os.WriteFile(file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--audit-policy-file="+file("audit-policy.yaml"), "--audit-log-path=-")
	}
	return args, nil
}

// ready waits until the API server says that it is, which it does not while a
// start-up hook (the built-in RBAC roles, above all) has not finished.
func (c *ControlPlane) ready(ctx context.Context, etcd, apiServer *process.Process) error {
	client, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("it was not asked yet")
	for {
		select {
		case <-tick.C:
		case <-etcd.Ended():
			return ended("etcd", etcd)
		case <-apiServer.Ended():
			return ended("kube-apiserver", apiServer)
		case <-ctx.Done():
			return fmt.Errorf("waiting for kube-apiserver to be ready: %w; last answer: %w; its last lines:\n%s",
				context.Cause(ctx), last, apiServer.Log().Tail(20))
		}
		if last = askURL(ctx, client, c.URL()+"/readyz"); last == nil {
			return nil
		}
	}
}

func askURL(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, body)
	}
	return nil
}

func ended(name string, p *process.Process) error {
	tail := p.Log().Tail(20)
	if strings.Contains(tail, "address already in use") {
		return fmt.Errorf("%s: %w:\n%s", name, errPortTaken, tail)
	}
	return fmt.Errorf("%s ended before it was ready; its last lines:\n%s", name, tail)
}
