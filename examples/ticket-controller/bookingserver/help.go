package bookingserver

import (
	"fmt"
	"strings"
)

func help() string {
	var b strings.Builder
	b.WriteString(`Runs a booking API whose bookings live in memory, to play with or to develop
against. It keeps to booking/openapi.yaml; docs/booking-api.md tells it in short.

Usage:
  ticket-controller booking-server [flags]

Flags (each can be given in the environment too):
`)
	for _, o := range options() {
		fmt.Fprintf(&b, "  --%s %s\n", o.name, o.value)
		for _, line := range wrap(o.help, 72) {
			b.WriteString("        " + line + "\n")
		}
		more := ""
		if o.repeated {
			more = " (several: by spaces). Can be repeated."
		}
		fmt.Fprintf(&b, "        $%s%s\n", o.env(), more)
	}
	b.WriteString(`
Faults:
  latency:delay=3s         carry the request out later, also where the client has gone
  late-answer:delay=40s    carry it out at once, answer later
  late-commit:delay=1m     cut the connection, carry it out later
  cut-before, cut-after    cut the connection before or after it is carried out
  truncated                cut the answer in the middle
  rate-limit, internal, unavailable
                           answer 429, 500, 503 instead of carrying it out
  internal-after           carry it out and answer 500
  problem:problem=sold-out answer that problem; its names are in docs/booking-api.md
  malformed, wrong-type, huge
                           carry it out and answer what is not JSON, HTML, or 10 MB

  Which requests a fault meets, all by default:
    op=create|get|list|change|cancel|close, reference=…, booking-id=…, caller=…
    nth=3              only the third that fits; with times, from the third on
    times=2            at most two
    probability=0.2    one in five, drawn by the seed
    after=1m, for=30s  a time from the start on
  And retry-after=5s for rate-limit, internal and unavailable.

Examples:
  ticket-controller booking-server
  ticket-controller booking-server --listen 127.0.0.1:0 --reference-uniqueness live --confirm-after 10s
  ticket-controller booking-server --fault cut-after:op=create,nth=1 --fault rate-limit:probability=0.1,retry-after=3s
  ticket-controller booking-server --fault unavailable:after=1m,for=30s --sold-out ICN-JFK@2027-12-24
`)
	return b.String()
}

func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
