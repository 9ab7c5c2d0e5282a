package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Exchange is one request that a proxy has seen.
type Exchange struct {
	// Number counts the requests of all proxies that share the journal: 1, 2, …
	Number int
	// Proxy is the name of the one that it came through.
	Proxy string
	// Method and URI are the request's.
	Method, URI string
	// UserAgent is who sent it.
	UserAgent string
	// Status is the server's answer, 0 until there is one.
	Status int
	// Told is the status that a watch's stream told as an error, 0 for none: the
	// answer to it was good before it turned out that it cannot be had.
	Told int
	// Ending says what a test did to it, where it did anything.
	Ending string
}

// String is one line of the journal.
func (e Exchange) String() string {
	line := fmt.Sprintf("%4d %s %s %s", e.Number, e.Proxy, e.Method, e.URI)
	if e.Status != 0 {
		line += fmt.Sprintf(" → %d", e.Status)
	}
	if e.Told != 0 {
		line += fmt.Sprintf(", then %d", e.Told)
	}
	if e.Ending != "" {
		line += " (" + e.Ending + ")"
	}
	return line
}

// Point is a moment in a request's life.
type Point string

// The moments: the server has not seen the request; or it has carried it out
// and answered, and the client does not know.
const (
	Before Point = "before"
	After  Point = "after"
)

// Journal has what several proxies saw, in one order. The zero value is ready
// for use, by any number of goroutines.
type Journal struct {
	// mu guards what follows, and the counts of holds.
	mu        sync.Mutex
	exchanges []*Exchange
	holds     []*Hold
}

// Exchanges returns what was seen of the requests for which match is true; a nil
// match means all.
func (j *Journal) Exchanges(match func(Exchange) bool) []Exchange {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []Exchange
	for _, e := range j.exchanges {
		if match == nil || match(*e) {
			found = append(found, *e)
		}
	}
	return found
}

// String is the journal, a line for each request: what a test prints when it
// fails.
func (j *Journal) String() string {
	var b strings.Builder
	for _, e := range j.Exchanges(nil) {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// Hold makes the n-th request (from 1, counted from now on) for which match is
// true wait at the point until the test says how it goes on. Every hold counts
// for itself.
func (j *Journal) Hold(at Point, n int, match func(Exchange) bool) *Hold {
	h := &Hold{at: at, left: n, match: match, reached: make(chan Exchange, 1), verdict: make(chan verdict, 1)}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.holds = append(j.holds, h)
	return h
}

// Hold is one request that is to wait, or does.
type Hold struct {
	at      Point
	left    int // how many matching requests until the one that waits
	match   func(Exchange) bool
	reached chan Exchange
	verdict chan verdict
	once    sync.Once
}

type verdict struct {
	ending string
	answer *Answer
	drop   bool
	keep   *landing
}

// landing is a request whose client has gone, and that reaches the server later.
type landing struct {
	begin, end chan struct{}
	once       sync.Once // of begin
}

// Answer is what a client gets in place of the server's answer.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Reached delivers the request when it has come and waits.
func (h *Hold) Reached() <-chan Exchange { return h.reached }

// Release lets the request go on as if nothing had happened. Of several
// verdicts on one hold, the first counts.
func (h *Hold) Release() { h.say(verdict{ending: "held and released"}) }

// Drop closes the client's connection without an answer, and before the server
// sees the request where that is the point.
func (h *Hold) Drop() { h.say(verdict{ending: "dropped " + string(h.at), drop: true}) }

// Cut closes the client's connection without an answer, before the server sees the
// request, and keeps the request. It lands when the test says so, by the function
// that is returned, which may be called again; the channel is closed when the server
// has carried it out. One that the test never lets land is dropped with the proxy.
// The hold must be before the server.
func (h *Hold) Cut() (land func(), landed <-chan struct{}) {
	l := &landing{begin: make(chan struct{}), end: make(chan struct{})}
	h.say(verdict{ending: "cut off, to land later", keep: l})
	return func() { l.once.Do(func() { close(l.begin) }) }, l.end
}

// Answer gives the client this answer; the server never sees the request where
// the hold is before it.
func (h *Hold) Answer(a Answer) {
	h.say(verdict{ending: fmt.Sprintf("answered %d by the test, %s", a.Status, h.at), answer: &a})
}

func (h *Hold) say(v verdict) { h.once.Do(func() { h.verdict <- v }) }

// begin enters a request.
func (j *Journal) begin(proxy string, r *http.Request) *Exchange {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &Exchange{
		Number: len(j.exchanges) + 1, Proxy: proxy,
		Method: r.Method, URI: r.URL.RequestURI(), UserAgent: r.UserAgent(),
	}
	j.exchanges = append(j.exchanges, e)
	return e
}

func (j *Journal) note(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

// waitAt waits where a hold wants this request at this point. It ends early,
// as dropped, when the client has gone: a request of a killed program is not
// carried out later.
func (j *Journal) waitAt(at Point, e *Exchange, gone <-chan struct{}) verdict {
	h, seen := j.holdFor(at, e)
	if h == nil {
		return verdict{}
	}
	h.reached <- seen
	var v verdict
	select {
	case v = <-h.verdict:
	case <-gone:
		v = verdict{ending: "the client went " + string(at), drop: true}
	}
	j.note(func() { e.Ending = v.ending })
	return v
}

func (j *Journal) holdFor(at Point, e *Exchange) (*Hold, Exchange) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found *Hold
	for _, h := range j.holds {
		if h.at != at || h.left == 0 || !h.match(*e) {
			continue
		}
		h.left--
		if h.left == 0 && found == nil {
			found = h
		}
	}
	return found, *e
}
