// Package registry is what the verbs of an API do to the objects of a fake API
// server: create, update, patch, delete, with everything that the real one checks
// and fills in, and what its controllers do afterwards: garbage is collected,
// namespaces are emptied, definitions of custom resources are established.
//
// It knows nothing of HTTP. Every error is one that an API server answers: a
// *errors.StatusError of apimachinery.
package registry
