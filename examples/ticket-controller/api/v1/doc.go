// Package v1 has the types of flights.com/v1: the Ticket, a flight that is
// booked for as long as the object stands.
//
// The package holds types alone and imports nothing but apimachinery, so that
// other programs can read and write Tickets without a controller's
// dependencies. It registers nothing anywhere: a program that wants a scheme
// adds GroupVersion and the types to its own.
//
// The CustomResourceDefinition at deploy/crd.yaml and the deep copies are made
// from these types. What stands above a field here is what `kubectl explain`
// shows, and the markers there are what the API server enforces. Run
// `go generate ./examples/ticket-controller/api/v1` after a change.
//
// +kubebuilder:object:generate=true
// +groupName=flights.com
package v1

//go:generate go -C ../../../../internal/tools run ./generate

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the API group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "flights.com", Version: "v1"}
