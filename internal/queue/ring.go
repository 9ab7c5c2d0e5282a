package queue

// ring is a growing FIFO of entries. A slot whose seq is not its entry's is
// stale: the entry went to another lane, or was forgotten.
type ring[K comparable] struct {
	slots      []slot[K]
	head, size int
	live       int // slots that are not stale
}

type slot[K comparable] struct {
	e   *entry[K]
	seq uint32
}

func (r *ring[K]) push(e *entry[K]) {
	if r.size == len(r.slots) {
		grown := make([]slot[K], max(16, 2*len(r.slots)))
		for i := range r.size {
			grown[i] = r.slots[(r.head+i)%len(r.slots)]
		}
		r.slots, r.head = grown, 0
	}
	r.slots[(r.head+r.size)%len(r.slots)] = slot[K]{e, e.seq}
	r.size++
	r.live++
}

// pop takes the oldest live entry; the caller knows that there is one.
func (r *ring[K]) pop() *entry[K] {
	for {
		s := r.slots[r.head]
		r.slots[r.head] = slot[K]{}
		r.head = (r.head + 1) % len(r.slots)
		r.size--
		if s.e.seq == s.seq && s.e.state == ready {
			r.live--
			return s.e
		}
	}
}
