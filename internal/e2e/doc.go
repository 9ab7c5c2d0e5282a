// Package e2e tests Tether and the Ticket controller against a real
// kube-apiserver and etcd. It has tests alone; what they stand on are the
// packages beside it:
//
//   - binaries builds the programs of a control plane from source,
//   - controlplane runs them,
//   - cluster is the command that does so for a person or a script,
//   - process runs the controller under test, and kills it,
//   - proxy breaks connections and requests at a chosen moment.
package e2e
