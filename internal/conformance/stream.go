package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
)

// stream is a watch.
type stream struct {
	body   io.ReadCloser
	events *json.Decoder
}

// watch begins a watch, whose path has a query already. It ends with the test.
func (e *env) watch(t *testing.T, path string) *stream {
	t.Helper()
	return e.watchAs(t, path, jsonType)
}

func (e *env) watchAs(t *testing.T, path, accept string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	res, err := e.open(ctx, request{method: http.MethodGet, path: path + "&watch=1", accept: accept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body) // the code says what is wrong
		t.Fatalf("watch %s: %d %s", e.expand(path), res.StatusCode, body)
	}
	d := json.NewDecoder(res.Body)
	d.UseNumber()
	return &stream{body: res.Body, events: d}
}

// event is one event of a watch.
type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

func (ev event) String() string { return ev.Type + " " + ev.Object.name() }

// next waits for an event.
func (s *stream) next(t *testing.T) event {
	t.Helper()
	var ev event
	if err := s.events.Decode(&ev); err != nil {
		t.Fatalf("the watch has no more events: %v", err)
	}
	return ev
}

// wants waits for events, told as their type and the object's name.
func (s *stream) wants(t *testing.T, want ...string) (last event) {
	t.Helper()
	for _, w := range want {
		if last = s.next(t); last.String() != w {
			t.Fatalf("the watch has %s %s, want %s", last, last.Object.json(), w)
		}
	}
	return last
}

// until waits for an event that is what is looked for.
func (s *stream) until(t *testing.T, is func(event) bool) event {
	t.Helper()
	for {
		if ev := s.next(t); is(ev) {
			return ev
		}
	}
}

// ends waits for the end of a watch, and tells what came before.
func (s *stream) ends(t *testing.T) (events []event) {
	t.Helper()
	for {
		var ev event
		switch err := s.events.Decode(&ev); {
		case errors.Is(err, io.EOF):
			return events
		case err != nil:
			t.Fatalf("the watch ends with %v", err)
		}
		events = append(events, ev)
	}
}

// awaited reads an object, and goes on by watching until it is what is looked for.
func (e *env) awaited(t *testing.T, list, name string, is func(object) bool) object {
	t.Helper()
	all := e.get(t, list+"?fieldSelector=metadata.name%3D"+name)
	for _, o := range all.items() {
		if is(o) {
			return o
		}
	}
	ev := e.watch(t, list+"?fieldSelector=metadata.name%3D"+name+"&resourceVersion="+all.version()).until(t, func(ev event) bool {
		return ev.Type != "DELETED" && is(ev.Object)
	})
	return ev.Object
}

// gone waits until there is no object of the name.
func (e *env) gone(t *testing.T, list, name string) {
	t.Helper()
	all := e.get(t, list+"?fieldSelector=metadata.name%3D"+name)
	if len(all.items()) == 0 {
		return
	}
	e.watch(t, list+"?fieldSelector=metadata.name%3D"+name+"&resourceVersion="+all.version()).until(t, func(ev event) bool { return ev.Type == "DELETED" })
}

// eventually asks until something holds. It is for what the real server does in
// its own time, by watches of its own, where nothing tells a client when it has:
// rights, schemas, and what is published of them.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatal("it does not come to that")
		}
	}
}
