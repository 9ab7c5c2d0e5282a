// Package storage keeps the objects of a fake API server as encoded bytes, under
// one counter of versions, with a bounded history for watches and for lists of
// the past. It knows nothing of HTTP, and looks into no object.
//
// A writer never waits for a reader of the history: it appends one [Event] to the
// table's log, and wakes all who wait by closing one channel. A [Cursor] that has
// fallen behind the log is told so by [ErrExpired]; nothing is kept for it.
//
// What a store has ends with it, unless [Store.Keep] gives every event to someone
// who keeps it, and [Store.Restore] gives it to the next one.
package storage
