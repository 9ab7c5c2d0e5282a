// Package endpoint is the HTTP side of a fake API server: paths, negotiation,
// authentication and authorization, options, errors, lists, watch streams,
// discovery. What the verbs do is package registry's.
//
// Every request becomes an [Exchange], and every one but a watch an [Answer] that
// is complete before its first byte is sent: so whoever stands in between, by
// [Handler.Intercept], can hold it back, spoil it, or put another in its place.
package endpoint
