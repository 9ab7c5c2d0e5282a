// Package pods tests the Ticket operator as pods: install.yaml, as it stands, on a
// whole cluster of two nodes (package realcluster), with what kubelets, the
// scheduler and the controllers do to pods, and what people and failures do to
// nodes.
//
// Nobody enforces the NetworkPolicy there: that it is accepted is all that is
// shown, and the pods reach a booking server at a port that it does not name.
package pods
