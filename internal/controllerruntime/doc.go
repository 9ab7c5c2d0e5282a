// Package controllerruntime drives controller-runtime's manager, cache and client,
// with a small controller, against the real kube-apiserver and against
// fake.APIServer: a user's controller need not be written with this library to be
// tested on the fake. It has tests alone, and is a module of its own, so that
// nobody else downloads controller-runtime.
package controllerruntime
