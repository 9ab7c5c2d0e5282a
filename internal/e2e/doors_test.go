package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

// olderDefinition is the Ticket's definition before it had any rule: types alone.
func olderDefinition(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(deploy, "crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	lenient(crd)
	older, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return string(older)
}

func lenient(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, e := range s {
			lenient(e)
		}
	case map[string]any:
		if _, isSchema := s["type"].(string); isSchema {
			for _, rule := range []string{"x-kubernetes-validations", "pattern", "format", "enum", "minLength", "maxLength", "minItems", "maxItems"} {
				delete(s, rule)
			}
		}
		for _, e := range s {
			lenient(e)
		}
	}
}

// served checks that another Ticket is booked meanwhile, by one call, and that this
// is all that the booking API hears from the time of the journal's length on.
func (s *stage) served(t *testing.T, name string, calls int) {
	t.Helper()
	s.create(t, name, `{}`)
	tk := s.awaitReady(t, name)
	if made := s.site.Journal()[calls:]; len(made) != 1 || made[0].BookingID != tk.Status.BookingID {
		t.Errorf("while %s was booked, the booking API was called: %v", name, made)
	}
}

func TestASpecThatCameInPastAnOlderDefinitionIsToldAndOthersAreServed(t *testing.T) {
	t.Parallel()
	s := stageOn(t, ownCluster(t), fake.BookingOptions{})
	if _, err := s.kubectl.Run(t.Context(), olderDefinition(t), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.run(t, "wait", "--for=condition=Established", "--timeout=30s", "crd/tickets.flights.com")
	s.start(t, hasty...) // what is put right is not new: it waits for a window
	wrong := map[string]struct{ patch, words string }{
		"route":    {`{"spec":{"from":"JFK"}}`, `spec.from and spec.to: "JFK" and "JFK" are not two different IATA codes`},
		"airport":  {`{"spec":{"from":"Seoul"}}`, `spec.from and spec.to: "Seoul" and "JFK" are not two different IATA codes`},
		"date":     {`{"spec":{"departureDate":"tomorrow"}}`, `spec.departureDate: "tomorrow" is not a date`},
		"past":     {`{"spec":{"departureDate":"2001-05-01"}}`, `spec.departureDate: 2001-05-01 has passed`},
		"flight":   {`{"spec":{"flightNumber":"81"}}`, `spec.flightNumber: "81" is not a flight number`},
		"cabin":    {`{"spec":{"cabin":"roof"}}`, `spec.cabin: "roof" is none of`},
		"nobody":   {`{"spec":{"passengers":[]}}`, `spec.passengers: there are 0; give 1 to 9`},
		"crowd":    {`{"spec":{"passengers":[` + strings.Repeat(`{"givenName":"A","familyName":"B"},`, 9) + `{"givenName":"A","familyName":"B"}]}}`, `spec.passengers: there are 10`},
		"nameless": {`{"spec":{"passengers":[{"givenName":" ","familyName":"B"}]}}`, `spec.passengers[0]: givenName or familyName is missing`},
		"price":    {`{"spec":{"maxPrice":{"amount":"1,000","currency":"EUR"}}}`, `spec.maxPrice: amount`},
		"on-lost":  {`{"spec":{"onLost":"Forget"}}`, `spec.onLost: "Forget" is neither Report nor Recreate`},
		"deletion": {`{"spec":{"deletionPolicy":"Keep"}}`, `spec.deletionPolicy: "Keep" is neither Cancel nor Retain`},
		"replace":  {`{"spec":{"replace":"Both"}}`, `spec.replace: "Both" is neither CreateFirst nor DeleteFirst`},
	}
	for name, row := range wrong {
		s.create(t, name, row.patch)
		tk := s.await(t, name, "stalled", stalled("InvalidSpec"))
		if said := condition(tk, "Stalled").Message; !strings.Contains(said, row.words) {
			t.Errorf("%s: said %q, want %q", name, said, row.words)
		}
		if tk.Annotations["flights.com/ticket.claim"] != "" || len(tk.Finalizers) > 0 {
			t.Errorf("%s was claimed: %v, %v", name, tk.Annotations, tk.Finalizers)
		}
	}
	s.served(t, "good", 0)

	// With today's definition it is put right, and booked.
	ctx, cancel := patience(t, "the definition")
	defer cancel()
	if err := define(ctx, s.cluster); err != nil {
		t.Fatal(err)
	}
	for name := range wrong {
		if name != "date" {
			s.remove(t, name)
			s.awaitGone(t, name)
		}
	}
	s.mustPatch(t, "date", changes["departureDate"])
	tk := s.awaitReady(t, "date")
	s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))
}

func TestAnAnnotationThatIsGarbageIsToldAndOthersAreServed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ annotation, value, reason, words string }{
		"paused":          {"paused", "yes", "InvalidAnnotation", `annotation flights.com/paused is "yes"; set it to "true", or take it off`},
		"orphan":          {"orphan", "\x00\u200d", "InvalidAnnotation", `annotation flights.com/orphan is "\x00\u200d"; set it to "true", or take it off`},
		"outcome":         {"ticket.outcome", "maybe", "InvalidAnnotation", `annotation flights.com/ticket.outcome is "maybe"; give "<incarnation>.<attempt>=happened:<id>"`},
		"no such outcome": {"ticket.outcome", "1.1=did-not-happen", "InvalidAnnotation", "answers no open question; take it off"},
		"no such new":     {"ticket.new", "1", "InvalidAnnotation", "answers no open question; take it off"},
		"adopt":           {"ticket.adopt", "bk-1", "CannotAdopt", `"bk-1" is not adopted: this controller does not allow it; take the annotation off`},
		"claim":           {"ticket.claim", "{", "InvalidClaim", "annotation flights.com/ticket.claim: not a JSON object"},
		"claim of a list": {"ticket.claim", "[1]", "InvalidClaim", "annotation flights.com/ticket.claim: not a JSON object"},
		"long claim":      {"ticket.claim", strings.Repeat("x", 200_000), "InvalidClaim", "annotation flights.com/ticket.claim: not a JSON object"},
		"newer claim":     {"ticket.claim", `{"v":99}`, "NewerClaim", "run the newer program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fake.BookingOptions{})
			c := s.start(t)
			set := func(value any) string {
				t.Helper()
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"flights.com/" + row.annotation: value}}})
				if err != nil {
					t.Fatal(err)
				}
				return string(patch)
			}
			s.create(t, "odd", set(row.value))
			tk := s.await(t, "odd", "stalled", stalled(row.reason))
			if said := condition(tk, "Stalled").Message; !strings.Contains(said, row.words) {
				t.Errorf("said %q, want %q", said, row.words)
			}
			calls := s.site.Journal() // what answers no question is told when all else is done
			if len(calls) > 1 || len(calls) == 1 && calls[0].Op != booking.OpCreate && calls[0].Op != booking.OpGet {
				t.Errorf("the booking API was called: %v", calls)
			}
			s.served(t, "other", len(calls))
			if lines := c.errorsLogged(); len(lines) > 0 {
				t.Errorf("logged as errors: %q", lines)
			}
			s.mustPatch(t, "odd", set(nil))
			tk = s.awaitReady(t, "odd")
			s.toldRight(t, tk, s.booked(t, tk.Status.BookingID))
			s.neverTwice(t)
		})
	}
}

func TestAClaimThatIsSpoiledOnABookedTicketTouchesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(string) string{
		"garbage":    func(string) string { return "garbage" },
		"of another": func(claim string) string { return strings.Replace(claim, `"name":"spoiled"`, `"name":"victim"`, 1) },
		"counting too far": func(claim string) string {
			return strings.Replace(claim, `"incarnation":1`, `"incarnation":4000000000`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, fake.BookingOptions{})
			c := s.start(t)
			s.create(t, "spoiled", `{}`)
			before := s.awaitReady(t, "spoiled")
			// Nobody remembers what the claim was.
			c.kill(t)
			claim := before.Annotations["flights.com/ticket.claim"]
			write := func(value string) {
				t.Helper()
				s.mustPatch(t, "spoiled", fmt.Sprintf(`{"metadata":{"annotations":{"flights.com/ticket.claim":%q}}}`, value))
			}
			write(spoil(claim))
			c = s.start(t, "--workers=1")
			c.line(t, 0, `"pass ended"`, `name="spoiled"`, `outcome="terminal"`)
			s.create(t, "other", `{}`)
			s.awaitReady(t, "other")
			write(claim)
			after := s.await(t, "spoiled", "ready again", func(tk *v1.Ticket) bool {
				return ready(tk) && tk.Annotations["flights.com/ticket.claim"] == claim
			})
			s.toldRight(t, after, s.booked(t, before.Status.BookingID))
			if creates, acts := s.effects(booking.OpCreate), len(s.entries(func(e fake.BookingEntry) bool { return e.Effect })); creates != 2 || acts != 2 {
				t.Errorf("%d bookings were made, %d calls took effect", creates, acts)
			}
		})
	}
}

func TestAClaimThatSaysReleasedDoesNotKeepABookingFromBeingCancelled(t *testing.T) {
	t.Parallel()
	s := newStage(t, fake.BookingOptions{})
	c := s.start(t)
	s.create(t, "spoiled", `{}`)
	before := s.awaitReady(t, "spoiled")
	c.kill(t)
	claim := strings.TrimSuffix(before.Annotations["flights.com/ticket.claim"], "}") + `,"released":true}`
	s.mustPatch(t, "spoiled", fmt.Sprintf(`{"metadata":{"annotations":{"flights.com/ticket.claim":%q}}}`, claim))
	s.remove(t, "spoiled")
	s.start(t)
	s.awaitGone(t, "spoiled")
	if n := s.effects(booking.OpCancel); n != 1 || len(s.live()) > 0 {
		t.Errorf("cancelled %d times, %d live", n, len(s.live()))
	}
}
