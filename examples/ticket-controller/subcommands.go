package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

// command is a subcommand that works on a cluster's Tickets and ends.
type command struct {
	name, brief string
	about       string
	flags       []string // of the controller's own
	own         []option
	booking     func(settings) bool // whether it calls the booking API
	run         func(d *desk, ctx context.Context, stdout io.Writer) error
}

var reaching = []string{"kubeconfig", "context", "namespace", "cluster-id", "former-cluster-ids"}

func fileOption(help string) option {
	return text("file", "FILE", help, func(s *settings) *string { return &s.file })
}

func flagged(name, help string, at func(*settings) *bool) option {
	return option{name, boolean, help, func(s *settings, v string) error { return setBool(v, at(s)) }}
}

func subcommands() []command {
	return []command{
		{
			name: "backup", brief: "write all Tickets into a file",
			about: `Writes all Tickets, with their claims and status, into one file: versioned,
checksummed, and readable by its owner alone. It calls no booking API, and holds no
token. A file that stands there is replaced when the new one is whole.`,
			flags: reaching,
			own:   []option{fileOption("Where to write. Required.")},
			run:   (*desk).backup,
		},
		{
			name: "restore", brief: "make the Tickets of such a file",
			about: `Makes the Tickets of a file that backup has written, where they are not there.
In the cluster that they are from, the controller finds their bookings and books
nothing twice. In another one they stand Stalled, and nothing is booked, since the
other cluster may still run; with --take-over their bookings are put under the new
Tickets' references, and the other cluster touches them no more. It may be run
again after it was cut short, and goes on.`,
			flags: slices.Concat(reaching, []string{"booking-url", "booking-token-file", "call-timeout", "workers"}),
			own: []option{
				fileOption("What backup has written. Required."),
				flagged("take-over", "Take over bookings of another cluster. Needs the booking API. [false]", func(s *settings) *bool { return &s.takeOver }),
				flagged("dry-run", "Print what would be done, and do nothing; the booking API is not asked. [false]", func(s *settings) *bool { return &s.dryRun }),
			},
			booking: func(s settings) bool { return s.takeOver && !s.dryRun },
			run:     (*desk).restore,
		},
		{
			name: "orphans", brief: "list bookings that no Ticket stands for",
			about: `Lists the bookings of this cluster that no Ticket claims: after an etcd was
restored from an older snapshot, say, or where a Ticket was deleted that retains its
booking. It cancels none. To have one again, create a Ticket for its flight and
adopt it; to be rid of it, cancel it at the booking API.`,
			flags:   slices.Concat(slices.DeleteFunc(slices.Clone(reaching), func(f string) bool { return f == "namespace" }), []string{"booking-url", "booking-token-file", "call-timeout"}),
			booking: func(settings) bool { return true },
			run:     (*desk).orphans,
		},
	}
}

func subcommandNames() []string {
	names := []string{"booking-server"}
	for _, c := range subcommands() {
		names = append(names, c.name)
	}
	return names
}

// subcommand is the one that the command line names, if any.
func subcommand(args []string) (command, bool) {
	all := subcommands()
	i := slices.IndexFunc(all, func(c command) bool { return len(args) > 0 && args[0] == c.name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func (c command) options() []option {
	all := slices.Clone(c.own)
	for _, o := range options() {
		if slices.Contains(c.flags, o.name) {
			all = append(all, o)
		}
	}
	return all
}

func (c command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: ticket-controller %s [flags]\n\n%s\n\nFlags:\n", c.name, c.about)
	describe(&b, c.options())
	return b.String()
}

func (c command) dispatch(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	program := "ticket-controller " + c.name
	s, err := read(c.options(), args, getenv)
	if errors.Is(err, errHelp) {
		_, _ = fmt.Fprint(stdout, c.help())
		return 0
	}
	if err == nil {
		err = c.wants(s)
	}
	if err != nil {
		return tell(usageError{err}, program, stderr)
	}
	d, err := c.sitDown(ctx, s, getenv)
	if err == nil {
		err = c.run(d, ctx, stdout)
		d.close()
	}
	return tell(err, program, stderr)
}

func (c command) wants(s settings) error {
	if slices.ContainsFunc(c.own, func(o option) bool { return o.name == "file" }) && s.file == "" {
		return errors.New("--file is missing: name the file")
	}
	if s.file == "-" {
		return errors.New("--file -: a backup is a file that is whole or not there, and no stream: name a file")
	}
	if c.booking == nil || !c.booking(s) {
		return nil
	}
	switch {
	case s.bookingURL == "":
		return errors.New("--booking-url is missing: say where the booking API is")
	case s.bookingTokenFile == "":
		return errors.New("--booking-token-file is missing: name a file that holds the booking API's token")
	}
	return nil
}

// desk is what a subcommand works with.
type desk struct {
	settings
	tickets    dynamic.NamespaceableResourceInterface // as they are, fields that this program does not know among it
	flights    *flights                               // nil where the booking API is not called
	clusterID  string
	references tether.References
	close      func()
}

func (c command) sitDown(ctx context.Context, s settings, getenv func(string) string) (*desk, error) {
	home, _ := os.UserHomeDir() // "" where there is none
	k, err := findCluster(s, getenv, home)
	if err != nil {
		return nil, err
	}
	k.config.QPS = -1 // the server's priority and fairness bounds it
	client, err := dynamic.NewForConfig(k.config)
	if err != nil {
		return nil, err
	}
	d := &desk{settings: s, clusterID: s.clusterID, tickets: client.Resource(v1.GroupVersion.WithResource(Tickets.Plural)), close: func() {}}
	if d.clusterID == "" {
		if d.clusterID, err = tether.ClusterID(ctx, k.config); err != nil {
			return nil, namingClusterID(err)
		}
	}
	if c.booking != nil && c.booking(s) {
		token := booking.TokenFile(s.bookingTokenFile)
		if _, err := token(ctx); err != nil {
			return nil, fmt.Errorf("--booking-token-file: %w", err)
		}
		api, err := booking.NewClient(booking.Options{BaseURL: s.bookingURL, Token: token, Timeout: s.callTimeout})
		if err != nil {
			return nil, fmt.Errorf("booking API: %w", err)
		}
		d.flights, d.close = &flights{api}, api.Close
	}
	d.references = managed(s, nil).References(d.clusterID)
	return d, nil
}

// concerns tells whether a namespace is one of those that were asked for.
func (d *desk) concerns(namespace string) bool {
	return len(d.namespaces) == 0 || slices.Contains(d.namespaces, namespace)
}
