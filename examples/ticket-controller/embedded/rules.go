package embedded

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

// The fake API server has no CEL. These are the definition's rules in Go, with the
// definition's messages; a test holds each against the other.
var (
	airport      = regexp.MustCompile(`^[A-Z]{3}$`)
	flightNumber = regexp.MustCompile(`^([A-Z][A-Z0-9]|[0-9][A-Z])[0-9]{1,4}[A-Z]?$`)
	phone        = regexp.MustCompile(`^[+][1-9][0-9]{5,14}$`)
	amount       = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})([.][0-9]{1,4})?$`)
	currency     = regexp.MustCompile(`^[A-Z]{3}$`)
)

// rules refuses a Ticket as a real API server would by the definition.
func rules(w fake.APIWrite) error {
	if w.Resource.GroupResource() != v1.GroupVersion.WithResource("tickets").GroupResource() || w.Object == nil || w.Subresource != "" {
		return nil
	}
	var now, was v1.Ticket
	if !read(w.Object, &now) {
		return nil // the schema says why
	}
	wrong := broken(now.Spec)
	if w.Old != nil && read(w.Old, &was) {
		wrong = append(wrong, changed(was, now)...)
	}
	if len(wrong) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1.GroupVersion.WithKind("Ticket").GroupKind(), w.Object.GetName(), wrong)
}

func read(u *unstructured.Unstructured, t *v1.Ticket) (fits bool) {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t) == nil
}

var spec = field.NewPath("spec")

// broken are the rules about one version of a spec.
func broken(s v1.TicketSpec) (wrong field.ErrorList) {
	must := func(holds bool, path *field.Path, value any, message string) {
		if !holds {
			wrong = append(wrong, field.Invalid(path, value, message))
		}
	}
	must(airport.MatchString(s.From), spec.Child("from"), s.From, "from must be an airport's three-letter IATA code in capitals, such as ICN")
	must(airport.MatchString(s.To), spec.Child("to"), s.To, "to must be an airport's three-letter IATA code in capitals, such as JFK")
	must(s.From != s.To, spec, s.To, "from and to must be two different airports")
	must(s.FlightNumber == "" || flightNumber.MatchString(s.FlightNumber), spec.Child("flightNumber"), s.FlightNumber, "flightNumber must be an airline's code and a number without a space, such as KE81")
	if c, path := s.Contact, spec.Child("contact"); c != nil {
		must(c.Email != "" || c.Phone != "", path, "", "contact needs an email or a phone number; leave contact out to give neither")
		must(c.Phone == "" || phone.MatchString(c.Phone), path.Child("phone"), c.Phone, "phone must begin with + and the country code and have no spaces, such as +82212345678")
	}
	if m, path := s.MaxPrice, spec.Child("maxPrice"); m != nil {
		must(amount.MatchString(m.Amount), path, m.Amount, `maxPrice.amount must be a decimal number in quotes, without sign or thousands separator, such as "250.00"`)
		must(currency.MatchString(m.Currency), path, m.Currency, "maxPrice.currency must be a three-letter ISO 4217 code, such as EUR")
	}
	for i, p := range s.Passengers {
		path := spec.Child("passengers").Index(i)
		must(p.GivenName == strings.TrimSpace(p.GivenName), path.Child("givenName"), p.GivenName, "givenName must not begin or end with a space")
		must(p.FamilyName == strings.TrimSpace(p.FamilyName), path.Child("familyName"), p.FamilyName, "familyName must not begin or end with a space")
	}
	return wrong
}

// changed are the rules about a change.
func changed(was, now v1.Ticket) (wrong field.ErrorList) {
	const another = " cannot change: another route is another ticket. Create a new Ticket, and delete this one to cancel it"
	if was.Spec.From != now.Spec.From {
		wrong = append(wrong, field.Invalid(spec.Child("from"), now.Spec.From, "from"+another))
	}
	if was.Spec.To != now.Spec.To {
		wrong = append(wrong, field.Invalid(spec.Child("to"), now.Spec.To, "to"+another))
	}
	if was.Status.State == v1.BookingFlown && !equality.Semantic.DeepEqual(was.Spec, now.Spec) {
		wrong = append(wrong, field.Invalid(spec, "", "the flight has been flown: a flown ticket's spec does not change. Create a new Ticket for another flight"))
	}
	return wrong
}
