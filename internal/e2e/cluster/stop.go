package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errParentEnded is why this program stops when the one that started it is
// gone: `go run` passes on no signal, and leaves its program to itself.
var errParentEnded = errors.New("the program that started this one has ended")

// A signalled error is a signal as a reason to stop.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return "asked to stop by signal: " + s.signal.String() }

// watchForStop returns a context that ends at the first reason to stop, which is
// its cause, and every signal that comes after that.
func watchForStop() (context.Context, <-chan os.Signal) {
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
					first, ok := s.(syscall.Signal)
					if !ok {
						first = syscall.SIGTERM
					}
					cancel(signalled{first})
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
	return ctx, again
}

// signalOf is what to tell a command that runs when ctx has ended.
func signalOf(ctx context.Context) syscall.Signal {
	var s signalled
	if errors.As(context.Cause(ctx), &s) {
		return s.signal
	}
	return syscall.SIGTERM
}

// codeOf is the status to exit with after a stop that went well: a Ctrl-C is how
// this program is meant to end.
func codeOf(ctx context.Context) int {
	if s := signalOf(ctx); s != syscall.SIGINT {
		return 128 + int(s)
	}
	return 0
}
