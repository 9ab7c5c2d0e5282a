// Package openapi holds the tests that keep the booking API's OpenAPI document,
// its fake server and its client together. It is a module of its own so that the
// validator is no dependency of the library.
package openapi
