// Package tether is a library for Kubernetes controllers that act on something
// outside the cluster.
package tether
