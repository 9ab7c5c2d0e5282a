package fake

import "time"

// keyState is what is known of an idempotency key when a request comes with it.
type keyState int

const (
	keyNew     keyState = iota // now running, until finish or release
	keyRunning                 // an earlier request with it still runs
	keyReused                  // it stands for other content
	keyKept                    // its answer is kept
)

// keeper keeps first answers under idempotency keys. Its methods want the lock
// of its owner.
type keeper[A any] struct {
	lifetime time.Duration // from the answer on; 0 = for ever
	entries  map[string]*kept[A]
	// order has the answers that are kept, oldest first, so that what has outlived its
	// time can be dropped without a walk over all. After a restore an older answer of
	// a key may stand before the one in entries.
	order []*kept[A]
}

type kept[A any] struct {
	key     string
	content [32]byte
	done    bool
	at      time.Time // of the answer; set if done
	answer  A         // set if done
}

// begin tells what is known of the key and, if nothing is, takes it.
func (k *keeper[A]) begin(key string, content [32]byte, now time.Time) (keyState, A) {
	k.expire(now)
	var none A
	e, ok := k.entries[key]
	switch {
	case !ok:
		if k.entries == nil {
			k.entries = map[string]*kept[A]{}
		}
		k.entries[key] = &kept[A]{key: key, content: content}
		return keyNew, none
	case e.content != content:
		return keyReused, none
	case !e.done:
		return keyRunning, none
	}
	return keyKept, e.answer
}

// finish keeps the answer under a key that begin took.
func (k *keeper[A]) finish(key string, answer A, now time.Time) {
	e := k.entries[key]
	if e == nil || e.done {
		return // forgotten meanwhile
	}
	e.done, e.at, e.answer = true, now, answer
	k.order = append(k.order, e)
}

// restore has an answer that another keeper kept.
func (k *keeper[A]) restore(key string, content [32]byte, answer A, at time.Time) {
	if k.entries == nil {
		k.entries = map[string]*kept[A]{}
	}
	k.entries[key] = &kept[A]{key: key, content: content}
	k.finish(key, answer, at)
}

// release gives back a key that begin took, as if it had never been used.
func (k *keeper[A]) release(key string) {
	if e := k.entries[key]; e != nil && !e.done {
		delete(k.entries, key)
	}
}

// forget drops every kept answer. Keys that run stay.
func (k *keeper[A]) forget() {
	for _, e := range k.order {
		k.drop(e)
	}
	k.order = nil
}

// drop forgets an answer, unless its key has been used again since.
func (k *keeper[A]) drop(e *kept[A]) {
	if k.entries[e.key] == e {
		delete(k.entries, e.key)
	}
}

func (k *keeper[A]) expire(now time.Time) {
	if k.lifetime == 0 {
		return
	}
	n := 0
	for n < len(k.order) && now.Sub(k.order[n].at) >= k.lifetime {
		k.drop(k.order[n])
		n++
	}
	k.order = k.order[n:]
}
