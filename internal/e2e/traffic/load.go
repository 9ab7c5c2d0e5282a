package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Load makes, changes and deletes Tickets until it is stopped.
type Load struct {
	tickets    Tickets
	least      int
	enough     chan struct{} // closed by Stop
	ended      chan error
	left, made int // until ended, the load's own
}

// every is how long it is from one Ticket to the next.
const every = 100 * time.Millisecond

// Load starts one, which owes a Stop, and makes as many Tickets as least at the least,
// unless ctx ends before. Every Ticket is changed when the next one is
// there, which may be before or after it was booked, every fifth is moved to another day
// as well, and three of four are deleted a little later. What is under way when it ends is
// not cut in the middle.
func (t Tickets) Load(ctx context.Context, least int) *Load {
	l := &Load{tickets: t, least: least, enough: make(chan struct{}), ended: make(chan error, 1)}
	go func() { l.ended <- l.run(ctx) }()
	return l
}

func (l *Load) run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		enough := l.enough
		if l.made < l.least {
			enough = nil
		}
		select {
		case <-tick.C:
		case <-enough:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := l.step(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

func (l *Load) step(ctx context.Context) error {
	name := func(n int) string { return fmt.Sprintf("t%d", n) }
	n, t := l.made, l.tickets
	err := t.Create(ctx, name(n))
	l.made, l.left = n+1, l.left+1
	if n >= 1 {
		err = errors.Join(err, t.Change(ctx, name(n-1), name(n)))
	}
	if n >= 5 && n%5 == 0 {
		err = errors.Join(err, t.Move(ctx, name(n-5), "2027-06-01"))
	}
	if gone := n - 8; gone >= 0 && gone%4 > 0 {
		err = errors.Join(err, t.Remove(ctx, name(gone)))
		l.left--
	}
	return err
}

// Stop ends it, and tells how many Tickets it made and left. It fails where a request
// of it did.
func (l *Load) Stop() (left, made int, err error) {
	close(l.enough)
	err = <-l.ended
	return l.left, l.made, err
}
