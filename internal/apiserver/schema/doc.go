// Package schema is what an API server does by the structural schema of a custom
// resource: it finds fault with the schema itself, removes what the schema does
// not know from objects, fills in defaults, and validates, in the words of
// kube-apiserver 1.37.
//
//	s, err := schema.New(openAPIV3Schema) // of one version of a CRD
//	unknown := s.Prune(obj)               // "spec.foo": said by field validation
//	s.Default(obj)
//	errs := s.Validate(obj)               // or ValidateUpdate(obj, old)
//
// All of it is pure. A [Structural] does not change after [New], and may be used
// concurrently; the objects given are changed in place, and nothing of the
// schema's is shared with them.
//
// There is no CEL: x-kubernetes-validations are kept for whoever reads the
// schema, and never evaluated.
//
// What a server needs beyond this stands elsewhere: the definitions for
// server-side apply and `kubectl explain`, in which x-kubernetes-list-type and
// the like survive, are made by package openapi from [Structural.OpenAPI].
// Validation of an object's own metadata is the server's, since it is the same
// for every type; that of embedded resources is here.
package schema
