// Package conformance runs the suite of internal/conformance against the real
// kube-apiserver, on which every assertion of it was made. It has tests alone.
package conformance
