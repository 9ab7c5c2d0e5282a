package embedded

import (
	"fmt"
	"strings"
)

// facts are what the banner tells.
type facts struct {
	apiServer, kubeconfig string
	bookingURL, token     string // token is empty where the booking API is not the embedded one
	firstDay, soldOutDay  string
	secondDay             string
	dataDir               string // empty where nothing is kept
	kept                  bool   // what is there is of an earlier run
}

// banner says what this is, and what to try in a second terminal.
func banner(f facts) string {
	var b strings.Builder
	fmt.Fprintf(&b, `This is an EMBEDDED FAKE, not a cluster: no cluster is configured, or --embedded
asked for it. A Kubernetes API server in this process at %s
`, f.apiServer)
	if f.token != "" {
		fmt.Fprintf(&b, "and an airline in this process at %s; no seat is really booked.\n", f.bookingURL)
	} else {
		fmt.Fprintf(&b, "works with the booking API at %s, which was given:\nwhat is booked there may be real.\n", f.bookingURL)
	}
	switch {
	case f.dataDir == "":
		b.WriteString("All of it goes when this program ends.\n")
	case f.kept:
		fmt.Fprintf(&b, "What is in %s from before is there again.\n", f.dataDir)
	default:
		fmt.Fprintf(&b, "What it has stays in %s for the next time.\n", f.dataDir)
	}
	fmt.Fprintf(&b, `
In a second terminal:

  export KUBECONFIG=%s
  kubectl get tickets
  kubectl explain ticket.spec
  echo '%s' | kubectl apply -f -
`, quote(f.kubeconfig), fmt.Sprintf(oneMore, f.firstDay))
	if !f.kept {
		f.samples(&b)
	}
	if f.token != "" {
		fmt.Fprintf(&b, `
What the airline has:

  curl -s -H 'Authorization: Bearer %s' %s/v1/bookings
`, f.token, f.bookingURL)
	}
	b.WriteString("\nCtrl-C ends it. What happens from now on:\n\n")
	return b.String()
}

// oneMore is a Ticket for a person to create.
const oneMore = `{"apiVersion":"flights.com/v1","kind":"Ticket","metadata":{"name":"to-osaka"},"spec":` +
	`{"from":"ICN","to":"KIX","departureDate":"%s","passengers":[{"givenName":"Test","familyName":"Passenger"}]}}`

// samples are lines about the Tickets that are there from the start.
func (f facts) samples(b *strings.Builder) {
	fmt.Fprintf(b, `  kubectl patch ticket to-new-york --type merge -p '{"spec":{"departureDate":"%s"}}'
  kubectl delete ticket two-to-tokyo
`, f.secondDay)
	if f.token != "" {
		fmt.Fprintf(b, `
to-paris is sold out on %s; another day has seats:

  kubectl patch ticket to-paris --type merge -p '{"spec":{"departureDate":"%s"}}'
`, f.soldOutDay, f.firstDay)
	}
}

// quote makes one word for a shell.
func quote(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:", r)
	}) {
		return s
	}
	return `'` + strings.ReplaceAll(s, `'`, `'\''`) + `'`
}
