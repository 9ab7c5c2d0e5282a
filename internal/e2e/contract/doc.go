// Package contract holds the library to its contract, line by line, on a real API
// server. Its tests are written as a user would write a controller, and break
// things where a user's cluster would: in the transport (requests that are held,
// refused, or whose answers are lost), and in the stream of a watch (events that
// are late, or never come).
//
// The numbers in comments are those of the lines of docs/contract.md.
package contract
