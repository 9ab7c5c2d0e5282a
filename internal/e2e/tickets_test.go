package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"
)

// ticket is the smallest Ticket with a JSON merge patch upon it.
func ticket(t *testing.T, name, patch string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(deploy, "samples", "to-new-york.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	smallest, err := yaml.YAMLToJSON(content)
	if err != nil {
		t.Fatal(err)
	}
	named, err := jsonpatch.MergePatch(smallest, fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := jsonpatch.MergePatch(named, []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

func TestEverySampleIsAccepted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	samples, err := os.ReadDir(filepath.Join(deploy, "samples"))
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, "apply", "--validate=strict", "-f", filepath.Join(deploy, "samples"))
	names := strings.Fields(w.run(t, "get", "tickets", "-o", "name"))
	if len(names) != len(samples) {
		t.Errorf("%d samples, and these Tickets: %v", len(samples), names)
	}
}

func TestKubectlExplainDocumentsEveryField(t *testing.T) {
	t.Parallel()
	w := setup(t)
	content, err := os.ReadFile(filepath.Join(deploy, "crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema field `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	paths := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.paths("tickets")
	for _, want := range []string{"tickets.spec.passengers.givenName", "tickets.status.conditions.type", "tickets.spec.maxPrice"} {
		if !slices.Contains(paths, want) {
			t.Fatalf("%s is not among the fields %v", want, paths)
		}
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			out := w.run(t, "explain", path)
			_, description, found := strings.Cut(out, "DESCRIPTION:")
			description, _, _ = strings.Cut(description, "FIELDS:")
			if description = strings.TrimSpace(description); !found || description == "" || description == "<empty>" {
				t.Errorf("nothing is said about it:\n%s", out)
			}
		})
	}
}

// field is the part of a schema that says which fields there are.
type field struct {
	Properties map[string]field `json:"properties"`
	Items      *field           `json:"items"`
}

// paths are those of the field itself and of all below.
func (f field) paths(path string) []string {
	all := []string{path}
	if f.Items != nil {
		return f.Items.paths(path)
	}
	for name, p := range f.Properties {
		all = append(all, p.paths(path+"."+name)...)
	}
	slices.Sort(all)
	return all
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "plain", `{}`)
	got := w.run(t, "get", "ticket", "plain", "-o",
		"jsonpath={.spec.cabin} {.spec.onLost} {.spec.deletionPolicy} {.spec.replace}")
	if want := "economy Report Cancel CreateFirst"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAWrongTicketIsRefusedInWordsThatHelp(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, test := range map[string]struct{ patch, words string }{
		"same airport":        {`{"spec":{"to":"ICN"}}`, "spec: Invalid value: from and to must be two different airports"},
		"lower case airport":  {`{"spec":{"to":"jfk"}}`, `spec.to: Invalid value: "jfk": spec.to in body should match '^[A-Z]{3}$'`},
		"no passengers":       {`{"spec":{"passengers":[]}}`, "spec.passengers in body should have at least 1 items"},
		"ten passengers":      {`{"spec":{"passengers":[` + strings.Repeat(`{"givenName":"A","familyName":"B"},`, 9) + `{"givenName":"A","familyName":"B"}]}}`, "spec.passengers: Too many: 10: must have at most 9 items"},
		"nameless passenger":  {`{"spec":{"passengers":[{"givenName":" ","familyName":"B"}]}}`, "spec.passengers[0].givenName"},
		"passenger of a name": {`{"spec":{"passengers":[{"givenName":"A"}]}}`, "spec.passengers[0].familyName: Required value"},
		"no such day":         {`{"spec":{"departureDate":"2027-02-30"}}`, "spec.departureDate in body must be of type date"},
		"no date":             {`{"spec":{"departureDate":null}}`, "spec.departureDate: Required value"},
		"flight number":       {`{"spec":{"flightNumber":"81"}}`, "spec.flightNumber"},
		"cabin":               {`{"spec":{"cabin":"roof"}}`, `spec.cabin: Unsupported value: "roof": supported values: "economy", "premium", "business", "first"`},
		"empty contact":       {`{"spec":{"contact":{}}}`, "contact needs an email or a phone number"},
		"phone":               {`{"spec":{"contact":{"phone":"02 2123"}}}`, "spec.contact.phone"},
		"email":               {`{"spec":{"contact":{"email":"nobody"}}}`, "spec.contact.email in body must be of type email"},
		"amount":              {`{"spec":{"maxPrice":{"amount":"1,000","currency":"EUR"}}}`, "maxPrice.amount must be a decimal number in quotes"},
		"amount as a number":  {`{"spec":{"maxPrice":{"amount":250,"currency":"EUR"}}}`, "spec.maxPrice.amount in body must be of type string"},
		"currency":            {`{"spec":{"maxPrice":{"amount":"250.00","currency":"eur"}}}`, "maxPrice.currency must be a three-letter ISO 4217 code"},
		"onLost":              {`{"spec":{"onLost":"Forget"}}`, `supported values: "Report", "Recreate"`},
		"deletionPolicy":      {`{"spec":{"deletionPolicy":"Keep"}}`, `supported values: "Cancel", "Retain"`},
		"replace":             {`{"spec":{"replace":"Both"}}`, `supported values: "CreateFirst", "DeleteFirst"`},
		"unknown field":       {`{"spec":{"form":"ICN"}}`, `unknown field "spec.form"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.refused(t, ticket(t, "wrong", test.patch), test.words, "apply", "-f", "-")
		})
	}
}

func TestTheRouteOfATicketCannotChange(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "route", `{}`)
	for _, field := range []string{"from", "to"} {
		w.refused(t, "", field+" cannot change: another route is another ticket. Create a new Ticket",
			"patch", "ticket", "route", "--type=merge", "-p", `{"spec":{"`+field+`":"FRA"}}`)
	}
	// All else does, and the generation tells.
	w.run(t, "patch", "ticket", "route", "--type=merge", "-p", `{"spec":{"departureDate":"2027-05-02","cabin":"first","flightNumber":"KE81",
		"contact":{"phone":"+82212345678"},"passengers":[{"givenName":"Second","familyName":"Passenger"}],"maxPrice":{"amount":"250","currency":"EUR"},
		"onLost":"Recreate","deletionPolicy":"Retain","replace":"DeleteFirst"}}`)
	if got := w.run(t, "get", "ticket", "route", "-o", "jsonpath={.metadata.generation}"); got != "2" {
		t.Errorf("generation %s", got)
	}
}

func TestAFlownTicketsSpecDoesNotChange(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "flown", `{}`)
	status := func(state string) {
		t.Helper()
		w.run(t, "patch", "ticket", "flown", "--subresource=status", "--type=merge", "-p", `{"status":{"state":"`+state+`"}}`)
	}
	cabin := func(c string) []string {
		return []string{"patch", "ticket", "flown", "--type=merge", "-p", `{"spec":{"cabin":"` + c + `"}}`}
	}
	status("confirmed")
	w.run(t, cabin("first")...)
	status("flown")
	w.refused(t, "", "spec: Invalid value: the flight has been flown: a flown ticket's spec does not change", cabin("economy")...)
	// Metadata does, or it could never be deleted; and so does status.
	w.run(t, "label", "ticket", "flown", "kept=yes")
	status("flown")
	w.run(t, "delete", "ticket", "flown", "--wait=true")
}

func TestColumnsTellATicketsStateAtAGlance(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "seen", `{}`)
	status := map[string]any{"status": map[string]any{
		"state": "confirmed", "bookingID": "b-1", "recordLocator": "Q7XK2P",
		"flight": map[string]any{"number": "KE81", "departure": "2027-05-01T01:20:00Z"},
		"price":  map[string]any{"amount": "640.00", "currency": "EUR"},
		"seats":  []string{"31A"}, "bookedAt": "2027-01-01T00:00:00Z", "lastObservedAt": "2027-01-01T00:00:00Z",
		"observedGeneration": 1,
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Confirmed", "message": "booked",
			"lastTransitionTime": "2027-01-01T00:00:00Z", "observedGeneration": 1,
		}},
	}}
	patch, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, "patch", "ticket", "seen", "--subresource=status", "--type=merge", "-p", string(patch))

	want := [][]string{
		{"NAME", "FROM", "TO", "DATE", "STATE", "READY", "REASON", "LOCATOR", "AGE"},
		{"seen", "ICN", "JFK", "2027-05-01", "confirmed", "True", "Confirmed", "Q7XK2P"},
	}
	for _, name := range []string{"tk", "tickets", "travel"} { // short name, plural, category
		lines := strings.Split(strings.TrimSpace(w.run(t, "get", name)), "\n")
		if len(lines) != 2 || !slices.Equal(strings.Fields(lines[0]), want[0]) || !slices.Equal(strings.Fields(lines[1])[:8], want[1]) {
			t.Errorf("kubectl get %s:\n%s", name, strings.Join(lines, "\n"))
		}
	}
	wide := w.run(t, "get", "tk", "-o", "wide")
	for _, word := range []string{"FLIGHT", "KE81", "DEPARTURE", "2027-05-01T01:20:00Z", "PRICE", "640.00", "EUR", "MESSAGE", "booked"} {
		if !strings.Contains(wide, word) {
			t.Errorf("%q is not in:\n%s", word, wide)
		}
	}
	w.run(t, "wait", "--for=condition=Ready", "--timeout=10s", "ticket/seen")
}

func TestTicketsAreSelectedByFields(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "yes", `{"spec":{"to":"FRA","cabin":"business","departureDate":"2027-06-01"}}`)
	w.apply(t, "no", `{}`)
	w.run(t, "patch", "ticket", "yes", "--subresource=status", "--type=merge", "-p",
		`{"status":{"state":"confirmed","bookingID":"b-1","recordLocator":"Q7XK2P"}}`)
	for _, selector := range []string{
		"spec.to=FRA", "spec.from=ICN,spec.cabin=business", "spec.departureDate=2027-06-01", "spec.to!=JFK",
		"status.state=confirmed", "status.bookingID=b-1", "status.recordLocator=Q7XK2P",
	} {
		if got := w.run(t, "get", "tickets", "--field-selector="+selector, "-o", "name"); got != "ticket.flights.com/yes\n" {
			t.Errorf("%s selects %q", selector, got)
		}
	}
}
