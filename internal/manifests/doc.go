// Package manifests has the tests that hold the operator's manifests and the sample
// Tickets against the schemas of the Kubernetes release that this repository builds,
// against the Ticket's own, and against kube-score, with no cluster and no network but
// the Go module proxy. It is a module of its own, since kube-score wants an older
// Kubernetes than the rest.
package manifests
