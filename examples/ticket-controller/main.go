// Command ticket-controller books, changes and cancels flights for Tickets.
//
//	ticket-controller                   runs the controller: on the cluster that is
//	                                    configured, or with none on a fake in this process
//	ticket-controller booking-server    runs a booking API to play with
//	ticket-controller --help            tells the flags
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tetherkube/tether/examples/ticket-controller/bookingserver"
)

func main() {
	ctx, stop := onSignal(context.Background(), os.Exit)
	code := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

// onSignal ends the context at the first INT or TERM, and the process at the
// second.
func onSignal(parent context.Context, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		exit(1)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// dispatch runs the subcommand, and tells the exit status: 0 for a clean end, 1
// for a failure, 2 for a wrong command line.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	if len(args) > 0 && args[0] == "booking-server" {
		return bookingserver.Run(ctx, args[1:], stdout, stderr, getenv)
	}
	s, err := parse(args, getenv)
	switch {
	case errors.Is(err, errHelp):
		_, _ = fmt.Fprint(stdout, help())
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "ticket-controller: %v\nRun ticket-controller --help for the flags.\n", err)
		return 2
	}
	err = control(ctx, s, stdout, stderr, getenv)
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		_, _ = fmt.Fprintf(stderr, "ticket-controller: %v\nRun ticket-controller --help for the flags.\n", err)
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "ticket-controller: %v\n", err)
	return 1
}
