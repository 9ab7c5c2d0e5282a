package e2e

import (
	"net/http"
	"strings"

	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// The requests of a controller, as the journal has them.

// creates are those that book.
func creates(e proxy.Exchange) bool { return e.Method == http.MethodPost && e.URI == "/v1/bookings" }

// cancels are those that cancel a booking.
func cancels(e proxy.Exchange) bool { return strings.HasSuffix(e.URI, "/cancel") }

// claims write the object: its claim and finalizer, or its release.
func claims(e proxy.Exchange) bool {
	return e.Method == http.MethodPatch && strings.Contains(e.URI, "/tickets/") && !strings.Contains(e.URI, "/status")
}

// statuses write the object's status.
func statuses(e proxy.Exchange) bool {
	return e.Method == http.MethodPatch && strings.Contains(e.URI, "/status")
}

// ofATicket are all that are made for a Ticket, to either server. Lists, watches,
// leases and Events are none.
func ofATicket(e proxy.Exchange) bool {
	return strings.HasPrefix(e.Proxy, "site") || strings.Contains(e.URI, "/tickets/")
}

// acts are those by which a controller acts on anything.
func acts(e proxy.Exchange) bool {
	return strings.HasPrefix(e.Proxy, "site") || claims(e) || statuses(e)
}

// resumes are watches that go on from where an earlier one ended.
func resumes(e proxy.Exchange) bool {
	return strings.Contains(e.URI, "/tickets?") && strings.Contains(e.URI, "watch=true") &&
		strings.Contains(e.URI, "resourceVersion=") && !strings.Contains(e.URI, "sendInitialEvents")
}
