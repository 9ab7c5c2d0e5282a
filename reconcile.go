package tether

import (
	"context"
	"fmt"
	"time"
)

// Reconciler makes the world as an object says.
//
// Reconcile gets a private copy of the object, which it may edit: what it leaves
// in obj's Status is written once at the end of the pass, if it differs. Edits
// elsewhere have no effect and are answered with a Terminal error. There is one
// pass at a time for an object, and passes of different objects run side by side.
// ctx ends at the pass's deadline, when the lease is lost, and late in a stop; it
// carries the pass's logger ([logr.FromContext]).
//
// The conditions Ready, Reconciling and Stalled, and observedGeneration, are
// written by the library where the type has them, by one controller of a resource:
// the managed one, else the first given to [Run]. On built-in resources it writes
// none, since their status belongs to others.
type Reconciler[T Object] interface {
	Reconcile(ctx context.Context, obj T) (Result, error)
}

// Finalizer is an optional second interface of a [Reconciler]: what must happen
// before an object that is being deleted may go. The library puts a finalizer on
// the object before the first Reconcile, and takes it off after Finalize returned
// Done.
type Finalizer[T Object] interface {
	Finalize(ctx context.Context, obj T) (Result, error)
}

// Result is how a pass ended well: [Done], [After] or [Backoff]. An error wins
// over it.
type Result struct {
	kind            resultKind
	after           time.Duration
	reason, message string
}

type resultKind uint8

const (
	resultDone resultKind = iota
	resultAfter
	resultBackoff
)

// Done says that all is as wanted: the next pass is at the next change, or the
// drift poll. It is the zero Result.
var Done Result

// After asks for a pass d from now, give or take a tenth, and forgets earlier
// failures. A change does not wait for it. A negative d counts as zero.
func After(d time.Duration) Result { return Result{kind: resultAfter, after: max(d, 0)} }

// Backoff says that the work is on its way and has to be seen again, with the
// key's backoff. It is no error. The condition Reconciling is True with this
// reason and message.
func Backoff(reason, message string) Result {
	return Result{kind: resultBackoff, reason: reason, message: message}
}

// String names the result in logs.
func (r Result) String() string {
	switch r.kind {
	case resultAfter:
		return fmt.Sprintf("after %v", r.after)
	case resultBackoff:
		return "backoff: " + r.reason
	}
	return "done"
}
