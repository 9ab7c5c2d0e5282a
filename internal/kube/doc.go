// Package kube speaks to the API server: the REST verbs of one resource, the
// list-watch behind the Reflector, decoding, the transport that a run owns, the
// Lease, and Events. It decides nothing.
package kube
