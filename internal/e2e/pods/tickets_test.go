package pods

import (
	"context"
	"fmt"
	"testing"

	"github.com/tetherkube/tether/internal/e2e/traffic"
)

// flights is a namespace with the Tickets of one test.
type flights struct{ traffic.Tickets }

// newFlights makes one.
func newFlights(t *testing.T) flights {
	t.Helper()
	return flights{traffic.Tickets{Client: resources, Namespace: mustWith(t,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"flights-","labels":{"`+ofTheTests+`":"true"}}}`,
		"create", "-f", "-", "-o", "jsonpath={.metadata.name}")}}
}

// ofTheTests is a label of what they make, and take away by it.
const ofTheTests = "flights.com/of-the-tests"

// takeAway removes all Tickets, while there is an operator that cancels what they booked,
// and their namespaces.
func takeAway(t *testing.T) {
	t.Helper()
	run := func(args ...string) (out string) {
		out, err := kubectl.Run(context.WithoutCancel(t.Context()), "", args...)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	// The Tickets first: a namespace that goes asks only now and then whether
	// what waits in it has gone.
	if run("get", "crd", "tickets.flights.com", "--ignore-not-found", "-o", "name") != "" {
		run("delete", "tickets", "--all", "--all-namespaces", "--timeout=100s")
	}
	run("delete", "namespace", "-l", ofTheTests, "--wait=false")
}

// book makes Tickets, and does not wait.
func (f flights) book(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := f.Create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// exactlyOnce waits until there are n Tickets, all booked as their newest spec wants
// it and none on its way out, and checks that each has one booking, that this says
// what the Ticket does, and that no other booking stands.
func (f flights) exactlyOnce(t *testing.T, n int) {
	t.Helper()
	all, err := f.Booked(patiently(t, fmt.Sprintf("%d Tickets that are booked", n)), n)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range traffic.Wrong(all, site.BookingServer) {
		t.Error(wrong)
	}
}
