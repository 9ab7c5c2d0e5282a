package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// request is one request to the API server, as the transport sees it.
type request struct {
	Method      string
	Resource    string // plural, with "/subresource" where there is one; else the path
	Name        string
	Query       url.Values
	ContentType string
	Body        string
	Watch       bool
}

// exchange is a request that has ended.
type exchange struct {
	request
	Code  int // 0: the client got no answer
	Began time.Time
}

// String is one line of the journal.
func (e exchange) String() string {
	if e.Method == outside {
		return e.Resource + " " + e.Name
	}
	verb := e.Method
	if e.Watch {
		verb = "WATCH"
	}
	line := verb + " " + e.Resource
	if e.Name != "" {
		line += " " + e.Name
	}
	return fmt.Sprintf("%s %d", line, e.Code)
}

// outside is the method of what a journal has of calls to something else than the
// API server.
const outside = ""

// wire is what stands between a Run and the API server: it writes down each
// request, and does to it what a test says.
type wire struct {
	log    record[exchange]
	events record[event] // of watches, as they come from the server

	// mu guards what follows.
	mu     sync.Mutex
	rules  []*rule
	filter []*filter
	bodies []*stream     // of watches, also of those that have ended
	lifted chan struct{} // closed when nothing is to be done to anything any more
}

func newWire() *wire { return &wire{lifted: make(chan struct{})} }

// moment is one in a request's life.
type moment string

// The moments: the server has not seen the request; or it has carried it out, and
// the client does not know.
const (
	before moment = "before"
	after  moment = "after"
)

// rule does something to requests.
type rule struct {
	when  moment
	match func(request) bool
	skip  int // how many it lets pass first
	times int // how many it is for after that; negative for all
	do    func(ctx context.Context, r request) verdict
}

// verdict is what becomes of a request.
type verdict struct {
	lose bool                 // the client gets no answer
	code int                  // the client gets this refusal, where it is not 0
	head http.Header          // with these headers
	edit func(map[string]any) // the server's answer is changed
}

var errLost = errors.New("the connection was lost, by the test")

// wrap is for rest.Config.WrapTransport.
func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return tripper(func(req *http.Request) (*http.Response, error) {
		began := time.Now()
		r, req, err := read(req)
		if err != nil {
			return nil, err
		}
		res, err := w.carry(next, req, r)
		e := exchange{request: r, Began: began}
		if err == nil {
			e.Code = res.StatusCode
			if r.Watch && res.StatusCode == http.StatusOK {
				res.Body = newStream(w, r, res.Body)
			}
		}
		w.log.add(e)
		return res, err
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *wire) carry(next http.RoundTripper, req *http.Request, r request) (*http.Response, error) {
	v := w.meet(req.Context(), before, r)
	switch {
	case v.lose:
		return nil, errLost
	case req.Context().Err() != nil:
		return nil, req.Context().Err()
	case v.code != 0:
		return refusal(req, v), nil
	}
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	v = w.meet(req.Context(), after, r)
	switch {
	case v.lose, v.code != 0:
		res.Body.Close()
		if v.code != 0 {
			return refusal(req, v), nil
		}
		return nil, errLost
	case v.edit != nil:
		return edited(res, v.edit)
	}
	return res, nil
}

// read takes the request apart, and returns one that can still be sent.
func read(req *http.Request) (request, *http.Request, error) {
	r := request{Method: req.Method, Query: req.URL.Query(), ContentType: req.Header.Get("Content-Type")}
	r.Watch = r.Query.Get("watch") == "true" || r.Query.Get("watch") == "1"
	r.Resource, r.Name = meant(req.URL.Path)
	if req.Body == nil {
		return r, req, nil
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return r, nil, err
	}
	r.Body = string(body)
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	return r, req, nil
}

// meant is the resource and the name in a path of the API.
func meant(path string) (resource, name string) {
	p := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(p) > 2 && p[0] == "api":
		p = p[2:]
	case len(p) > 3 && p[0] == "apis":
		p = p[3:]
	default:
		return path, ""
	}
	if p[0] == "namespaces" && len(p) > 2 {
		p = p[2:]
	}
	resource = p[0]
	if len(p) > 1 {
		name = p[1]
	}
	if len(p) > 2 {
		resource += "/" + p[2]
	}
	return resource, name
}

// call writes a call to the outside down, in order with the requests.
func (w *wire) call(verb, name string) {
	w.log.add(exchange{request: request{Method: outside, Resource: verb, Name: name}, Began: time.Now()})
}

// meet applies the rules. Every rule counts for itself; the first that is due wins.
func (w *wire) meet(ctx context.Context, at moment, r request) verdict {
	w.mu.Lock()
	var due *rule
	for _, u := range w.rules {
		switch {
		case u.when != at || !u.match(r):
		case u.skip > 0:
			u.skip--
		case u.times == 0:
		default:
			if due == nil {
				due = u
			}
			u.times--
		}
	}
	w.mu.Unlock()
	if due == nil {
		return verdict{}
	}
	return due.do(ctx, r)
}

func (w *wire) rule(u *rule) (lift func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, u)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rules = slices.DeleteFunc(w.rules, func(o *rule) bool { return o == u })
	}
}

// Which requests, for rule and hold.
const always = -1

// lose drops the answers to the next requests that match, or drops the requests
// before the server sees them.
func (w *wire) lose(at moment, times int, match func(request) bool) (lift func()) {
	return w.rule(&rule{when: at, match: match, times: times, do: func(context.Context, request) verdict { return verdict{lose: true} }})
}

// refuse answers the next requests that match in the server's place.
func (w *wire) refuse(times, code int, match func(request) bool) (lift func()) {
	return w.rule(&rule{when: before, match: match, times: times, do: func(context.Context, request) verdict { return verdict{code: code} }})
}

// edit changes the server's answers to the next requests that match.
func (w *wire) edit(times int, match func(request) bool, change func(map[string]any)) (lift func()) {
	return w.rule(&rule{when: after, match: match, times: times, do: func(context.Context, request) verdict { return verdict{edit: change} }})
}

// hold makes the n-th request that matches, counted from now on, wait.
func (w *wire) hold(at moment, n int, match func(request) bool) *hold {
	h := &hold{met: make(chan request, 1), say: make(chan verdict, 1)}
	w.rule(&rule{when: at, match: match, skip: n - 1, times: 1, do: func(ctx context.Context, r request) verdict {
		h.met <- r
		select {
		case v := <-h.say:
			return v
		case <-w.lifted:
			return verdict{}
		case <-ctx.Done():
			return verdict{}
		}
	}})
	return h
}

// hold is one request that waits, or will.
type hold struct {
	met  chan request
	say  chan verdict
	once sync.Once
}

// reached waits until the request has come.
func (h *hold) reached(t *testing.T) request {
	t.Helper()
	return received(t, h.met, "the request to hold")
}

func (h *hold) release() { h.once.Do(func() { h.say <- verdict{} }) }

// refusal is an answer as the API server gives it.
func refusal(req *http.Request, v verdict) *http.Response {
	reasons := map[int]string{
		http.StatusForbidden: "Forbidden", http.StatusInternalServerError: "InternalError", http.StatusConflict: "Conflict",
		http.StatusGone: "Expired", http.StatusServiceUnavailable: "ServiceUnavailable",
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused by the test","reason":%q,"code":%d}`, reasons[v.code], v.code)
	head := v.head.Clone()
	if head == nil {
		head = http.Header{}
	}
	head.Set("Content-Type", "application/json")
	return &http.Response{
		Status: http.StatusText(v.code), StatusCode: v.code, Header: head, Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func edited(res *http.Response, change func(map[string]any)) (*http.Response, error) {
	defer res.Body.Close()
	obj := map[string]any{}
	if err := json.NewDecoder(res.Body).Decode(&obj); err != nil {
		return nil, err
	}
	change(obj)
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res, nil
}

// to matches requests by method and resource, and by name where one is given.
func to(method, resource string, name ...string) func(request) bool {
	return func(r request) bool {
		return !r.Watch && r.Method == method && r.Resource == resource && (len(name) == 0 || r.Name == name[0])
	}
}

// watchOf matches watches, the first one, which is a list as well, included.
func watchOf(resource string) func(request) bool {
	return func(r request) bool { return r.Watch && r.Resource == resource }
}

func ended(match func(request) bool) func(exchange) bool {
	return func(e exchange) bool { return match(e.request) }
}

// lines are the exchanges that match, as lines of the journal.
func (w *wire) lines(match func(request) bool) []string {
	var lines []string
	for _, e := range w.log.all(ended(match)) {
		lines = append(lines, e.String())
	}
	return lines
}

// about are the calls outside for an object, and the requests about it but
// watches and lists.
func about(name string) func(request) bool {
	return func(r request) bool { return r.Name == name }
}

// writes are all requests about the resource but those that read.
func writes(resource string) func(request) bool {
	return func(r request) bool {
		plural, _, _ := strings.Cut(r.Resource, "/")
		return plural == resource && r.Method != http.MethodGet
	}
}

// requestsTo are all requests about the resource but watches and lists.
func requestsTo(resource string) func(request) bool {
	return func(r request) bool {
		plural, _, _ := strings.Cut(r.Resource, "/")
		return plural == resource && !r.Watch && (r.Name != "" || r.Method != http.MethodGet)
	}
}
