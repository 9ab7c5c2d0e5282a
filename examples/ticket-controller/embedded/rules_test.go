package embedded

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

func valid() *v1.Ticket {
	return &v1.Ticket{Spec: v1.TicketSpec{
		From: "ICN", To: "JFK", DepartureDate: "2027-05-01", FlightNumber: "KE81",
		Contact: &v1.Contact{Phone: "+82212345678"}, MaxPrice: &v1.Money{Amount: "250.00", Currency: "EUR"},
		Passengers: []v1.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	}}
}

func object(t *testing.T, tk *v1.Ticket) *unstructured.Unstructured {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tk)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: raw}
}

// messages are those of every rule of the definition.
func messages(node any) (all []string) {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			list, isList := value.([]any)
			if key != "x-kubernetes-validations" || !isList {
				all = append(all, messages(value)...)
				continue
			}
			for _, rule := range list {
				all = append(all, rule.(map[string]any)["message"].(string))
			}
		}
	case []any:
		for _, value := range n {
			all = append(all, messages(value)...)
		}
	}
	return all
}

func TestEveryRuleOfTheDefinitionHoldsHereInItsWords(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../deploy/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(raw, &definition); err != nil {
		t.Fatal(err)
	}
	breaks := map[string]func(*v1.Ticket){
		"from must be":              func(k *v1.Ticket) { k.Spec.From = "icn" },
		"to must be":                func(k *v1.Ticket) { k.Spec.To = "JFKX" },
		"from and to must":          func(k *v1.Ticket) { k.Spec.To = "ICN" },
		"flightNumber must":         func(k *v1.Ticket) { k.Spec.FlightNumber = "KE 81" },
		"contact needs":             func(k *v1.Ticket) { k.Spec.Contact = &v1.Contact{} },
		"phone must":                func(k *v1.Ticket) { k.Spec.Contact.Phone = "02 123" },
		"maxPrice.amount must":      func(k *v1.Ticket) { k.Spec.MaxPrice.Amount = "1,000" },
		"maxPrice.currency must":    func(k *v1.Ticket) { k.Spec.MaxPrice.Currency = "euro" },
		"givenName must":            func(k *v1.Ticket) { k.Spec.Passengers[0].GivenName = " Test" },
		"familyName must":           func(k *v1.Ticket) { k.Spec.Passengers[0].FamilyName = "Passenger " },
		"from cannot change":        func(k *v1.Ticket) { k.Spec.From = "FRA" },
		"to cannot change":          func(k *v1.Ticket) { k.Spec.To = "CDG" },
		"the flight has been flown": func(k *v1.Ticket) { k.Spec.Cabin = v1.CabinFirst },
	}
	all := messages(definition)
	if len(all) != len(breaks) {
		t.Errorf("the definition has %d rules, and %d are tried", len(all), len(breaks))
	}
	for _, message := range all {
		tried := false
		for begins, change := range breaks {
			if !strings.HasPrefix(message, begins) {
				continue
			}
			tried = true
			was, now := valid(), valid()
			was.Status.State = v1.BookingFlown
			change(now)
			err := rules(fake.APIWrite{Operation: "UPDATE", Resource: v1.GroupVersion.WithResource("tickets"), Object: object(t, now), Old: object(t, was)})
			if err == nil || !strings.Contains(err.Error(), message) {
				t.Errorf("got %v, want %q", err, message)
			}
		}
		if !tried {
			t.Errorf("no rule here for %q", message)
		}
	}
	for _, w := range []fake.APIWrite{
		{Operation: "CREATE", Resource: v1.GroupVersion.WithResource("tickets"), Object: object(t, valid())},
		{Operation: "UPDATE", Resource: v1.GroupVersion.WithResource("tickets"), Object: object(t, valid()), Old: object(t, valid())},
		{Operation: "DELETE", Resource: v1.GroupVersion.WithResource("tickets"), Old: object(t, valid())},
		{Operation: "UPDATE", Subresource: "status", Resource: v1.GroupVersion.WithResource("tickets"), Object: object(t, &v1.Ticket{}), Old: object(t, valid())},
		{Operation: "CREATE", Resource: v1.GroupVersion.WithResource("others"), Object: object(t, &v1.Ticket{})},
	} {
		if err := rules(w); err != nil {
			t.Errorf("%s of %s/%s: %v", w.Operation, w.Resource.Resource, w.Subresource, err)
		}
	}
}
