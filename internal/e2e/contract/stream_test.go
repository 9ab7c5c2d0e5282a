package contract

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// event is one event of a watch.
type event struct {
	Type     string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Resource string
	Name     string
	Version  int64 // resourceVersion
}

// stream is the body of a watch, event by event.
type stream struct {
	w        *wire
	resource string
	body     io.ReadCloser
	lines    *bufio.Reader
	rest     []byte // of the event that is being read
	closed   chan struct{}
	once     sync.Once
}

func newStream(w *wire, r request, body io.ReadCloser) *stream {
	s := &stream{w: w, resource: r.Resource, body: body, lines: bufio.NewReader(body), closed: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies = append(w.bodies, s)
	return s
}

// relist cuts the watches of a resource, and makes their next ones too old: what
// follows is a list, which is streamed.
func (w *wire) relist(resource string) {
	w.refuse(1, http.StatusGone, watchOf(resource))
	w.mu.Lock()
	bodies := slices.Clone(w.bodies)
	w.mu.Unlock()
	for _, s := range bodies {
		if s.resource == resource {
			_ = s.Close() // it is cut
		}
	}
}

// Read hands on what the filters let pass.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		e, err := parseEvent(s.resource, line)
		if err != nil {
			return 0, err
		}
		s.w.events.add(e)
		if s.w.passes(e, s.closed) {
			s.rest = line
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close ends the stream, and frees a Read that waits for a filter.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.body.Close()
}

func parseEvent(resource string, line []byte) (event, error) {
	var raw struct {
		Type   string
		Object struct {
			Metadata struct{ Name, ResourceVersion string }
		}
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return event{}, err
	}
	version, _ := strconv.ParseInt(raw.Object.Metadata.ResourceVersion, 10, 64) // an ERROR has none
	return event{Type: raw.Type, Resource: resource, Name: raw.Object.Metadata.Name, Version: version}, nil
}

// filter keeps events back.
type filter struct {
	match func(event) bool
	drop  bool          // they never come; otherwise the stream stands still
	open  chan struct{} // closed when it is lifted
	once  sync.Once
}

func (f *filter) lift() { f.once.Do(func() { close(f.open) }) }

// passes tells whether the event goes on, when it does.
func (w *wire) passes(e event, closed <-chan struct{}) bool {
	w.mu.Lock()
	filters := slices.Clone(w.filter)
	w.mu.Unlock()
	for _, f := range filters {
		if !f.match(e) {
			continue
		}
		if f.drop {
			select {
			case <-f.open:
				continue
			default:
				return false
			}
		}
		select {
		case <-f.open:
		case <-w.lifted:
		case <-closed:
			return false
		}
	}
	return true
}

// holdEvents makes the stream stand still at the first event that matches, until
// the test lifts it.
func (w *wire) holdEvents(match func(event) bool) (lift func()) {
	return w.addFilter(&filter{match: match, open: make(chan struct{})})
}

// dropEvents makes events that match never come, until the test lifts it.
func (w *wire) dropEvents(match func(event) bool) (lift func()) {
	return w.addFilter(&filter{match: match, drop: true, open: make(chan struct{})})
}

func (w *wire) addFilter(f *filter) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filter = append(w.filter, f)
	return f.lift
}

// lift ends whatever is done to requests and events, for good.
func (w *wire) lift() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules, w.filter = nil, nil
	select {
	case <-w.lifted:
	default:
		close(w.lifted)
	}
}

// of matches the changes of one object.
func of(resource, name string) func(event) bool {
	return func(e event) bool {
		return e.Resource == resource && e.Name == name && e.Type != "BOOKMARK"
	}
}

// came waits until the server has sent an event.
func (w *wire) came(t *testing.T, what string, match func(event) bool) event {
	t.Helper()
	return w.events.nth(t, 1, what, match)
}
