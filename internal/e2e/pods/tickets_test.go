package pods

import (
	"context"
	"fmt"
	"testing"

	"github.com/tetherkube/tether/internal/e2e/traffic"
)

// flights is a namespace with the Tickets of one test.
type flights struct{ traffic.Tickets }

// newFlights makes one. At the end of the test its Tickets are taken away, while
// there is an operator that cancels what they booked.
func newFlights(t *testing.T) flights {
	t.Helper()
	f := flights{traffic.Tickets{Client: resources, Namespace: mustWith(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"flights-"}}`,
		"create", "-f", "-", "-o", "jsonpath={.metadata.name}")}}
	t.Cleanup(func() {
		if t.Failed() {
			return // they tell why, and may be stuck; the cluster goes with them
		}
		// The Tickets first: a namespace that goes asks only now and then whether
		// what waits in it has gone.
		for _, args := range [][]string{
			{"delete", "tickets", "--all", "-n", f.Namespace, "--timeout=100s"},
			{"delete", "namespace", f.Namespace, "--wait=false"},
		} {
			if _, err := kubectl.Run(context.WithoutCancel(t.Context()), "", args...); err != nil {
				t.Error(err)
			}
		}
	})
	return f
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
