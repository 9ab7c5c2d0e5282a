package faketest

import (
	"context"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// What apimachinery does about errors that nobody handles, as those of client-go's
// informers, has one clock for the process: it waits until a millisecond has passed
// since the last one. Each bubble begins in the year 2000 again, and where the last
// error was in another bubble, or outside, that wait takes years. Here it is a
// millisecond, always. This is done at import, before anything can read the list.
var _ = func() bool {
	const logging = 1 // the first one logs, and has no clock; the second one waits
	if len(utilruntime.ErrorHandlers) != logging+1 {
		return false // another apimachinery, or somebody's own
	}
	utilruntime.ErrorHandlers[logging] = func(context.Context, error, string, ...any) { time.Sleep(time.Millisecond) }
	return true
}()
