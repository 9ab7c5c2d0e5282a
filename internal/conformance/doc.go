// Package conformance is one suite for Kubernetes API servers: it runs against
// the real kube-apiserver, which every assertion was made on, and against
// fake.APIServer, which has to pass it.
//
//	conformance.Run(t, conformance.Server{Config: cfg, User: user})
//
// Each behaviour is a subtest whose name is a sentence. It has a namespace of its
// own, and requests are made over plain HTTP, so that answers are compared as they
// come over the wire: all of the body, but for what differs from one time to the
// next, which [normal] puts a word in the place of.
//
// A server may be given more than once, and need not be empty.
package conformance
