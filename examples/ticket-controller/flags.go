package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tetherkube/tether/examples/ticket-controller/commandline"
)

// settings is a command line that was understood.
type settings struct {
	kubeconfig, context string
	namespaces          []string
	bookingURL          string
	bookingTokenFile    string
	workers             int
	leaderElect         string // "", "true" or "false": "" means in a cluster yes, else no
	leaseNamespace      string
	leaseDuration       time.Duration
	healthAddr          string
	metricsAddr         string
	stopTimeout         time.Duration
	settle              time.Duration
	callTimeout         time.Duration
	poll                time.Duration
	bookingRate         float64
	clusterID           string
	formerClusterIDs    []string
	allowAdopt          bool
	verbosity           int
	embedded            string // "", auto, always or never
	dataDir             string // "" for none
	logFormat           string // "", text or json

	// Of subcommands:
	file     string
	takeOver bool
	dryRun   bool
}

var errHelp = errors.New("help was asked for")

// option is one flag. Its environment variable is its name in capitals after
// TICKET_CONTROLLER_, with underscores.
type option struct {
	name, value, help string
	set               func(*settings, string) error
}

// boolean is the value of a flag that may stand alone.
const boolean = "BOOL"

func (o option) env() string { return commandline.Variable("TICKET_CONTROLLER", o.name) }

func text(name, value, help string, at func(*settings) *string) option {
	return option{name, value, help, func(s *settings, v string) error { *at(s) = v; return nil }}
}

func address(name, help string, at func(*settings) *string) option {
	return option{name, "ADDRESS", help, func(s *settings, v string) error { *at(s) = v; return commandline.Address(v) }}
}

func duration(name, help string, at func(*settings) *time.Duration) option {
	return option{name, "DURATION", help, func(s *settings, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("%.40q is not a positive duration: want one as 500ms, 30s or 5m", v)
		}
		*at(s) = d
		return nil
	}}
}

func number(name, help string, least int, at func(*settings) *int) option {
	return option{name, "N", help, func(s *settings, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("%.40q is not a number of at least %d", v, least)
		}
		*at(s) = n
		return nil
	}}
}

// options are in the order of the help text.
func options() []option {
	return []option{
		text("kubeconfig", "FILE", "How to reach the cluster. [$KUBECONFIG, then ~/.kube/config, then the pod's own]", func(s *settings) *string { return &s.kubeconfig }),
		text("context", "NAME", "Which context of the kubeconfig. [its current one]", func(s *settings) *string { return &s.context }),
		{"namespace", "NAME[,NAME…]", "Only Tickets of these namespaces. [all]", setNamespaces},
		{"embedded", "auto|always|never", "Work against an API server and an airline in this process, both fakes: auto where no cluster is configured at all. One that is configured and broken is an error. [auto]", setEmbedded},
		text("data-dir", "DIR", "Keeps what the embedded servers have, for the next run; one run has it at a time. [nothing is kept]", func(s *settings) *string { return &s.dataDir }),
		{"booking-url", "URL", "Where the booking API is, without /v1. Required, but with the embedded API server, where it takes the place of the fake airline.", setBookingURL},
		text("booking-token-file", "FILE", "Holds the booking API's bearer token. Read for each call, so that it may be rotated. Required with booking-url.", func(s *settings) *string { return &s.bookingTokenFile }),
		number("workers", "Tickets worked on at once. [4]", 1, func(s *settings) *int { return &s.workers }),
		{"leader-elect", boolean, "Run only while holding a Lease, so that several replicas may be started; without it, never run two. [in a cluster true, else false]", setLeaderElect},
		text("lease-namespace", "NAME", "Where the Lease is. [the pod's namespace, else default]", func(s *settings) *string { return &s.leaseNamespace }),
		duration("lease-duration", "How long a replica that died keeps the Lease. [15s]", func(s *settings) *time.Duration { return &s.leaseDuration }),
		address("health-addr", "Serves /livez and /readyz, as 127.0.0.1:8080. [none]", func(s *settings) *string { return &s.healthAddr }),
		address("metrics-addr", "Serves /metrics, as 127.0.0.1:9090. [none]", func(s *settings) *string { return &s.metricsAddr }),
		duration("stop-timeout", "How long running work may take at a stop. [20s]", func(s *settings) *time.Duration { return &s.stopTimeout }),
		duration("call-timeout", "How long one call of the booking API may take. [30s]", func(s *settings) *time.Duration { return &s.callTimeout }),
		duration("settle", "Within which a call in the air lands or never does; at least call-timeout. [1m]", func(s *settings) *time.Duration { return &s.settle }),
		{"booking-rate", "N", "How many calls a second the booking API bears at most, over all Tickets: a booking waits for its turn, fewer are made where it asks for fewer, and none while it does not answer. [10]", setBookingRate},
		duration("poll", "How often a booking is looked at although nothing changed. [10m]", func(s *settings) *time.Duration { return &s.poll }),
		{"cluster-id", "ID", "This cluster's id in references. [the UID of namespace kube-system]", func(s *settings, v string) error { return setClusterIDs(v, &s.clusterID) }},
		{"former-cluster-ids", "ID[,ID…]", "What the cluster's id was before: bookings made under it are this cluster's too. [none]", setFormerClusterIDs},
		{"allow-adopt", boolean, "Lets a Ticket take over a booking of the account that is no other Ticket's, by annotation. Whoever may edit Tickets can then have any of them. [false]", func(s *settings, v string) error { return setBool(v, &s.allowAdopt) }},
		{"log-format", "text|json", "How the log is written. [text]", setLogFormat},
		number("v", "How much is logged: 0 what matters, 1 each pass, 2 each step. [0]", 0, func(s *settings) *int { return &s.verbosity }),
	}
}

func setNamespaces(s *settings, v string) error {
	for ns := range strings.SplitSeq(v, ",") {
		ns = strings.TrimSpace(ns)
		if wrong := validation.IsDNS1123Label(ns); len(wrong) > 0 {
			return fmt.Errorf("%.70q is not the name of a namespace: want names as default, separated by commas", ns)
		}
		if slices.Contains(s.namespaces, ns) {
			return fmt.Errorf("%.70q is named twice: name each namespace once", ns)
		}
		s.namespaces = append(s.namespaces, ns)
	}
	return nil
}

var clusterIDForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)

func setClusterIDs(v string, at *string) error {
	if !clusterIDForm.MatchString(v) {
		return fmt.Errorf("%.40q is not an id: want up to 100 letters, digits, dots, dashes and underscores", v)
	}
	*at = v
	return nil
}

func setFormerClusterIDs(s *settings, v string) error {
	for id := range strings.SplitSeq(v, ",") {
		s.formerClusterIDs = append(s.formerClusterIDs, "")
		if err := setClusterIDs(strings.TrimSpace(id), &s.formerClusterIDs[len(s.formerClusterIDs)-1]); err != nil {
			return err
		}
	}
	return nil
}

func setBookingURL(s *settings, v string) error {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%.80q is not a URL as https://api.example.com", v)
	}
	if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1") {
		return fmt.Errorf("%.80q ends in /v1, which is added to it: leave it off", v)
	}
	s.bookingURL = v
	return nil
}

func setBookingRate(s *settings, v string) error {
	rate, err := strconv.ParseFloat(v, 64)
	if err != nil || !(rate >= 0.1 && rate <= 10000) { // NaN is not within
		return fmt.Errorf("%.40q is not a number of calls a second from 0.1 to 10000", v)
	}
	s.bookingRate = rate
	return nil
}

func setLeaderElect(s *settings, v string) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("%.40q is neither true nor false", v)
	}
	s.leaderElect = strconv.FormatBool(b)
	return nil
}

func setBool(v string, at *bool) (err error) {
	if *at, err = strconv.ParseBool(v); err != nil {
		return fmt.Errorf("%.40q is neither true nor false", v)
	}
	return nil
}

func setEmbedded(s *settings, v string) error { return oneOf(&s.embedded, v, auto, always, never) }

func setLogFormat(s *settings, v string) error { return oneOf(&s.logFormat, v, "text", "json") }

func oneOf(at *string, v string, words ...string) error {
	if !slices.Contains(words, v) {
		return fmt.Errorf("%.40q is not known: want one of %s", v, strings.Join(words, ", "))
	}
	*at = v
	return nil
}

// The values of --embedded.
const (
	auto   = "auto"
	always = "always"
	never  = "never"
)

// usageError is a command line that is wrong.
type usageError struct{ error }

// Unwrap is what is wrong.
func (e usageError) Unwrap() error { return e.error }

var (
	errDataDir        = usageError{errors.New("--data-dir is for the embedded servers, and a cluster is configured, which keeps its own: take it off, or say --embedded=always")}
	errNoBookingURL   = usageError{errors.New("--booking-url is missing: say where the booking API is; to have one to play with, run: ticket-controller booking-server; to leave the cluster alone, say --embedded=always")}
	errNoBookingToken = usageError{errors.New("--booking-token-file is missing: name a file that holds the booking API's token; one to play with takes any")}
)

// parse reads the command line of the controller, and for what it does not say the
// environment.
func parse(args []string, getenv func(string) string) (settings, error) {
	s, err := read(options(), args, getenv)
	switch {
	case err != nil:
		return s, err
	case s.dataDir != "" && s.embedded == never:
		return s, errors.New("--data-dir keeps what the embedded servers have, and there are none with --embedded=never: take one of them off")
	case s.bookingURL == "" && (s.embedded == never || s.bookingTokenFile != ""):
		return s, errNoBookingURL
	case s.bookingURL != "" && s.bookingTokenFile == "":
		return s, errNoBookingToken
	}
	return s, s.check()
}

// read reads options from a command line and the environment.
func read(all []option, args []string, getenv func(string) string) (settings, error) {
	var s settings
	given := map[string]bool{}
	fs := flag.NewFlagSet("ticket-controller", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, o := range all {
		define := fs.Func
		if o.value == boolean {
			define = fs.BoolFunc // --leader-elect alone is true
		}
		define(o.name, "", func(v string) error {
			given[o.name] = true
			if v == "" {
				return commandline.ErrEmpty
			}
			return o.set(&s, v)
		})
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return s, errHelp
	case err != nil:
		return s, commandline.Readable(err)
	case fs.NArg() > 0:
		if _, err := strconv.ParseBool(fs.Arg(0)); err == nil {
			return s, fmt.Errorf("%q stands alone: give a flag its value with =, as --leader-elect=%[1]s", fs.Arg(0))
		}
		return s, fmt.Errorf("%.40q is not understood: a subcommand comes first (%s), and flags begin with --", fs.Arg(0), strings.Join(subcommandNames(), ", "))
	}
	for _, o := range all {
		if v := getenv(o.env()); v != "" && !given[o.name] {
			if err := o.set(&s, v); err != nil {
				return s, fmt.Errorf("environment variable %s: %w", o.env(), err)
			}
		}
	}
	return s, nil
}

// check holds one setting against another.
func (s settings) check() error {
	call, settle := cmp.Or(s.callTimeout, 30*time.Second), cmp.Or(s.settle, time.Minute)
	if s.settle != 0 && settle < call {
		return fmt.Errorf("--settle %v is shorter than --call-timeout %v: a call could land after it; make it longer", settle, call)
	}
	return nil
}

func help() string {
	var b strings.Builder
	b.WriteString(`ticket-controller books, changes and cancels flights for Tickets (flights.com/v1).

Usage:
  ticket-controller [flags]                  run the controller
  ticket-controller booking-server [flags]   run a booking API to play with
`)
	for _, c := range subcommands() {
		fmt.Fprintf(&b, "  ticket-controller %-24s %s\n", c.name+" [flags]", c.brief)
	}
	fmt.Fprintf(&b, "  ticket-controller %-24s %s\n", "version", "tell what this program was built from")
	b.WriteString(`
Each flag has an environment variable as well; the flag wins. Ask a subcommand
for its own flags with --help.

Flags:
`)
	describe(&b, options())
	return b.String()
}

func describe(b *strings.Builder, all []option) {
	for _, o := range all {
		value := " " + o.value
		if o.value == boolean {
			value = "[=" + boolean + "]"
		}
		fmt.Fprintf(b, "  --%s%s\n        %s\n        $%s\n", o.name, value, o.help, o.env())
	}
}
