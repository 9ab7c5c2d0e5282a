package contract

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
)

// logbook keeps the lines of a log.
type logbook struct{ record[string] }

func (l *logbook) logger() *logr.Logger {
	log := funcr.New(func(_, args string) { l.add(args) }, funcr.Options{Verbosity: 2, LogTimestamp: true, TimestampFormat: "05.000"})
	return &log
}

func having(words ...string) func(string) bool {
	return func(line string) bool {
		for _, w := range words {
			if !strings.Contains(line, w) {
				return false
			}
		}
		return true
	}
}

// line waits for a line with all of the words.
func (l *logbook) line(t *testing.T, words ...string) string {
	t.Helper()
	return l.nth(t, 1, "a line of the log with "+strings.Join(words, ", "), having(words...))
}

// errors are the lines that were logged as errors.
func (l *logbook) errors() []string {
	return l.all(func(line string) bool { return !strings.Contains(line, `"level"=`) })
}

// hooks hear what a Run does.
type hooks struct {
	tether.NoHooks
	passes record[tether.PassInfo]
	calls  record[tether.CallInfo]
	now    func() tether.Snapshot

	sentinels record[sentinel]
}

func newHooks() *hooks { return &hooks{} }

// Running comes before all others.
func (h *hooks) Running(now func() tether.Snapshot) { h.now = now }
func (h *hooks) Call(c tether.CallInfo)             { h.calls.add(c) }

// Pass comes while the pass still counts as running.
func (h *hooks) Pass(p tether.PassInfo) {
	if strings.HasPrefix(p.Key.Name, sentinelName) {
		h.sentinels.add(sentinel{p.Key.Name, h.now()})
		return
	}
	h.passes.add(p)
}

// passesOf are the passes of one object that have ended.
func passesOf(name string) func(tether.PassInfo) bool {
	return func(p tether.PassInfo) bool { return p.Key.Name == name }
}

// ending waits for the end of an object's n-th pass.
func (h *hooks) ending(t *testing.T, n int, name string) tether.PassInfo {
	t.Helper()
	return h.passes.nth(t, n, "the end of a pass of "+name, passesOf(name))
}

// running is one Run.
type running struct {
	hooks *hooks
	stop  context.CancelFunc
	ended chan error // delivers what Run returned, once
}

// launch starts a Run, whatever becomes of it. At the end of the test it is
// stopped; a test that awaits its end takes what it returned from ended.
func (s *stage) launch(t *testing.T, cfg *rest.Config, o tether.RunOptions, cs ...*tether.Controller) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{stop: cancel, ended: make(chan error, 1)}
	if r.hooks, _ = o.Hooks.(*hooks); o.Hooks == nil {
		r.hooks = newHooks()
		o.Hooks = r.hooks
	}
	o.Logger = s.log.logger()
	done := make(chan struct{})
	go func() {
		r.ended <- tether.Run(ctx, cfg, o, cs...)
		close(done)
	}()
	t.Cleanup(func() {
		s.wire.lift()
		cancel()
		select {
		case <-done:
		case <-time.After(patienceTime):
			t.Error("Run did not return")
			return
		}
		select {
		case err := <-r.ended:
			if err != nil {
				t.Errorf("Run returned %v", err)
			}
		default: // the test has it
		}
	})
	return r
}

// start starts a Run on the stage's wire.
func (s *stage) start(t *testing.T, o tether.RunOptions, cs ...*tether.Controller) *running {
	t.Helper()
	return s.launch(t, s.config(), o, cs...)
}

// end stops the Run, and returns what it returned.
func (r *running) end(t *testing.T) error {
	t.Helper()
	r.stop()
	return received(t, r.ended, "the end of the Run")
}
