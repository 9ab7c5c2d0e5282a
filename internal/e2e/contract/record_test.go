package contract

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// record keeps what happened, in order, and lets tests wait for what is yet to
// happen. The zero value is ready for use, by any number of goroutines.
type record[E any] struct {
	// mu guards what follows.
	mu      sync.Mutex
	entries []E
	more    chan struct{} // closed, and made anew, with each entry; nil before the first wait
}

func (r *record[E]) add(e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// all are the entries so far for which match is true; a nil match means all.
func (r *record[E]) all(match func(E) bool) []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	return matching(r.entries, match)
}

func matching[E any](entries []E, match func(E) bool) []E {
	if match == nil {
		return slices.Clone(entries)
	}
	var found []E
	for _, e := range entries {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// await waits until n entries match, and returns those that do by then.
func (r *record[E]) await(t *testing.T, n int, what string, match func(E) bool) []E {
	t.Helper()
	ctx, cancel := patience(t, what)
	defer cancel()
	for {
		r.mu.Lock()
		found := matching(r.entries, match)
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		if len(found) >= n {
			return found
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%v; %d of %d", context.Cause(ctx), len(found), n)
		}
	}
}

// nth waits for the n-th match, from 1.
func (r *record[E]) nth(t *testing.T, n int, what string, match func(E) bool) E {
	t.Helper()
	return r.await(t, n, what, match)[n-1]
}

// patienceTime bounds every wait: what is waited for comes within seconds, also on
// a machine that has much else to do, or never.
const patienceTime = 40 * time.Second

// patience bounds one wait, and names what was waited for.
func patience(t *testing.T, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), patienceTime, fmt.Errorf("%s did not come within %v", what, patienceTime))
}

// received waits for something on a channel.
func received[E any](t *testing.T, ch <-chan E, what string) E {
	t.Helper()
	ctx, cancel := patience(t, what)
	defer cancel()
	select {
	case e := <-ch:
		return e
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
		panic("not reached")
	}
}
