package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ticket is a flight that is booked while the object stands: creating the
// Ticket books it, a change of its spec changes the booking, and deleting the
// Ticket cancels it, unless its deletion policy says otherwise.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=tickets,singular=ticket,scope=Namespaced,shortName=tk,categories=travel
// +kubebuilder:selectablefield:JSONPath=`.spec.from`
// +kubebuilder:selectablefield:JSONPath=`.spec.to`
// +kubebuilder:selectablefield:JSONPath=`.spec.departureDate`
// +kubebuilder:selectablefield:JSONPath=`.spec.cabin`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:selectablefield:JSONPath=`.status.bookingID`
// +kubebuilder:selectablefield:JSONPath=`.status.recordLocator`
// +kubebuilder:printcolumn:name=From,type=string,JSONPath=`.spec.from`
// +kubebuilder:printcolumn:name=To,type=string,JSONPath=`.spec.to`
// +kubebuilder:printcolumn:name=Date,type=string,JSONPath=`.spec.departureDate`
// +kubebuilder:printcolumn:name=State,type=string,JSONPath=`.status.state`,description="How the booking stands at the airline"
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the booking is as spec wants it"
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is, or is not"
// +kubebuilder:printcolumn:name=Locator,type=string,JSONPath=`.status.recordLocator`,description="The code to give at the airline's desk"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=Flight,type=string,priority=1,JSONPath=`.status.flight.number`
// +kubebuilder:printcolumn:name=Departure,type=string,priority=1,JSONPath=`.status.flight.departure`
// +kubebuilder:printcolumn:name=Price,type=string,priority=1,JSONPath=`.status.price.amount`
// +kubebuilder:printcolumn:name=Currency,type=string,priority=1,JSONPath=`.status.price.currency`
// +kubebuilder:printcolumn:name=Message,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.state) || oldSelf.status.state != 'flown' || self.spec == oldSelf.spec",fieldPath=".spec",message="the flight has been flown: a flown ticket's spec does not change. Create a new Ticket for another flight"
type Ticket struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's name, labels, annotations and the like.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is wanted: the flight, who flies, and what may be done
	// to get and keep it.
	// +required
	Spec TicketSpec `json:"spec"`

	// status says what stands at the airline. It is rebuilt from there, so
	// that nothing is lost when it is.
	// +optional
	Status TicketStatus `json:"status,omitzero"`
}

// TicketSpec is what is wanted.
//
// +kubebuilder:validation:XValidation:rule="self.from != self.to",message="from and to must be two different airports"
type TicketSpec struct {
	// from is the airport of departure, as its three-letter IATA code, such
	// as ICN. It cannot change: another route is another ticket.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="from must be an airport's three-letter IATA code in capitals, such as ICN"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="from cannot change: another route is another ticket. Create a new Ticket, and delete this one to cancel it"
	From string `json:"from"`

	// to is the airport of arrival, as its three-letter IATA code, such as
	// JFK. It cannot change: another route is another ticket.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="to must be an airport's three-letter IATA code in capitals, such as JFK"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="to cannot change: another route is another ticket. Create a new Ticket, and delete this one to cancel it"
	To string `json:"to"`

	// departureDate is the day of departure as YYYY-MM-DD, in the local time
	// of the airport of departure. A change moves the booking to the new day;
	// where the fare forbids that, the booking is replaced by a new one.
	// +required
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:MinLength=10
	// +kubebuilder:validation:MaxLength=10
	DepartureDate string `json:"departureDate"`

	// flightNumber asks for one flight of that day, such as KE81. Without it
	// any flight of the day will do. A change is carried out like one of
	// departureDate.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:Pattern=`^([A-Z][A-Z0-9]|[0-9][A-Z])[0-9]{1,4}[A-Z]?$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Z][A-Z0-9]|[0-9][A-Z])[0-9]{1,4}[A-Z]?$')",message="flightNumber must be an airline's code and a number without a space, such as KE81"
	FlightNumber string `json:"flightNumber,omitempty"`

	// cabin is the class of travel: economy, premium, business or first. A
	// change is carried out like one of departureDate.
	// +optional
	// +kubebuilder:default=economy
	Cabin Cabin `json:"cabin,omitempty"`

	// contact is where the airline reaches the passengers about this booking.
	// A change is carried out in place.
	// +optional
	Contact *Contact `json:"contact,omitempty"`

	// passengers are the people who fly, one to nine. A change of any of them
	// replaces the booking, since a ticket is not transferable.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Passengers []Passenger `json:"passengers"`

	// maxPrice is the most that the whole booking may cost. Without it any
	// price is accepted. A change does not touch a booking that stands; it
	// binds the next one, and the next change.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.amount.matches('^(0|[1-9][0-9]{0,9})([.][0-9]{1,4})?$')",message="maxPrice.amount must be a decimal number in quotes, without sign or thousands separator, such as \"250.00\""
	// +kubebuilder:validation:XValidation:rule="self.currency.matches('^[A-Z]{3}$')",message="maxPrice.currency must be a three-letter ISO 4217 code, such as EUR"
	MaxPrice *Money `json:"maxPrice,omitempty"`

	// onLost says what to do when the booking is gone, though nobody here
	// cancelled it: Report says so in status and waits for a person; Recreate
	// books again.
	// +optional
	// +kubebuilder:default=Report
	OnLost OnLost `json:"onLost,omitempty"`

	// deletionPolicy says what becomes of the booking when the Ticket is
	// deleted: Cancel cancels it, and the Ticket goes once that is done;
	// Retain leaves it as it is.
	// +optional
	// +kubebuilder:default=Cancel
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// replace says in which order a booking is replaced that cannot be
	// changed in place: CreateFirst books the new one before it cancels the
	// old one, so that there is always a seat; DeleteFirst cancels the old
	// one first, so that nothing is paid twice at once.
	// +optional
	// +kubebuilder:default=CreateFirst
	Replace Replace `json:"replace,omitempty"`
}

// Cabin is a class of travel.
//
// +kubebuilder:validation:Enum=economy;premium;business;first
type Cabin string

// The classes of travel.
const (
	CabinEconomy  Cabin = "economy"
	CabinPremium  Cabin = "premium"
	CabinBusiness Cabin = "business"
	CabinFirst    Cabin = "first"
)

// OnLost says what to do about a booking that is gone.
//
// +kubebuilder:validation:Enum=Report;Recreate
type OnLost string

// What to do about a booking that is gone: tell, or book again.
const (
	OnLostReport   OnLost = "Report"
	OnLostRecreate OnLost = "Recreate"
)

// DeletionPolicy says what becomes of the booking when the Ticket is deleted.
//
// +kubebuilder:validation:Enum=Cancel;Retain
type DeletionPolicy string

// What becomes of the booking: it is cancelled, or it stays.
const (
	DeletionPolicyCancel DeletionPolicy = "Cancel"
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// Replace is the order in which a booking is replaced.
//
// +kubebuilder:validation:Enum=CreateFirst;DeleteFirst
type Replace string

// The orders of replacing: the new booking first, or the cancellation first.
const (
	ReplaceCreateFirst Replace = "CreateFirst"
	ReplaceDeleteFirst Replace = "DeleteFirst"
)

// Contact is where the airline reaches the passengers.
//
// +kubebuilder:validation:XValidation:rule="has(self.email) || has(self.phone)",message="contact needs an email or a phone number; leave contact out to give neither"
type Contact struct {
	// email is an address for notices about the booking.
	// +optional
	// +kubebuilder:validation:Format=email
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=254
	Email string `json:"email,omitempty"`

	// phone is a number for notices about the booking, with country code and
	// without spaces, such as +82212345678.
	// +optional
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^\+[1-9][0-9]{5,14}$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+][1-9][0-9]{5,14}$')",message="phone must begin with + and the country code and have no spaces, such as +82212345678"
	Phone string `json:"phone,omitempty"`
}

// Passenger is one person who flies.
type Passenger struct {
	// givenName is the passenger's given name, as the travel document has it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^\S(.*\S)?$`
	// +kubebuilder:validation:XValidation:rule="self == self.trim()",message="givenName must not begin or end with a space"
	GivenName string `json:"givenName"`

	// familyName is the passenger's family name, as the travel document has
	// it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^\S(.*\S)?$`
	// +kubebuilder:validation:XValidation:rule="self == self.trim()",message="familyName must not begin or end with a space"
	FamilyName string `json:"familyName"`

	// dateOfBirth is the passenger's date of birth as YYYY-MM-DD, where the
	// airline asks for it.
	// +optional
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:MinLength=10
	// +kubebuilder:validation:MaxLength=10
	DateOfBirth string `json:"dateOfBirth,omitempty"`
}

// Money is an amount in one currency.
type Money struct {
	// amount is a decimal number in quotes, such as "250.00".
	// +required
	// +kubebuilder:validation:MaxLength=32
	Amount string `json:"amount"`

	// currency is a three-letter ISO 4217 code, such as EUR.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Currency string `json:"currency"`
}
