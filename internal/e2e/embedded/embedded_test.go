package embedded

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

const (
	colour = "\x1b["
	end    = "Ctrl-C ends it. What happens from now on:"
)

func TestAUserTypesWhatItSaysAndEndsItWithCtrlC(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	begin := time.Now()
	s := h.start(t, nil)
	text := s.settled(t)
	// Two seconds on a machine that does nothing else; what is asserted is that
	// nothing waits for a period to pass.
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the samples were settled after %v", took)
	} else {
		t.Logf("the samples were settled after %v", took)
	}
	if !strings.Contains(text, "EMBEDDED FAKE, not a cluster") || !strings.Contains(text, colour+"32m") || !strings.Contains(text, colour+"31m") {
		t.Error("it lacks the banner or its colours")
	}
	lines := commands(text)
	if _, err := exec.LookPath("curl"); err != nil {
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "curl") })
	}
	path, found := strings.CutPrefix(lines[0], "export KUBECONFIG=")
	if info, err := os.Stat(path); !found || err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the first line is %q: %v", lines[0], err)
	}

	out := h.types(t, lines...)
	for _, want := range []string{
		"to-new-york", "SoldOut", "FIELD: spec", "ticket.flights.com/to-osaka created", "ticket.flights.com/to-new-york patched",
		`ticket.flights.com "two-to-tokyo" deleted`, "ticket.flights.com/to-paris patched",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("what was typed has not answered %q:\n%s", want, out)
		}
	}
	s.shows(t, "to-osaka", "Ready: confirmed")
	s.shows(t, "you ", "to-new-york", "spec changed: departureDate from ")
	s.shows(t, "airline", "has changed the booking")
	s.shows(t, "two-to-tokyo", "the Ticket is gone")
	s.shows(t, "to-paris", "Ready: confirmed")
	for ticket, words := range map[string]string{"to-new-york": "confirmed", "to-paris": "confirmed", "to-osaka": "confirmed"} {
		h.types(t, lines[0], "kubectl wait --for=condition=Ready --timeout=60s ticket/"+ticket, "kubectl get ticket "+ticket+" | grep "+words)
	}
	edit := `sed -i 's/cabin: economy/cabin: business/' "$1"`
	editor := filepath.Join(h.dir, "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\n"+edit+"\n"), 0o700); err != nil { //nolint:gosec // kubectl runs it
		t.Fatal(err)
	}
	h.types(t, lines[0], "KUBE_EDITOR="+editor+" kubectl edit ticket to-osaka")
	s.shows(t, "to-osaka", "spec changed: cabin from economy to business")

	s.ctrlC(t)
	if code := s.exit(t); code != 0 {
		t.Errorf("exit status %d", code)
	}
	h.left(t)
}

func TestThereAreColoursOnlyForWhoWantsThem(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(home) *session{
		"NO_COLOR":      func(h home) *session { return h.start(t, []string{"NO_COLOR=1"}) },
		"TERM=dumb":     func(h home) *session { return h.start(t, []string{"TERM=dumb"}) },
		"piped":         func(h home) *session { return h.pipe(t) },
		"JSON":          func(h home) *session { return h.start(t, nil, "--log-format", "json") },
		"a JSON of all": func(h home) *session { return h.pipe(t, "--log-format", "json", "--embedded", "always", "-v", "1") },
	} {
		s := start(newHome(t))
		isJSON := strings.Contains(name, "JSON")
		if isJSON {
			s.shows(t, `"about":"to-paris"`, "Stalled, SoldOut")
		} else {
			s.settled(t)
		}
		if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := s.exit(t); code != 0 {
			t.Errorf("%s: exit status %d", name, code)
		}
		text, _, _ := s.now()
		if strings.Contains(text, colour) {
			t.Errorf("%s: there are colours", name)
		}
		for line := range strings.Lines(text) {
			if isJSON && !json.Valid([]byte(line)) {
				t.Errorf("%s: a line that is no JSON: %q", name, line)
			}
		}
		s.left(t)
	}
}

// bookings are what the airline of a session has, as its screen says to ask.
func (s *session) bookings(t *testing.T) []booking.Booking {
	t.Helper()
	text := s.shows(t, end)
	_, rest, _ := strings.Cut(text, "Authorization: Bearer ")
	token, rest, _ := strings.Cut(rest, "' ")
	url, _, _ := strings.Cut(rest, "/v1/bookings")
	c, err := booking.NewClient(booking.Options{BaseURL: url, Token: booking.StaticToken(token)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all []booking.Booking
	for b, err := range c.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func TestWithADataDirNothingIsLostOrDoneTwiceByAKill(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := filepath.Join(h.dir, "state")
	args := []string{"--data-dir", dir, "-v", "2"}
	// It is killed once it has said so much: of the samples, and then of a Ticket of
	// somebody's.
	const rounds = 8
	for n := range rounds {
		s := h.start(t, nil, args...)
		from := end
		if n > 0 {
			lines := commands(s.shows(t, end))
			one := exec.CommandContext(t.Context(), "sh", "-ec", lines[0]+"\n"+strings.ReplaceAll(lines[3], "to-osaka", fmt.Sprint("round-", n)))
			one.Env = h.env()
			if err := one.Start(); err != nil {
				t.Fatal(err)
			}
			from = "a new Ticket"
			defer func() { _ = one.Wait() }() // the kill may come before its answer
		}
		s.saysAfter(t, from, n)
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.exit(t)
	}
	s := h.start(t, nil, args...)
	lines := commands(s.shows(t, end))
	if lines[0] != "export KUBECONFIG="+filepath.Join(dir, "kubeconfig") {
		t.Errorf("the kubeconfig is elsewhere: %s", lines[0])
	}
	h.types(t, lines[0], "kubectl wait --for=jsonpath='{.status.conditions[?(@.type==\"Ready\")].reason}'=SoldOut --timeout=100s ticket/to-paris",
		"kubectl delete ticket to-paris", "kubectl wait --for=condition=Ready --timeout=100s tickets --all")
	before := s.bookings(t)
	if len(before) != 2+rounds-1 || slices.ContainsFunc(before, func(b booking.Booking) bool { return !b.Status.Live() }) {
		t.Errorf("after %d kills the airline has %+v", rounds, before)
	}
	second := h.start(t, nil, args...)
	if code := second.exit(t); code != 1 {
		t.Errorf("a second one on the folder: exit status %d", code)
	}
	second.shows(t, "--data-dir", "uses it; end that, or use another folder")
	s.ctrlC(t)
	if code := s.exit(t); code != 0 {
		t.Errorf("exit status %d", code)
	}

	// Whoever has deleted a sample does not want it back, and only who asks has the
	// rest again.
	s = h.start(t, nil, args...)
	out := h.types(t, commands(s.shows(t, end))[0], "kubectl get tickets")
	if strings.Contains(out, "to-paris") || !strings.Contains(out, "two-to-tokyo") || len(s.bookings(t)) != len(before) {
		t.Errorf("the next time:\n%s", out)
	}
	other := h.start(t, nil)
	other.settled(t)
	for _, s := range []*session{s, other} {
		s.ctrlC(t)
		if code := s.exit(t); code != 0 {
			t.Errorf("exit status %d", code)
		}
	}
	h.left(t)
}

func TestASecondCtrlCDoesNotWaitAndLeavesNoKubeconfig(t *testing.T) {
	t.Parallel()
	site := fake.NewBookingServer(fake.BookingOptions{})
	t.Cleanup(site.Close)
	site.Inject(fake.BookingFault{Kind: fake.BookingLateAnswer, Op: booking.OpCreate, Delay: time.Hour})
	if err := site.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []bool{false, true} {
		h := newHome(t)
		token := filepath.Join(h.dir, "token")
		if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--booking-url", site.URL(), "--booking-token-file", token, "--call-timeout", "1h", "--settle", "2h"}
		state := filepath.Join(h.dir, "state")
		if dir {
			args = append(args, "--data-dir", state)
		}
		s := h.start(t, nil, args...)
		if text := s.shows(t, end); !strings.Contains(text, "may be real") {
			t.Error("the banner does not warn")
		}
		if _, err := site.Await(suite.Patiently(t, limit, "a booking call"), func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && !e.Done }); err != nil {
			t.Fatal(err)
		}
		s.ctrlC(t)
		s.shows(t, "stopping; running passes may end")
		s.ctrlC(t)
		if code := s.exit(t); code != 1 {
			t.Errorf("exit status %d, want 1", code)
		}
		h.left(t)
		if _, err := os.Stat(filepath.Join(state, "kubeconfig")); !os.IsNotExist(err) {
			t.Errorf("the kubeconfig is still there: %v", err)
		}
	}
}
