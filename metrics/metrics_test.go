package metrics_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/metrics"
)

func scrape(t *testing.T, c *metrics.Collector) string {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v:\n%s", w.Code, err, body)
	}
	return string(body)
}

func TestWhatTheHooksHearIsShown(t *testing.T) {
	t.Parallel()
	c := metrics.New()
	var hooks tether.Hooks = c
	if body := scrape(t, c); !strings.Contains(body, "go_goroutines") || strings.Contains(body, "tether_leading") {
		t.Errorf("before a Run:\n%s", body)
	}
	hooks.Pass(tether.PassInfo{Controller: "ticket", Lane: "people", Outcome: "error", Duration: 20 * time.Millisecond, Waited: time.Millisecond, Panic: true})
	hooks.Call(tether.CallInfo{Controller: "ticket", Verb: "create", Outcome: "unknown", Duration: time.Second})
	hooks.Request(tether.RequestInfo{Method: "GET", Resource: "tickets", Watch: true, Code: 200})
	hooks.Running(func() tether.Snapshot {
		return tether.Snapshot{
			Leading: true,
			Queues: []tether.QueueState{ // a Run may have two controllers of one name
				{Controller: "ticket", Ready: map[string]int{"people": 1}, Waiting: 4, Running: 2},
				{Controller: "ticket", Ready: map[string]int{"people": 2}, Waiting: 1},
			},
			Managed: []tether.ManagedState{{Controller: "ticket", OutcomeUnknown: 1, Orphans: 3}, {Controller: "ticket", OutcomeUnknown: 1}},
			Budgets: []tether.BudgetState{{Name: "airline", Rate: 2.5, Tokens: 4, Breaker: "open", Deferred: 9}},
			Informers: []tether.InformerState{
				{Resource: "tickets.flights.com", Synced: true, Objects: 7},
				{Resource: "tickets.flights.com", Objects: 4, Trouble: "Forbidden"},
			},
		}
	})
	body := scrape(t, c)
	for _, line := range []string{
		`tether_pass_duration_seconds_count{controller="ticket",outcome="error"} 1`,
		`tether_queue_wait_seconds_count{controller="ticket",lane="people"} 1`,
		`tether_panics_total{controller="ticket"} 1`,
		`tether_call_duration_seconds_sum{controller="ticket",outcome="unknown",verb="create"} 1`,
		`tether_api_request_duration_seconds_count{code="200",method="WATCH",resource="tickets"} 1`,
		`tether_leading 1`,
		`tether_queue_ready{controller="ticket",lane="people"} 3`,
		`tether_queue_waiting{controller="ticket"} 5`,
		`tether_queue_running{controller="ticket"} 2`,
		`tether_outcome_unknown{controller="ticket"} 2`,
		`tether_orphans{controller="ticket"} 3`,
		`tether_budget_rate{budget="airline"} 2.5`,
		`tether_budget_tokens{budget="airline"} 4`,
		`tether_budget_breaker{budget="airline",state="closed"} 0`,
		`tether_budget_breaker{budget="airline",state="open"} 1`,
		`tether_budget_deferred{budget="airline"} 9`,
		`tether_informer_objects{resource="tickets.flights.com"} 11`,
		`tether_informer_synced{resource="tickets.flights.com"} 0`,
		`tether_informer_trouble{reason="Forbidden",resource="tickets.flights.com"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestTwoCollectorsStandInOneProcess(t *testing.T) {
	t.Parallel()
	a, b := metrics.New(), metrics.New()
	a.Pass(tether.PassInfo{Controller: "a"})
	if strings.Contains(scrape(t, b), `controller="a"`) {
		t.Error("one collector shows what the other heard")
	}
	if families, err := a.Gatherer().Gather(); err != nil || len(families) == 0 {
		t.Errorf("gathered %d, %v", len(families), err)
	}
}
