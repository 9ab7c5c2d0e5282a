package embedded

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

var noon = time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC)

func TestALineOfTheLogHasColoursOnlyWhereTheyAreWanted(t *testing.T) {
	t.Parallel()
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		newLiveLog(Options{Out: &out, Colour: colour}).write(noon, line{bad, "airline", "bk-1", "refuses"})
		if got := out.String(); !strings.HasPrefix(got, "12:00:00  airline") || strings.Contains(got, "\x1b[31m") != colour {
			t.Errorf("colour %v: %q", colour, got)
		}
	}
}

func TestALineOfTheLogIsOneObjectWhereJSONIsWanted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	newLiveLog(Options{Out: &out, JSON: true, Colour: true}).write(noon, line{bad, "airline", "bk-1", "refuses"})
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	if got["level"] != "WARN" || got["msg"] != "refuses" || got["by"] != "airline" || got["about"] != "bk-1" {
		t.Errorf("got %v", got)
	}
}

func TestLookUpsThatGoWellAreLeftOut(t *testing.T) {
	t.Parallel()
	if l, told := bookingLine(fake.BookingEntry{Op: booking.OpList, Done: true, Status: 200}); told {
		t.Errorf("told: %+v", l)
	}
	if l, told := bookingLine(fake.BookingEntry{Op: booking.OpCreate, Done: true, Status: 409, Problem: booking.SoldOut}); !told || l.mood != bad {
		t.Errorf("a refusal: told %v, %+v", told, l)
	}
}

func TestAChangeOfAnotherGroupOrOfNothingIsNotTold(t *testing.T) {
	t.Parallel()
	e := fake.APIEntry{Group: "flights.com", Resource: "tickets", Name: "a", Namespace: "ns", Done: true, After: []byte(`{"spec":{"from":"ICN","to":"JFK"}}`)}
	if got := ticketLines(e); len(got) != 1 || got[0].what != "ns/a" || got[0].who != "you" {
		t.Errorf("a new Ticket: %+v", got)
	}
	same, other := e, e
	same.Before, other.Group = e.After, "example.com"
	for _, quiet := range []fake.APIEntry{same, other} {
		if got := ticketLines(quiet); len(got) > 0 {
			t.Errorf("told: %+v", got)
		}
	}
}

func TestTheBannerWarnsWhereBookingsMayBeReal(t *testing.T) {
	t.Parallel()
	own, given := banner(facts{kubeconfig: "/tmp/a b", token: "x"}), banner(facts{bookingURL: "https://x.example"})
	for _, words := range []string{"EMBEDDED FAKE, not a cluster", "no seat is really booked", "KUBECONFIG='/tmp/a b'"} {
		if !strings.Contains(own, words) {
			t.Errorf("the banner lacks %q", words)
		}
	}
	kept := banner(facts{token: "x", dataDir: "/tmp/d", kept: true})
	if !strings.Contains(kept, "What is in /tmp/d from before is there again") || strings.Contains(kept, "to-paris") || !strings.Contains(own, "All of it goes") {
		t.Errorf("with what was kept:\n%s", kept)
	}
	if !strings.Contains(given, "may be real") || strings.Contains(given, "Bearer") || strings.Contains(given, "sold out") {
		t.Errorf("with a booking API of the user's own:\n%s", given)
	}
}
