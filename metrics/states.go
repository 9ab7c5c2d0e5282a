package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tetherkube/tether"
)

// states are the gauges, asked for when somebody looks.
type states struct{ c *Collector }

var (
	leading = prometheus.NewDesc("tether_leading", "Whether this process runs the controllers.", nil, nil)
	depth   = prometheus.NewDesc("tether_queue_ready", "Keys that wait for a worker.", []string{"controller", "lane"}, nil)
	waiting = prometheus.NewDesc("tether_queue_waiting", "Keys that wait for a time.", []string{"controller"}, nil)
	running = prometheus.NewDesc("tether_queue_running", "Keys in a pass.", []string{"controller"}, nil)
	objects = prometheus.NewDesc("tether_informer_objects", "Objects that an informer holds.", []string{"resource"}, nil)
	synced  = prometheus.NewDesc("tether_informer_synced", "Whether an informer has synced.", []string{"resource"}, nil)
	unknown = prometheus.NewDesc("tether_outcome_unknown", "Objects of which a call may or may not have taken effect.", []string{"controller"}, nil)
	orphans = prometheus.NewDesc("tether_orphans", "Things outside that carry a reference of this cluster, and that no object derives.", []string{"controller"}, nil)
	rate    = prometheus.NewDesc("tether_budget_rate", "Calls a second that an endpoint is called with at most, at present.", []string{"budget"}, nil)
	tokens  = prometheus.NewDesc("tether_budget_tokens", "Calls to an endpoint that may be made at once.", []string{"budget"}, nil)
	broken  = prometheus.NewDesc("tether_budget_breaker", "Whether an endpoint answers: 1 at closed, where it does, at open, where nothing is sent, or at half-open, where one pass tries.", []string{"budget", "state"}, nil)
	delayed = prometheus.NewDesc("tether_budget_deferred", "Keys that wait for an endpoint.", []string{"budget"}, nil)
	trouble = prometheus.NewDesc("tether_informer_trouble", "What keeps an informer from its work, by reason.", []string{"resource", "reason"}, nil)
)

// Describe names the gauges.
func (s states) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leading, depth, waiting, running, objects, synced, trouble, unknown, orphans, rate, tokens, broken, delayed} {
		ch <- d
	}
}

// Collect asks for what stands now.
func (s states) Collect(ch chan<- prometheus.Metric) {
	s.c.mu.Lock()
	now := s.c.now
	s.c.mu.Unlock()
	if now == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	all := now()
	gauge(leading, number(all.Leading))
	for _, q := range queues(all.Queues) {
		for lane, n := range q.Ready {
			gauge(depth, float64(n), q.Controller, lane)
		}
		gauge(waiting, float64(q.Waiting), q.Controller)
		gauge(running, float64(q.Running), q.Controller)
	}
	for _, m := range managed(all.Managed) {
		gauge(unknown, float64(m.OutcomeUnknown), m.Controller)
		gauge(orphans, float64(m.Orphans), m.Controller)
	}
	for _, b := range all.Budgets {
		gauge(rate, b.Rate, b.Name)
		gauge(tokens, b.Tokens, b.Name)
		gauge(delayed, float64(b.Deferred), b.Name)
		for _, state := range []string{"closed", "open", "half-open"} {
			gauge(broken, number(b.Breaker == state), b.Name, state)
		}
	}
	for _, in := range distinct(all.Informers) {
		gauge(objects, float64(in.Objects), in.Resource)
		gauge(synced, number(in.Synced), in.Resource)
		if in.Trouble != "" {
			gauge(trouble, 1, in.Resource, in.Trouble)
		}
	}
}

// queues adds up those of controllers of one name, which a Run may have: a metric stands
// once.
func queues(all []tether.QueueState) []tether.QueueState {
	var out []tether.QueueState
	at := map[string]int{}
	for _, q := range all {
		i, seen := at[q.Controller]
		if !seen {
			at[q.Controller] = len(out)
			q.Ready = maps.Clone(q.Ready)
			out = append(out, q)
			continue
		}
		o := &out[i]
		o.Waiting, o.Running = o.Waiting+q.Waiting, o.Running+q.Running
		for lane, n := range q.Ready {
			o.Ready[lane] += n
		}
	}
	return out
}

// managed is as queues.
func managed(all []tether.ManagedState) []tether.ManagedState {
	var out []tether.ManagedState
	at := map[string]int{}
	for _, m := range all {
		i, seen := at[m.Controller]
		if !seen {
			at[m.Controller] = len(out)
			out = append(out, m)
			continue
		}
		out[i].OutcomeUnknown += m.OutcomeUnknown
		out[i].Orphans += m.Orphans
	}
	return out
}

// distinct is as queues, for informers of the same resource.
func distinct(all []tether.InformerState) []tether.InformerState {
	var out []tether.InformerState
	at := map[string]int{}
	for _, in := range all {
		i, seen := at[in.Resource]
		if !seen {
			at[in.Resource] = len(out)
			out = append(out, in)
			continue
		}
		o := &out[i]
		o.Objects += in.Objects
		o.Synced = o.Synced && in.Synced
		if o.Trouble == "" {
			o.Trouble = in.Trouble
		}
	}
	return out
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
