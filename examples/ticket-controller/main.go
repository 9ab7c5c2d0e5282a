// Command ticket-controller books, changes and cancels flights for Tickets.
//
//	ticket-controller                   runs the controller: on the cluster that is
//	                                    configured, or with none on a fake in this process
//	ticket-controller booking-server    runs a booking API to play with
//	ticket-controller backup            writes all Tickets into a file
//	ticket-controller restore           makes the Tickets of such a file
//	ticket-controller orphans           lists bookings that no Ticket stands for
//	ticket-controller version           tells what it was built from
//	ticket-controller --help            tells the flags
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/examples/ticket-controller/bookingserver"
)

func main() {
	var last lastActs
	ctx, stop := onSignal(context.Background(), func(code int) {
		_, _ = fmt.Fprintln(os.Stderr, "ticket-controller: a second signal: it ends at once; what a running call did is found at the next start")
		last.do()
		os.Exit(code)
	})
	code := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv, last.add)
	stop()
	os.Exit(code)
}

// lastActs are what is to be done where the program ends in the middle of ending. It
// is safe for concurrent use.
type lastActs struct {
	mu   sync.Mutex // guards acts
	acts []func()
}

func (l *lastActs) add(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acts = append(l.acts, f)
}

func (l *lastActs) do() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.acts {
		f()
	}
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
// for a failure, 2 for a wrong command line. atExit is as for control.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string, atExit func(func())) int {
	if len(args) > 0 && args[0] == "booking-server" {
		return bookingserver.Run(ctx, args[1:], stdout, stderr, getenv)
	}
	if len(args) > 0 && args[0] == "version" {
		if len(args) > 1 {
			return tell(usageError{fmt.Errorf("version: %.40q is not understood: it takes no arguments", args[1])}, "ticket-controller", stderr)
		}
		_, _ = fmt.Fprint(stdout, versions())
		return 0
	}
	if c, ok := subcommand(args); ok {
		return c.dispatch(ctx, args[1:], stdout, stderr, getenv)
	}
	if len(args) > 0 && args[0] == "help" {
		args = []string{"--help"}
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
	return tell(control(ctx, s, stdout, stderr, getenv, atExit), "ticket-controller", stderr)
}

// tell says what went wrong, and makes an exit status of it.
func tell(err error, program string, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(usageError)):
		_, _ = fmt.Fprintf(stderr, "%s: %v\nRun %[1]s --help for the flags.\n", program, err)
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v%s\n", program, err, below(err))
	return 1
}

// below is why the booking API was not reached, which the booking client's error does
// not say by itself.
func below(err error) string {
	if e := (*booking.Error)(nil); errors.As(err, &e) && e.Unwrap() != nil {
		return ": " + e.Unwrap().Error()
	}
	return ""
}

// namingClusterID adds this program's own name for what the library asks for.
func namingClusterID(err error) error {
	if apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), "ManageOptions.ClusterID") {
		return fmt.Errorf("%w, which is --cluster-id here", err)
	}
	return err
}
