// Package metrics shows what a Tether program does to Prometheus.
//
// A Collector is the Hooks of one Run, and an http.Handler that answers with its
// metrics and those of the process. It registers nothing anywhere: several may
// stand in one process.
//
//	m := metrics.New()
//	http.Handle("/metrics", m)
//	err := tether.Run(ctx, cfg, tether.RunOptions{Hooks: m}, c)
package metrics

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tetherkube/tether"
)

// Collector hears of passes, calls and requests. Make one with [New]. All methods
// may be called concurrently.
type Collector struct {
	tether.NoHooks
	handler  http.Handler
	registry *prometheus.Registry

	passes   *prometheus.HistogramVec
	waits    *prometheus.HistogramVec
	panics   *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	requests *prometheus.HistogramVec

	mu  sync.Mutex // guards now
	now func() tether.Snapshot
}

var seconds = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}

// New makes a Collector with a registry of its own.
func New() *Collector {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "tether", Name: name, Help: help, Buckets: seconds}, labels)
	}
	c := &Collector{
		registry: prometheus.NewRegistry(),
		passes:   histogram("pass_duration_seconds", "How long passes took, by outcome.", "controller", "outcome"),
		waits:    histogram("queue_wait_seconds", "How long a key was ready before a worker took it.", "controller", "lane"),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "tether", Name: "panics_total", Help: "Passes that ended in a panic.",
		}, []string{"controller"}),
		calls:    histogram("call_duration_seconds", "How long calls to the outside took, by outcome.", "controller", "verb", "outcome"),
		requests: histogram("api_request_duration_seconds", "How long requests to the API server took; of a watch, until its headers.", "method", "resource", "code"),
	}
	c.registry.MustRegister(c.passes, c.waits, c.panics, c.calls, c.requests, states{c},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c.handler = promhttp.HandlerFor(c.registry, promhttp.HandlerOpts{Registry: c.registry})
	return c
}

// ServeHTTP answers with the metrics.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// Gatherer is where the metrics are, for a registry or a test of the caller's.
func (c *Collector) Gatherer() prometheus.Gatherer { return c.registry }

// Running is called by Run.
func (c *Collector) Running(now func() tether.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Pass is called by Run.
func (c *Collector) Pass(p tether.PassInfo) {
	c.passes.WithLabelValues(p.Controller, p.Outcome).Observe(p.Duration.Seconds())
	c.waits.WithLabelValues(p.Controller, p.Lane).Observe(p.Waited.Seconds())
	if p.Panic {
		c.panics.WithLabelValues(p.Controller).Inc()
	}
}

// Call is called by Run.
func (c *Collector) Call(i tether.CallInfo) {
	c.calls.WithLabelValues(i.Controller, i.Verb, i.Outcome).Observe(i.Duration.Seconds())
}

// Request is called by Run.
func (c *Collector) Request(i tether.RequestInfo) {
	method := i.Method
	if i.Watch {
		method = "WATCH"
	}
	c.requests.WithLabelValues(method, i.Resource, strconv.Itoa(i.Code)).Observe(i.Duration.Seconds())
}
