// Package binaries builds the programs of a real control plane (kube-apiserver,
// etcd and kubectl) from the sources that the Go module proxy serves, once for
// each version, and keeps them in the user's cache directory.
//
// Nothing but a Go toolchain and a module proxy is needed. The first build
// takes some minutes; afterwards Build answers at once. A build that is broken
// off leaves nothing that a later one would take for finished, and any number
// of processes may call Build at the same time: one builds, the others wait.
package binaries
