package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/metrics"
)

// control runs the controller until ctx ends.
func control(ctx context.Context, s settings, stderr io.Writer) error {
	home, _ := os.UserHomeDir() // "" where there is none
	k, err := findCluster(s, os.Getenv, home)
	if err != nil {
		return err
	}
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(s.verbosity), textlogger.Output(stderr)))
	klog.SetLogger(log) // what client-go says goes the same way
	token := booking.TokenFile(s.bookingTokenFile)
	if _, err := token(ctx); err != nil {
		return fmt.Errorf("--booking-token-file: %w", err)
	}
	api, err := booking.NewClient(booking.Options{BaseURL: s.bookingURL, Token: token, Timeout: s.callTimeout})
	if err != nil {
		return fmt.Errorf("booking API: %w", err)
	}
	defer api.Close()

	health, collector := &tether.Health{}, metrics.New()
	closeServers, err := serve(log, map[string]served{
		"--health-addr":  {s.healthAddr, health},
		"--metrics-addr": {s.metricsAddr, collector},
	})
	if err != nil {
		return err
	}
	defer closeServers()

	in := tether.NewInformer(Tickets, tether.InformerOptions{Namespaces: s.namespaces})
	c := tether.Manage(in, &flights{api}, tether.ManageOptions[*v1.Ticket]{
		Options:     tether.Options{Workers: s.workers, Poll: s.poll},
		ID:          func(t *v1.Ticket) *string { return &t.Status.BookingID },
		Guarantee:   tether.UniqueReference,
		CallTimeout: s.callTimeout,
		Settle:      s.settle,
		Policy:      policy,
		ClusterID:   s.clusterID, FormerClusterIDs: s.formerClusterIDs,
		AllowAdopt: allowAdopt(s),
	})
	o := tether.RunOptions{Health: health, Hooks: collector, Logger: &log, StopTimeout: s.stopTimeout}
	o.Lease = lease(s, k)
	o.SingleProcess = o.Lease == nil
	log.Info("starting", "apiServer", k.config.Host, "bookingAPI", s.bookingURL, "leaderElection", o.Lease != nil)
	return tether.Run(ctx, k.config, o, c)
}

// allowAdopt lets a Ticket adopt what goes where it goes, if it was asked for.
func allowAdopt(s settings) func(*v1.Ticket, tether.Observation) error {
	if !s.allowAdopt {
		return nil
	}
	return func(*v1.Ticket, tether.Observation) error { return nil }
}

// lease is the one to hold, or nil.
func lease(s settings, k cluster) *tether.Lease {
	if s.leaderElect == "false" || s.leaderElect == "" && !k.inPod {
		return nil
	}
	ns := s.leaseNamespace
	if ns == "" {
		ns = podNamespace()
	}
	return &tether.Lease{Namespace: ns, Name: "ticket-controller", Duration: s.leaseDuration}
}

// podNamespace is where this pod runs, as its ServiceAccount files say.
func podNamespace() string {
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if ns := strings.TrimSpace(string(raw)); err == nil && ns != "" {
		return ns
	}
	return "default"
}

// served is a handler and where it is served; "" for nowhere.
type served struct {
	addr    string
	handler http.Handler
}

// serve starts the servers, and returns what stops them.
func serve(log logr.Logger, all map[string]served) (func(), error) {
	var servers []*http.Server
	closeAll := func() {
		for _, srv := range servers {
			_ = srv.Close() // it was of use until here
		}
	}
	for flag, s := range all {
		if s.addr == "" {
			continue
		}
		l, err := net.Listen("tcp", s.addr)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("%s %s: %w; choose an address as 127.0.0.1:8080", flag, s.addr, err)
		}
		srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 5 * time.Second}
		servers = append(servers, srv)
		log.Info("serving", "flag", flag, "address", l.Addr().String())
		go func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				log.Error(err, "server ended", "flag", flag)
			}
		}()
	}
	return closeAll, nil
}
