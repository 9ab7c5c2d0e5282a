// Package embedded is what the ticket controller works against where there is no
// cluster: a Kubernetes API server and an airline, both in this process, with three
// Tickets to begin with. What they have goes with the process, or is kept in a
// folder.
package embedded

import (
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // for the samples
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake"
)

//go:embed samples.yaml
var samples string

// controllerName is the controller's user; everyone else is the person at the
// keyboard.
const controllerName = "ticket-controller"

// loopback is any free port that this machine alone reaches.
const loopback = "127.0.0.1:0"

// Options configure a [Server].
type Options struct {
	// Definition is the Ticket's definition in YAML. Required.
	Definition string
	// BookingURL is a booking API to tell of in place of an airline in memory [one
	// in memory].
	BookingURL string
	// Out is where banner and log go. Required; Start and what runs until Close
	// write to it.
	Out io.Writer
	// JSON says that both are JSON, one object a line [text].
	JSON bool
	// Colour says that a text's log has colours [none].
	Colour bool
	// DataDir is the folder that keeps what both have, for the next Start [nothing is
	// kept]. One process has it at a time.
	DataDir string
	// AtExit is given what is to be done where the program ends without Close
	// [nothing is]. It may be called when Close has been, and more than once.
	AtExit func(func())
}

// Server is the two servers and the file that tells how to reach them.
type Server struct {
	api        *fake.APIServer
	airline    *fake.BookingServer // nil where another one was given
	state      *fake.State         // nil where nothing is kept
	token      string              // of the controller, at both
	kubeconfig kubeconfig
}

// Start starts the servers on free ports of loopback, writes the kubeconfig, which
// none but this user can read, and says so on Out. The caller closes it.
func Start(o Options) (_ *Server, err error) {
	log, days := newLiveLog(o), daysFrom(time.Now())
	s := &Server{token: rand.Text(), kubeconfig: kubeconfig{folder: o.DataDir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if o.AtExit != nil {
		o.AtExit(func() { _ = s.kubeconfig.remove() }) // nobody is left to be told
	}
	f := facts{bookingURL: o.BookingURL, firstDay: days.first, secondDay: days.second, soldOutDay: days.soldOut, dataDir: o.DataDir}
	if o.DataDir != "" {
		if s.state, err = fake.OpenState(o.DataDir, log.warn); err != nil {
			return nil, dataDirError(err)
		}
		f.kept = !s.state.Empty()
	}
	if o.BookingURL == "" {
		if err := s.startAirline(log, days, f.kept); err != nil {
			return nil, err
		}
		f.bookingURL, f.token = s.airline.URL(), s.token
	}
	// That there are samples is known by the API server's state: it comes last.
	if err := s.startAPI(log, o.Definition, days.in(samples)); err != nil {
		return nil, err
	}
	f.apiServer = s.api.URL()
	content, err := s.api.Kubeconfig()
	if err == nil {
		f.kubeconfig, err = s.kubeconfig.write(content)
	}
	if err != nil {
		return nil, fmt.Errorf("embedded: the kubeconfig: %w; $TMPDIR says where temporary files go", err)
	}
	if o.JSON {
		log.json.Warn("this is an embedded fake, not a cluster",
			"apiServer", f.apiServer, "kubeconfig", f.kubeconfig, "bookingAPI", f.bookingURL, "dataDir", f.dataDir)
	} else if _, err := io.WriteString(o.Out, banner(f)); err != nil {
		return nil, fmt.Errorf("embedded: the banner: %w", err)
	}
	return s, nil
}

// startAirline starts the booking server. The day that is sold out is one of the
// samples', and so is told to a new one alone.
func (s *Server) startAirline(log *liveLog, days days, kept bool) (err error) {
	o := fake.BookingOptions{
		Log: log.call,
		Authenticate: func(given string) (string, bool) {
			return controllerName, subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) == 1
		},
	}
	if s.state == nil {
		s.airline = fake.NewBookingServer(o)
	} else if s.airline, err = s.state.BookingServer(o); err != nil {
		return dataDirError(err)
	}
	if !kept {
		s.airline.SellOut("ICN", "CDG", days.soldOut, true)
	}
	if err := s.airline.Start(loopback); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// startAPI starts the API server; one that is new has the manifests.
func (s *Server) startAPI(log *liveLog, manifests ...string) (err error) {
	o := fake.APIOptions{
		// The seed is where the token in the kubeconfig and the cluster's identity come from.
		Seed:      seed(),
		Manifests: manifests,
		Admission: []fake.APIAdmission{rules},
		// Without TLS kubectl sends no token; without users none is wanted.
		TLS: true, RBAC: true,
		Users: map[string]fake.APIUser{s.token: {Name: controllerName, Groups: []string{"system:masters"}}},
		Log:   log.request,
	}
	if s.state == nil {
		s.api = fake.NewAPIServer(o)
	} else if s.api, err = s.state.APIServer(o); err != nil {
		return dataDirError(err)
	}
	if err := s.api.Start(loopback); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

func dataDirError(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("--data-dir: %w; name a folder that this user may write to", err)
	}
	return fmt.Errorf("--data-dir: %w", err)
}

// Config is how the controller reaches the API server.
func (s *Server) Config() *rest.Config { return s.api.ConfigFor(s.token) }

// BookingURL and Token are how the controller reaches the airline; both are empty
// where another booking API was given.
func (s *Server) BookingURL() string {
	if s.airline == nil {
		return ""
	}
	return s.airline.URL()
}

// Token is the airline's; see BookingURL.
func (s *Server) Token() string {
	if s.airline == nil {
		return ""
	}
	return s.token
}

// Close removes the kubeconfig and ends the servers. It returns when nothing of
// them runs any more.
func (s *Server) Close() error {
	err := s.kubeconfig.remove()
	if s.api != nil {
		s.api.Close()
	}
	if s.airline != nil {
		s.airline.Close()
	}
	if s.state != nil {
		err = errors.Join(err, s.state.Close())
	}
	return err
}

func seed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// days are the samples' dates. They lie ahead of today, whenever that is.
type days struct{ first, second, soldOut string }

func daysFrom(now time.Time) days {
	in := func(n int) string { return now.UTC().AddDate(0, 0, n).Format(time.DateOnly) }
	return days{first: in(60), second: in(61), soldOut: in(75)}
}

// in fills the dates into a text.
func (d days) in(text string) string {
	return strings.NewReplacer("FIRST-DAY", `"`+d.first+`"`, "SECOND-DAY", `"`+d.second+`"`, "SOLD-OUT-DAY", `"`+d.soldOut+`"`).Replace(text)
}
