// Package e2e tests Tether and the Ticket controller against a real
// kube-apiserver and etcd. It has tests alone; what they stand on are the
// packages beside it:
//
//   - binaries builds the programs of a control plane from source,
//   - controlplane runs them,
//   - cluster is the command that does so for a person or a script,
//   - process runs the controller under test, and kills it,
//   - proxy breaks connections and requests at a chosen moment.
//
// A test of the controller sets a stage: a namespace of its own, a booking server,
// and proxies before both servers, whose journal tells what went over the wire. It
// starts the built program on a route through them, does what people do, breaks
// what it is about, watches until the Ticket is as wanted, and asks the booking
// server what took effect. Where the tests run with the race detector, so does the
// program.
//
// The crash matrix, matrix_test.go, does that at every request of every kind of
// life, with everything that may happen there. With -v it prints a table of what
// came of it; -slow adds the rows in which a call lands 30 s late.
package e2e
