package tether

import "time"

// lost counts an object whose thing outside is over though nobody here ended it.
// Each loss counts once, for a window: where much is lost at once, it is more
// likely that the outside cannot be seen than that all of it is gone.
func (r *managing[T]) lost(is bool) {
	c := r.c
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	if is && !r.memory.lost {
		c.losses[r.key] = time.Now()
	}
	r.memory.lost = is
}

// lossesNow is how many objects were lost within a window.
func (c *controller[T]) lossesNow() int {
	c.memoryMu.Lock()
	defer c.memoryMu.Unlock()
	for key, at := range c.losses {
		if time.Since(at) > c.external.opts.Settle {
			delete(c.losses, key)
		}
	}
	return len(c.losses)
}
