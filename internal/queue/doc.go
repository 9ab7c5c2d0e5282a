// Package queue holds the keys that wait for a pass.
//
// It knows nothing of Kubernetes: a key is any comparable value, and no object
// is ever held. What it guarantees:
//
//   - One pass at a time for a key, whatever the number of workers. What comes
//     for a key during its pass is remembered, merged, and judged when the pass
//     ends.
//   - Three lanes, by who waits: people, retries, background. A lower lane waits
//     for at most a bounded number of pops from higher ones ([Options.Aging]).
//   - Backoff belongs to a key. An event neither shortens nor lengthens it; a
//     [Change] ends it and runs at once, but within a floor: a burst, then one a
//     second, so that two writers that flap a spec cannot make a hot loop.
//   - A hold (a server's Retry-After) is stronger than anything but [Release].
//   - A stalled key rests until a [Change] or a [Related] event, or its poll.
//
// One mutex guards everything; an add, a get and a done cost no allocation once
// the queue has grown to its working size. Time comes from package time, so that
// tests run under testing/synctest.
package queue
