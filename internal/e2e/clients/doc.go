// Package clients drives unmodified clients, kubectl and client-go, against the
// real kube-apiserver and against fake.APIServer, and compares what they say.
// It has tests alone.
package clients
