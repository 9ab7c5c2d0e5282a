// Package bookingserver is the booking-server subcommand of the ticket
// controller: the fake booking API as a program, to play with or to develop
// against.
package bookingserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// Exit codes of Run.
const (
	exitOK    = 0
	exitError = 1 // it could not run
	exitUsage = 2 // the command line is wrong
)

// Run serves until ctx ends, and answers the exit code. args are those after the
// subcommand's name. The address and lines to try go to stdout, the log of
// requests and errors to stderr. getenv is where flags that are not given are
// looked for.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	s, err := parse(args, getenv)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, help())
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "booking-server: %v\nRun with --help to see every flag.\n", err)
		return exitUsage
	}
	if err := serve(ctx, s, stdout, slog.New(slog.NewTextHandler(stderr, nil))); err != nil {
		fmt.Fprintf(stderr, "booking-server: %v\n", err)
		return exitError
	}
	return exitOK
}

func serve(ctx context.Context, s settings, stdout io.Writer, log *slog.Logger) error {
	s.options.Log = func(e fake.BookingEntry) { logRequest(log, e) }
	if s.tokenFile != "" {
		source := booking.TokenFile(s.tokenFile)
		if _, err := source(ctx); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		s.options.Authenticate = authenticate(source, log)
	}
	server := fake.NewBookingServer(s.options)
	defer server.Close()
	for _, j := range s.soldOut {
		server.SellOut(j.from, j.to, j.date, true)
	}
	for _, f := range s.faults {
		server.Inject(f)
	}
	if err := server.Start(s.listen); err != nil {
		return fmt.Errorf("--listen %s: %w; give another address, as 127.0.0.1:0 for any free port", s.listen, err)
	}
	fmt.Fprint(stdout, banner(server, s))
	<-ctx.Done()
	log.Info("stopped")
	return nil
}

// authenticate takes one token, read again for each request so that it can be
// rotated.
func authenticate(source booking.TokenSource, log *slog.Logger) func(string) (string, bool) {
	return func(token string) (string, bool) {
		want, err := source(context.Background())
		if err != nil {
			log.Error("every token is refused", "err", err)
			return "", false
		}
		return "caller", subtle.ConstantTimeCompare([]byte(token), []byte(want)) == 1
	}
}

// logRequest leaves out what is empty, so that a line says what is special.
func logRequest(log *slog.Logger, e fake.BookingEntry) {
	name := string(e.Op)
	if name == "" {
		name = e.Method
	}
	attrs := []slog.Attr{slog.Int("seq", e.Seq), slog.Int("status", e.Status)}
	for _, a := range [][2]string{
		{"caller", e.Caller},
		{"reference", e.Reference},
		{"key", e.Key},
		{"booking", e.BookingID},
		{"problem", string(e.Problem)},
	} {
		if a[1] != "" {
			attrs = append(attrs, slog.String(a[0], a[1]))
		}
	}
	for _, a := range []struct {
		name string
		is   bool
	}{{"effect", e.Effect}, {"replayed", e.Replayed}, {"landed_late", e.Late}, {"cut", e.Status == 0 && !e.Late}} {
		if a.is {
			attrs = append(attrs, slog.Bool(a.name, true))
		}
	}
	if len(e.Faults) > 0 {
		attrs = append(attrs, slog.Any("faults", e.Faults))
	}
	attrs = append(attrs, slog.Duration("took", time.Since(e.Time).Round(time.Microsecond)))
	level := slog.LevelInfo
	if e.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	log.LogAttrs(context.Background(), level, name, attrs...)
}

func banner(server *fake.BookingServer, s settings) string {
	url := server.URL()
	auth := `Authorization: Bearer me`
	who := "Any bearer token is taken; each is a caller with bookings of its own."
	if s.tokenFile != "" {
		auth = `Authorization: Bearer $(cat ` + quote(s.tokenFile) + `)`
		who = "Only the token in " + s.tokenFile + " is taken. The file is read for each request."
	}
	uniqueness := s.options.ReferenceUniqueness
	var b strings.Builder
	fmt.Fprintf(&b, "Booking server on %s (seed %d, references unique: %s). Ctrl-C stops it.\n%s\n", url, s.options.Seed, uniqueness, who)
	for _, f := range s.faultSpecs {
		fmt.Fprintf(&b, "Fault: %s\n", f)
	}
	fmt.Fprintf(&b, `
Book, look, change, cancel:

  curl -i %[1]s/v1/bookings -H "%[2]s" -H "Idempotency-Key: first" -H "Content-Type: application/json" -d '%[3]s'
  curl -s %[1]s/v1/bookings?client_reference=my-first -H "%[2]s"
  curl -i -X PATCH %[1]s/v1/bookings/%[4]s -H "%[2]s" -H "Idempotency-Key: second" -H 'If-Match: *' -H "Content-Type: application/json" -d '{"cabin":"business"}'
  curl -i -X POST %[1]s/v1/bookings/%[4]s/cancel -H "%[2]s" -H "Idempotency-Key: third" -H 'If-Match: *'

Nothing can be booked under a reference any more after

  curl -s -X POST %[1]s/v1/references/my-first/close -H "%[2]s" -H "Idempotency-Key: fourth"

Put the id that the first line answers in place of %[4]s.

`, url, auth, exampleBody, "BOOKING_ID")
	return b.String()
}

const exampleBody = `{"client_reference":"my-first","from":"ICN","to":"JFK","departure_date":"2027-05-01","passengers":[{"given_name":"Test","family_name":"Passenger"}]}`

// quote makes one word for a shell within double quotes.
func quote(path string) string {
	return `'` + strings.ReplaceAll(path, `'`, `'\''`) + `'`
}
