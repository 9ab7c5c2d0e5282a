package contract

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/metrics"
)

// both hears for two.
type both struct {
	*metrics.Collector
	hooks *hooks
}

func (b both) Running(now func() tether.Snapshot) { b.Collector.Running(now); b.hooks.Running(now) }
func (b both) Pass(p tether.PassInfo)             { b.Collector.Pass(p); b.hooks.Pass(p) }
func (b both) Call(c tether.CallInfo)             { b.Collector.Call(c); b.hooks.Call(c) }

func TestPassesQueueRequestsAndCallsAreSeenInMetrics(t *testing.T) {
	t.Parallel()
	s := setup(t)
	shop, m := newWorkshop(s.wire), metrics.New()
	c := tether.Manage(tether.NewInformer(gadgets, s.here()), shop, tether.ManageOptions[*Gadget]{
		ID: serial, Guarantee: tether.UniqueReference, Options: tether.Options{Workers: 2, MinBackoff: time.Hour, MaxBackoff: time.Hour},
	})
	hooks := newHooks()
	s.start(t, tether.RunOptions{SingleProcess: true, Hooks: both{m, hooks}}, c)
	s.log.line(t, "controllers run")
	v := &seen{stage: s, metrics: m}
	v.shows(t, `tether_leading 1`, `tether_informer_synced{resource="gadgets.shop.example.com"} 1`, `tether_informer_objects{resource="gadgets.shop.example.com"} 0`)

	s.gadget(t, "good", `{"spec":{"size":1}}`)
	hooks.ending(t, 1, "good")
	shop.next("create", before, answers(errors.New("connection reset")))
	s.gadget(t, "lost", `{"spec":{"size":1}}`)
	hooks.ending(t, 1, "lost")
	shop.next("create", before, answers(tether.Terminal(errSold)))
	s.gadget(t, "rejected", `{"spec":{"size":1}}`)
	hooks.ending(t, 1, "rejected")
	shop.next("create", before, func(context.Context) error { panic("too hot") })
	s.gadget(t, "panics", `{"spec":{"size":1}}`)
	hooks.ending(t, 1, "panics")
	wait, reached, release := held()
	shop.next("create", before, wait)
	s.gadget(t, "running", `{"spec":{"size":1}}`)
	received(t, reached, "the create")
	v.shows(t,
		`tether_pass_duration_seconds_count{controller="gadget",outcome="done"} 1`,
		`tether_pass_duration_seconds_count{controller="gadget",outcome="error"} 2`,
		`tether_pass_duration_seconds_count{controller="gadget",outcome="terminal"} 1`,
		`tether_queue_wait_seconds_count{controller="gadget",lane="people"} 4`,
		`tether_panics_total{controller="gadget"} 1`,
		`tether_call_duration_seconds_count{controller="gadget",outcome="done",verb="create"} 1`,
		`tether_call_duration_seconds_count{controller="gadget",outcome="unknown",verb="create"} 2`,
		`tether_call_duration_seconds_count{controller="gadget",outcome="rejected",verb="create"} 1`,
		`tether_queue_running{controller="gadget"} 1`,
		`tether_queue_waiting{controller="gadget"} 3`, // two for a backoff, the good one for its poll
		`tether_queue_ready{controller="gadget",lane="people"} 0`,
		`tether_informer_objects{resource="gadgets.shop.example.com"} 5`,
		`tether_api_request_duration_seconds_count{code="200",method="PATCH",resource="gadgets"} 5`,
		`tether_api_request_duration_seconds_count{code="200",method="PATCH",resource="gadgets/status"} 4`,
		`tether_api_request_duration_seconds_count{code="200",method="WATCH",resource="gadgets"} 1`,
		`tether_api_request_duration_seconds_count{code="200",method="GET",resource="namespaces"} 1`,
	)
	close(release)
	hooks.ending(t, 1, "running")
}
