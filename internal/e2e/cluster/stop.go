package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopper knows when this program shall stop, and why.
type stopper struct {
	// ctx ends at the first reason to stop.
	ctx context.Context
	// again has every signal that comes after the first.
	again <-chan os.Signal
}

// errParentEnded is why this program stops when the one that started it is
// gone: `go run` passes on no signal, and leaves its program to itself.
var errParentEnded = fmt.Errorf("the program that started this one has ended")

// A signalled error is a signal as a reason to stop.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return "asked to stop by signal: " + s.String() }

func watchForStop() *stopper {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	again := make(chan os.Signal, 4)
	go func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case s := <-signals:
				if ctx.Err() == nil {
					cancel(signalled{s})
					continue
				}
				select {
				case again <- s:
				default: // enough of them are waiting
				}
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(errParentEnded)
				}
			}
		}
	}()
	return &stopper{ctx: ctx, again: again}
}

// signal is what to tell a command that runs.
func (s *stopper) signal() syscall.Signal {
	if s, ok := context.Cause(s.ctx).(signalled); ok {
		return s.Signal.(syscall.Signal)
	}
	return syscall.SIGTERM
}

// code is the status to exit with after a stop that went well: a Ctrl-C is how
// this program is meant to end.
func (s *stopper) code() int {
	if s.signal() == syscall.SIGINT {
		return 0
	}
	return 128 + int(s.signal())
}
