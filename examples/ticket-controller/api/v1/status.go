package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TicketStatus is what stands at the airline, as last seen. The controller
// alone writes it.
type TicketStatus struct {
	// observedGeneration is the metadata.generation that the rest of status
	// is about. While it is lower, the last change of spec has not been acted
	// on yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say how far the booking is from what spec wants. Ready is
	// always there once the controller has seen the Ticket: True means booked
	// as wanted. Reconciling is there while it works on it, Stalled while
	// only a change of the Ticket can help.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// bookingID is the airline's own id of the booking that this Ticket
	// stands for.
	// +optional
	BookingID string `json:"bookingID,omitempty"`

	// recordLocator is the short code under which the airline's desk finds
	// the booking.
	// +optional
	RecordLocator string `json:"recordLocator,omitempty"`

	// state is how the booking stands at the airline: pending, confirmed,
	// cancelled, failed or flown, or not-found where the airline does not
	// know it any more. Others may come; read them as unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State BookingState `json:"state,omitempty"`

	// flight is the flight that was booked.
	// +optional
	Flight *Flight `json:"flight,omitempty"`

	// seats are the seats that were given, in the order of spec.passengers,
	// such as 31A. Empty until the airline has given any.
	// +optional
	// +listType=atomic
	Seats []string `json:"seats,omitempty"`

	// price is what the whole booking costs.
	// +optional
	Price *Money `json:"price,omitempty"`

	// bookedAt is when the airline made the booking.
	// +optional
	BookedAt *metav1.Time `json:"bookedAt,omitempty"`

	// lastObservedAt is when the airline was last seen to say what the rest
	// of status says. It is renewed once an hour while nothing changes.
	// +optional
	LastObservedAt *metav1.Time `json:"lastObservedAt,omitempty"`
}

// BookingState is how a booking stands at the airline.
type BookingState string

// The states of a booking. A pending one becomes confirmed or failed; a
// confirmed one becomes flown or cancelled.
const (
	BookingPending   BookingState = "pending"
	BookingConfirmed BookingState = "confirmed"
	BookingCancelled BookingState = "cancelled"
	BookingFailed    BookingState = "failed"
	BookingFlown     BookingState = "flown"

	// BookingNotFound is a booking that stood, and that the airline does not know.
	BookingNotFound BookingState = "not-found"
)

// Flight is one scheduled flight.
type Flight struct {
	// number is the flight's number, such as KE81.
	// +optional
	Number string `json:"number,omitempty"`

	// departure is when it leaves, as the airline's schedule has it.
	// +optional
	Departure *metav1.Time `json:"departure,omitempty"`
}
