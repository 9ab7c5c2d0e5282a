package faketest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Program is what is tested: what main does with a cluster and an HTTP client. It
// runs until ctx ends, and returns after all that it started has ended. client
// reaches Options.Outside, else the booking server of the World, whatever the URL's
// host is; its Transport may be taken out of it. cluster and client are the program's own.
type Program func(ctx context.Context, cluster *rest.Config, client *http.Client) error

// Death is how a program ends at a request of its own.
type Death int

// The deaths. A request that was sent may be carried out although the program is
// dead.
const (
	// StopBefore stops the program, as SIGTERM does, before the request is sent. The
	// request goes on, as far as the program lets it.
	StopBefore Death = iota
	// CrashBefore crashes the program before the request is sent.
	CrashBefore
	// CrashAfter crashes the program when the request was answered, before it gets to
	// know the answer.
	CrashAfter
)

// Process is a program that runs, or has run. It is safe for concurrent use, but
// for what may fail the test.
type Process struct {
	world   *World
	network network
	cancel  context.CancelFunc
	dead    chan struct{} // closed by the first end
	done    chan struct{} // closed when the program has returned

	death Death
	at    int // the request of StartUntil; 0: none

	mu       sync.Mutex // guards what follows
	requests int
	ended    bool  // dead is closed
	crashed  bool  // implies ended
	waited   bool  // its error was handed out, or told
	err      error // set before done is closed
}

// Start starts a program, as many as the test wants, one after another or side by
// side. It returns at once.
func (w *World) Start(program Program) *Process { return w.start(0, StopBefore, program) }

// StartUntil is Start of a program that dies at its nth request, counted from 1
// over both servers and over all kinds. One that sends fewer lives.
func (w *World) StartUntil(nth int, how Death, program Program) *Process {
	w.t.Helper()
	if nth < 1 || how < StopBefore || how > CrashAfter {
		w.t.Fatalf("faketest: StartUntil: request %d and death %d: want a request from 1 on, and one of the deaths", nth, how)
	}
	return w.start(nth, how, program)
}

func (w *World) start(nth int, how Death, program Program) *Process {
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &Process{world: w, cancel: cancel, dead: make(chan struct{}), done: make(chan struct{}), at: nth, death: how}
	w.processes = append(w.processes, p)

	cluster := w.API.Config()
	cluster.Dial = p.network.dialer(cluster.Dial)
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortal{p, next} })
	transport := w.Booking.Transport()
	if w.outside != nil {
		transport = w.outside.Transport()
	}
	transport.DialContext = p.network.dialer(transport.DialContext)
	client := &http.Client{Transport: mortal{p, transport}}
	go p.run(func() error { return program(ctx, cluster, client) })
	return p
}

// run runs the program. A panic would hide the journals, and a Goexit, which is
// what FailNow of a test is, would never be noticed: both are errors.
func (p *Process) run(program func() error) {
	err := errors.New("it ended its goroutine by runtime.Goexit: FailNow, SkipNow and the like are for the test's own goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked: %v\n%s", v, debug.Stack())
		}
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.done)
	}()
	err = program()
}

// Stop tells the program to stop, as SIGTERM does, and returns when it has. An error
// that is not its context's fails the test, and so does a program that does not end
// within Options.StopTimeout. It may be called more than once.
func (p *Process) Stop() {
	p.world.t.Helper()
	p.end(false)
	p.finish()
}

// Crash cuts the program off, as a power cut does, and returns at once: nothing
// that it sends from here on arrives. It is told to stop, so that the bubble can
// end, and what it returns does not matter.
func (p *Process) Crash() { p.end(true) }

// Wait waits until the program returns by itself, and answers what it returned:
// that is expected then, and fails no test. Where ctx ends first, it is ctx's cause.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("faketest: the program still runs: %w", context.Cause(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited = true
	return p.err
}

// Dead is closed when the program is stopped or crashed, and when it gets to the
// request at which it dies. It may still be ending then.
func (p *Process) Dead() <-chan struct{} { return p.dead }

// Requests is how many requests the program has made so far, of both servers.
func (p *Process) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// end tells the program to stop, or cuts it off before.
func (p *Process) end(crash bool) {
	p.mu.Lock()
	first := !p.ended
	p.ended, p.crashed = true, p.crashed || crash
	p.mu.Unlock()
	if crash {
		p.network.cut()
	}
	p.cancel()
	if first {
		close(p.dead)
	}
}

// finish waits for the program's end, and tells what was wrong with it once.
func (p *Process) finish() {
	p.world.t.Helper()
	p.cancel()
	timeout := time.NewTimer(p.world.stopTimeout)
	defer timeout.Stop()
	select {
	case <-p.done:
	case <-timeout.C:
		p.mu.Lock()
		waited := p.waited
		p.waited = true
		p.mu.Unlock()
		if !waited {
			p.world.t.Errorf("faketest: the program still runs %v after it was told to stop; the goroutines:\n%s", p.world.stopTimeout, stacks())
		}
		return
	}
	// What it left open would keep the bubble from ending, or reach the servers yet.
	p.network.cut()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil && !p.crashed && !p.waited && !errors.Is(p.err, context.Canceled) {
		p.world.t.Errorf("faketest: the program ended with an error that nobody expected: %v", p.err)
	}
	p.waited = true
}

func stacks() []byte {
	all := make([]byte, 1<<20)
	return all[:runtime.Stack(all, true)]
}

// mortal counts the requests of a process, and ends it at one of them.
type mortal struct {
	p    *Process
	next http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport that cancels a request.
func (m mortal) WrappedRoundTripper() http.RoundTripper { return m.next }

var errCrashed = errors.New("faketest: the program has crashed")

// RoundTrip sends the request, unless the program crashes before.
func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	p := m.p
	p.mu.Lock()
	p.requests++
	dies, crashed := p.requests == p.at, p.crashed
	p.mu.Unlock()
	if dies && p.death != CrashAfter {
		p.end(p.death == CrashBefore)
	}
	if crashed || dies && p.death == CrashBefore {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errCrashed
	}
	resp, err := m.next.RoundTrip(r)
	if !dies || p.death != CrashAfter {
		return resp, err
	}
	p.end(true)
	if err == nil {
		resp.Body.Close()
	}
	return nil, errCrashed
}
