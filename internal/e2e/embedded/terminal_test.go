package embedded

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/tetherkube/tether/internal/e2e/binaries"
	"github.com/tetherkube/tether/internal/e2e/suite"
)

// program and kubectl are the paths of what the tests run.
var program, kubectl string

func TestMain(m *testing.M) { os.Exit(suite.Main(m, run)) }

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), suite.Setup)
	defer cancel()
	set, err := binaries.Build(ctx, os.Stderr)
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "program-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	program, kubectl = filepath.Join(dir, "ticket-controller"), set.Kubectl()
	if err := suite.BuildController(ctx, program); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// limit is how long anything may take, on a machine that does much else.
const limit = 2 * time.Minute

// home is a user's folders: nothing is configured in them.
type home struct{ dir, temporary string }

func newHome(t *testing.T) home {
	t.Helper()
	return home{t.TempDir(), t.TempDir()}
}

// env is a user's environment, with no cluster in it.
func (h home) env(more ...string) []string {
	return append([]string{
		"HOME=" + h.dir, "TMPDIR=" + h.temporary, "TERM=xterm", "KUBERC=off", "KUBECACHEDIR=" + filepath.Join(h.dir, "cache"),
		"PATH=" + filepath.Dir(kubectl) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}, more...)
}

// left fails the test where the program has left something in the folder for
// temporary files.
func (h home) left(t *testing.T) {
	t.Helper()
	if found, err := os.ReadDir(h.temporary); err != nil || len(found) > 0 {
		t.Errorf("in the folder for temporary files there is still %v, %v", found, err)
	}
}

// screen is what has been written to a terminal.
type screen struct {
	mu      sync.Mutex // guards what follows
	text    strings.Builder
	changed chan struct{} // closed at the next change
	over    bool
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

// Write shows something. A terminal's line ends are those of a text from then on.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(strings.ReplaceAll(string(b), "\r", ""))
	close(s.changed)
	s.changed = make(chan struct{})
	return len(b), nil
}

func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *screen) now() (text string, over bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.over, s.changed
}

// session is the program at a terminal, or where it is piped.
type session struct {
	home
	*screen
	cmd      *exec.Cmd
	terminal *os.File // nil where it is piped
	read     sync.WaitGroup
	ended    chan error
}

// start starts the program at a terminal.
func (h home) start(t *testing.T, env []string, args ...string) *session {
	t.Helper()
	s := &session{home: h, screen: newScreen(), cmd: exec.CommandContext(t.Context(), program, args...), ended: make(chan error, 1)}
	s.cmd.Env = h.env(env...)
	var err error
	if s.terminal, err = pty.Start(s.cmd); err != nil {
		t.Fatal(err)
	}
	s.read.Go(func() {
		_, _ = io.Copy(s.screen, s.terminal) // ends with an error of the terminal, once nobody has its other end
	})
	s.follow(t)
	return s
}

// pipe starts the program without a terminal.
func (h home) pipe(t *testing.T, args ...string) *session {
	t.Helper()
	s := &session{home: h, screen: newScreen(), cmd: exec.CommandContext(t.Context(), program, args...), ended: make(chan error, 1)}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = h.env(), s.screen, s.screen
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.follow(t)
	return s
}

// follow waits for the end, and sees to it at the test's end.
func (s *session) follow(t *testing.T) {
	t.Helper()
	go func() {
		err := s.cmd.Wait()
		s.read.Wait()
		s.end()
		s.ended <- err
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		if t.Failed() {
			text, _, _ := s.now()
			t.Logf("the screen:\n%s", text)
		}
		if s.terminal != nil {
			_ = s.terminal.Close() // it was of use until here
		}
	})
}

// shows waits until the screen has a line with all words, and is all it has then.
func (s *session) shows(t *testing.T, words ...string) string {
	t.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		text, over, changed := s.now()
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\n") && hasAll(line, words) {
				return text
			}
		}
		if over {
			t.Fatalf("the program has ended and not said %q", words)
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("in %v it has not said %q", limit, words)
		}
	}
}

// saysAfter waits until the program has said so many lines after one with a word, or
// has had its time to.
func (s *session) saysAfter(t *testing.T, word string, lines int) {
	t.Helper()
	s.shows(t, word)
	late := time.NewTimer(2 * time.Second)
	defer late.Stop()
	for {
		text, over, changed := s.now()
		_, after, _ := strings.Cut(text, word)
		if over || strings.Count(after, "\n") > lines {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			return
		}
	}
}

func hasAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// settled waits until the samples are as they are to be at first.
func (s *session) settled(t *testing.T) string {
	t.Helper()
	s.shows(t, "to-new-york", "Ready: confirmed")
	s.shows(t, "two-to-tokyo", "Ready: confirmed")
	return s.shows(t, "to-paris", "Stalled, SoldOut")
}

// ctrlC is what the terminal sends for it.
func (s *session) ctrlC(t *testing.T) {
	t.Helper()
	if _, err := s.terminal.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the end, and is the status.
func (s *session) exit(t *testing.T) int {
	t.Helper()
	select {
	case err := <-s.ended:
		s.ended <- err
		if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatalf("the program has not ended in %v", limit)
		return 0
	}
}

// commands are the lines of a screen that a person is to type, in order. The first
// says where the kubeconfig is.
func commands(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if command, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  "); indented {
			lines = append(lines, command)
		}
	}
	return lines
}

// types is a second terminal, in which lines are typed one after another until one
// fails.
func (h home) types(t *testing.T, lines ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", strings.Join(lines, "\n"))
	cmd.Env = h.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s\n%s", err, strings.Join(lines, "\n"), out)
	}
	return string(out)
}
