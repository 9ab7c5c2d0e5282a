package bookingserver_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/examples/ticket-controller/bookingserver"
	"github.com/tetherkube/tether/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noenv(string) string { return "" }

// lines is a writer that hands on what is written once it matches.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
	want *regexp.Regexp
	got  chan string // has room for one
}

func await(pattern string) *lines {
	return &lines{want: regexp.MustCompile(pattern), got: make(chan string, 1)}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if m := l.want.FindString(l.text.String()); m != "" {
		select {
		case l.got <- m:
		default:
		}
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs the subcommand, and answers its URL and what ends it.
func start(t *testing.T, getenv func(string) string, args ...string) (url string, stdout, stderr *lines, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, stderr = await(`http://127\.0\.0\.1:\d+`), await(`^$`)
	code := make(chan int, 1)
	go func() {
		code <- bookingserver.Run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), stdout, stderr, getenv)
	}()
	t.Cleanup(cancel)
	select {
	case url = <-stdout.got:
	case c := <-code:
		t.Fatalf("ended with %d: %s", c, stderr)
	}
	return url, stdout, stderr, func() int { cancel(); return <-code }
}

func create(t *testing.T, url, token, key, reference string) error {
	t.Helper()
	c, err := booking.NewClient(booking.Options{BaseURL: url, Token: booking.StaticToken(token)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Create(t.Context(), key, booking.Request{
		ClientReference: reference, From: "ICN", To: "JFK", DepartureDate: "2027-05-01",
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	})
	return err
}

func TestItServesUntilItsContextEnds(t *testing.T) {
	url, stdout, stderr, stop := start(t, noenv)
	if err := create(t, url, "a-secret", "k", "r"); err != nil {
		t.Fatal(err)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := stderr.String(); !strings.Contains(log, "msg=create") || !strings.Contains(log, "status=201") || !strings.Contains(log, "effect=true") {
		t.Errorf("log: %s", log)
	}
	if all := stdout.String() + stderr.String(); strings.Contains(all, "a-secret") {
		t.Errorf("the token is told: %s", all)
	}
}

// TestTheLinesToTryWork runs what the banner prints in a shell, as a user would.
func TestTheLinesToTryWork(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "it's a dir")
	file := filepath.Join(dir, "token")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"any token": nil, "token file": {"--token-file", file}} {
		t.Run(name, func(t *testing.T) {
			_, stdout, _, stop := start(t, noenv, args...)
			defer stop()
			id := ""
			n := 0
			for line := range strings.Lines(stdout.String()) {
				if !strings.HasPrefix(line, "  curl ") {
					continue
				}
				n++
				out, err := exec.Command(shell, "-c", strings.ReplaceAll(strings.TrimSpace(line), "BOOKING_ID", id)).Output()
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				answer := string(out)
				if i := strings.Index(answer, "{"); i >= 0 {
					var b booking.Booking
					if err := json.Unmarshal([]byte(answer[i:]), &b); err != nil {
						t.Errorf("%s: %v", line, err)
					}
					if id == "" {
						id = b.ID
					}
				}
				if strings.Contains(answer, "problem+json") || strings.Contains(answer, "/problems/") || id == "" {
					t.Errorf("%sanswers %s", line, answer)
				}
			}
			if n != 5 {
				t.Errorf("%d lines to try, want 5", n)
			}
		})
	}
}

func TestOnlyTheTokenOfTheFileIsTakenAlsoAfterARotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	url, _, stderr, stop := start(t, noenv, "--token-file", file)
	defer stop()
	try := func(token, key string, accepted bool) {
		t.Helper()
		if err := create(t, url, token, key, key); (err == nil) != accepted {
			t.Errorf("%s: %v", token, err)
		}
	}
	try("first", "k1", true)
	try("second", "k2", false)
	write("second")
	try("second", "k3", true)
	try("first", "k4", false)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	try("second", "k5", false)
	if !strings.Contains(stderr.String(), "every token is refused") {
		t.Errorf("log: %s", stderr)
	}
}

func TestFlagsReachTheServerAlsoFromTheEnvironment(t *testing.T) {
	env := map[string]string{
		"BOOKING_SERVER_FAULT":                "internal:reference=broken problem:problem=forbidden,reference=no",
		"BOOKING_SERVER_SOLD_OUT":             "CDG-JFK",
		"BOOKING_SERVER_REFERENCE_UNIQUENESS": "forever",
	}
	url, stdout, _, stop := start(t, func(name string) string { return env[name] }, "--reference-uniqueness=none", "--rate-limit", "4/1h")
	defer stop()
	for _, c := range []struct {
		key, reference string
		want           string
	}{{"k1", "broken", "server failed"}, {"k2", "no", "does not allow"}, {"k3", "twice", ""}, {"k4", "twice", ""}, {"k5", "r", ""}, {"k6", "r", "too many"}} {
		err := create(t, url, "t", c.key, c.reference)
		if (c.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.key, err, c.want)
		}
	}
	if !strings.Contains(stdout.String(), "Fault: internal:reference=broken") {
		t.Errorf("the faults are not told: %s", stdout)
	}
}

func TestWhatIsWrongWithACommandLineIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		"--listen here":                           "--listen: ",
		"--listen 127.0.0.1:99999":                "--listen: ",
		"--seed -1":                               "--seed: ",
		"--reference-uniqueness sometimes":        "want forever, live or none",
		"--key-lifetime soon":                     "--key-lifetime: ",
		"--key-lifetime 0s":                       "--key-lifetime: ",
		"--confirm-after -1s":                     "--confirm-after: ",
		"--rate-limit 5":                          "as 100/1m",
		"--fixed-fares 2":                         "--fixed-fares: ",
		"--sold-out ICN":                          "as ICN-JFK",
		"--sold-out ICN-JFK@2027-02-31":           "no such day",
		"--fault explode":                         "kind: ",
		"--fault latency":                         "delay: ",
		"--fault problem:problem=nonsense":        "sold-out",
		"--colour red":                            "no flag --colour",
		"--seed":                                  "--seed: wants a value",
		"extra":                                   "no flag",
		"--fault explode --seed x --sold-out all": "--seed: ",
	} {
		var stderr strings.Builder
		code := bookingserver.Run(t.Context(), strings.Fields(line), io.Discard, &stderr, noenv)
		if code != 2 || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "--help") {
			t.Errorf("%s: exit code %d: %s", line, code, &stderr)
		}
	}
	var stderr strings.Builder
	if code := bookingserver.Run(t.Context(), []string{"--token-file", ""}, io.Discard, &stderr, noenv); code != 2 || !strings.Contains(stderr.String(), "--token-file: it is empty") {
		t.Errorf("an empty flag: exit code %d: %s", code, &stderr)
	}
	stderr.Reset()
	env := func(name string) string { return map[string]string{"BOOKING_SERVER_SEED": "x"}[name] }
	if code := bookingserver.Run(t.Context(), nil, io.Discard, &stderr, env); code != 2 || !strings.Contains(stderr.String(), "BOOKING_SERVER_SEED: ") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

func TestWhatKeepsItFromRunningIsNamed(t *testing.T) {
	url, _, _, stop := start(t, noenv)
	defer stop()
	for flag, value := range map[string]string{
		"--listen":     strings.TrimPrefix(url, "http://"),
		"--token-file": filepath.Join(t.TempDir(), "missing"),
	} {
		var stderr strings.Builder
		if code := bookingserver.Run(t.Context(), []string{"--listen", "127.0.0.1:0", flag, value}, io.Discard, &stderr, noenv); code != 1 || !strings.Contains(stderr.String(), flag) {
			t.Errorf("%s: exit code %d: %s", flag, code, &stderr)
		}
	}
}

func TestHelpNamesEveryFlagAndFault(t *testing.T) {
	var stdout strings.Builder
	if code := bookingserver.Run(t.Context(), []string{"--help"}, &stdout, io.Discard, noenv); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wants := []string{"--listen", "--token-file", "--fault", "$BOOKING_SERVER_SEED"}
	for _, k := range fake.BookingFaultKinds() {
		wants = append(wants, string(k))
	}
	for _, want := range wants {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s is not in the help", want)
		}
	}
}
