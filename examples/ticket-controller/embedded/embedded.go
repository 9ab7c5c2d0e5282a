// Package embedded is what the ticket controller works against where there is no
// cluster: a Kubernetes API server and an airline, both in memory, with three
// Tickets to begin with.
package embedded

import (
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // for the samples
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
}

// Server is the two servers and the file that tells how to reach them.
type Server struct {
	api        *fake.APIServer
	airline    *fake.BookingServer // nil where another one was given
	token      string              // of the controller, at both
	folder     string
	kubeconfig string
}

// Start starts the servers on free ports of loopback, writes the kubeconfig, which
// none but this user can read, and says so on Out. The caller closes it.
func Start(o Options) (_ *Server, err error) {
	log := newLiveLog(o)
	token := rand.Text()
	days := daysFrom(time.Now())
	s := &Server{token: token}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	f := facts{bookingURL: o.BookingURL, firstDay: days.first, secondDay: days.second, soldOutDay: days.soldOut}
	if o.BookingURL == "" {
		s.airline = fake.NewBookingServer(fake.BookingOptions{
			Log: log.call,
			Authenticate: func(given string) (string, bool) {
				return controllerName, subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1
			},
		})
		s.airline.SellOut("ICN", "CDG", days.soldOut, true)
		if err := s.airline.Start(loopback); err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		f.bookingURL, f.token = s.airline.URL(), token
	}
	s.api = fake.NewAPIServer(fake.APIOptions{
		// The seed is where the token in the kubeconfig and the cluster's identity come from.
		Seed:      seed(),
		Manifests: []string{o.Definition, days.in(samples)},
		// Without TLS kubectl sends no token; without users none is wanted.
		TLS: true, RBAC: true,
		Users: map[string]fake.APIUser{token: {Name: controllerName, Groups: []string{"system:masters"}}},
		Log:   log.request,
	})
	if err := s.api.Start(loopback); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if err := s.writeKubeconfig(); err != nil {
		return nil, fmt.Errorf("embedded: the kubeconfig: %w; $TMPDIR says where temporary files go", err)
	}
	f.apiServer, f.kubeconfig = s.api.URL(), s.kubeconfig
	if o.JSON {
		log.json.Warn("this is an embedded fake, not a cluster", "apiServer", f.apiServer, "kubeconfig", f.kubeconfig, "bookingAPI", f.bookingURL)
	} else if _, err := io.WriteString(o.Out, banner(f)); err != nil {
		return nil, fmt.Errorf("embedded: the banner: %w", err)
	}
	return s, nil
}

func (s *Server) writeKubeconfig() error {
	content, err := s.api.Kubeconfig()
	if err != nil {
		return err
	}
	if s.folder, err = os.MkdirTemp("", "ticket-controller-"); err != nil {
		return err
	}
	s.kubeconfig = filepath.Join(s.folder, "kubeconfig")
	return os.WriteFile(s.kubeconfig, content, 0o600)
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
	var err error
	if s.folder != "" {
		err = os.RemoveAll(s.folder)
	}
	if s.api != nil {
		s.api.Close()
	}
	if s.airline != nil {
		s.airline.Close()
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
