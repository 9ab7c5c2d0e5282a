package main

import (
	"context"
	_ "embed" // for the definition
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/examples/ticket-controller/embedded"
	"github.com/tetherkube/tether/metrics"
)

// definition is the Ticket's.
//
//go:embed deploy/crd.yaml
var definition string

// control runs the controller until ctx ends. atExit is given what is to be done
// where the program does not wait for that.
func control(ctx context.Context, s settings, stdout, stderr io.Writer, getenv func(string) string, atExit func(func())) (err error) {
	home, _ := os.UserHomeDir() // "" where there is none
	k, inProcess, err := choose(s, getenv, home)
	if err != nil {
		return err
	}
	log := logger(s, stderr)
	klog.SetLogger(log) // what client-go says goes the same way
	token := booking.TokenFile(s.bookingTokenFile)
	if s.bookingURL != "" {
		if _, err := token(ctx); err != nil {
			return fmt.Errorf("--booking-token-file: %w", err)
		}
	}
	if inProcess {
		server, err := embedded.Start(embedded.Options{
			Definition: definition, BookingURL: s.bookingURL, Out: stdout, JSON: s.logFormat == "json", Colour: colour(stdout, getenv),
			DataDir: s.dataDir, AtExit: atExit,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		k = cluster{config: server.Config()}
		if s.bookingURL == "" {
			s.bookingURL, token = server.BookingURL(), booking.StaticToken(server.Token())
		}
	}
	return manage(ctx, s, k, token, log)
}

// logger writes what the controller has to say.
func logger(s settings, to io.Writer) logr.Logger {
	if s.logFormat == "json" {
		return logr.FromSlogHandler(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.Level(-s.verbosity)}))
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(s.verbosity), textlogger.Output(to)))
}

// colour says whether w is a terminal whose user wants colours.
func colour(w io.Writer, getenv func(string) string) bool {
	f, ok := w.(*os.File)
	if !ok || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// manage runs the controller on a cluster until ctx ends.
func manage(ctx context.Context, s settings, k cluster, token booking.TokenSource, log logr.Logger) error {
	api, err := booking.NewClient(booking.Options{BaseURL: s.bookingURL, Token: token, Timeout: s.callTimeout})
	if err != nil {
		return fmt.Errorf("booking API: %w", err)
	}
	defer api.Close()

	health, collector := &tether.Health{}, metrics.New()
	rights := &rights{ready: health, log: log}
	closeServers, err := serve(log, map[string]served{
		"--health-addr":  {s.healthAddr, rights},
		"--metrics-addr": {s.metricsAddr, collector},
	})
	if err != nil {
		return err
	}
	defer closeServers()

	o := tether.RunOptions{Health: health, Hooks: collector, Logger: &log, StopTimeout: s.stopTimeout}
	o.Lease = lease(s, k)
	o.SingleProcess = o.Lease == nil
	if s.healthAddr != "" {
		var asking sync.WaitGroup
		defer asking.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		asking.Go(func() { rights.watch(ctx, k.config, rightsWanted(s, o.Lease)) })
	}
	log.Info("starting", "apiServer", k.config.Host, "bookingAPI", s.bookingURL, "leaderElection", o.Lease != nil)
	return namingClusterID(tether.Run(ctx, k.config, o, managed(s, api)))
}

// managed is the controller.
func managed(s settings, api *booking.Client) *tether.Controller {
	in := tether.NewInformer(Tickets, tether.InformerOptions{Namespaces: s.namespaces})
	return tether.Manage(in, &flights{api}, tether.ManageOptions[*v1.Ticket]{
		Options:     tether.Options{Workers: s.workers, Poll: s.poll, Budget: tether.NewBudget(tether.BudgetOptions{Name: "booking", Rate: s.bookingRate})},
		ID:          func(t *v1.Ticket) *string { return &t.Status.BookingID },
		Guarantee:   tether.UniqueReference,
		CallTimeout: s.callTimeout,
		Settle:      s.settle,
		Policy:      policy,
		ClusterID:   s.clusterID, FormerClusterIDs: s.formerClusterIDs,
		AllowAdopt: allowAdopt(s),
	})
}

// allowAdopt lets a Ticket adopt what goes where it goes, if it was asked for.
func allowAdopt(s settings) func(*v1.Ticket, tether.Observation) error {
	if !s.allowAdopt {
		return nil
	}
	return func(_ *v1.Ticket, o tether.Observation) error {
		switch {
		case slices.Contains(o.Differs, pathFrom) || slices.Contains(o.Differs, pathTo):
			return errors.New("that booking is of another route; name one from spec.from to spec.to")
		case o.Replace: // adopting it would cancel it, to book another
			return fmt.Errorf("that booking differs in %s, which cannot be changed in place; name one for the same, or make the spec as it is", strings.Join(o.Differs, ", "))
		}
		return nil
	}
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

// serve starts the servers, and returns what stops them and waits for their end.
func serve(log logr.Logger, all map[string]served) (func(), error) {
	var servers []*http.Server
	var serving sync.WaitGroup
	closeAll := func() {
		for _, srv := range servers {
			_ = srv.Close() // it was of use until here
		}
		serving.Wait()
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
		srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelInfo)}
		servers = append(servers, srv)
		log.Info("serving", "flag", flag, "address", l.Addr().String())
		serving.Go(func() {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				log.Error(err, "server ended", "flag", flag)
			}
		})
	}
	return closeAll, nil
}
