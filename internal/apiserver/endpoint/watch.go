package endpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// Fate is what becomes of an event on its way to a watch. The zero Fate sends it.
type Fate struct {
	// Delay holds the event, and all after it, until so long after its commit.
	Delay time.Duration
	// Drop leaves it out, and Again sends it so many times more.
	Drop  bool
	Again int
	// Cut ends the connection before the event, without a word. Stall sends nothing
	// from here on and leaves the connection open. Expire ends the watch with 410.
	Cut, Stall, Expire bool
}

func (f Fate) ends() bool { return f.Cut || f.Stall || f.Expire }

// watch begins a stream; what is wrong with its beginning, the stream says.
func (h *Handler) watch(x *Exchange, res *catalog.Resource) (*Answer, error) {
	o, err := listOptions(x, res)
	if err != nil {
		return nil, err
	}
	s := &stream{h: h, x: x, res: res, match: matcher(o), bookmarks: o.AllowWatchBookmarks}
	if res.Namespaced {
		s.namespace = x.Namespace
	}
	if err := s.begin(o); err != nil {
		if !errors.Is(err, storage.ErrExpired) {
			return nil, err
		}
		s.failed = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %s (%d)", o.ResourceVersion, h.Store.Version()))
	}
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		s.last = time.Duration(*o.TimeoutSeconds) * time.Second
	} else {
		s.last = h.WatchFor + rand.N(h.WatchFor) //nolint:gosec // spreads the ends of watches
	}
	return &Answer{Code: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, stream: s.serve}, nil
}

// stream is one watch.
type stream struct {
	h         *Handler
	x         *Exchange
	res       *catalog.Resource
	namespace string
	match     func(*storage.Object) bool
	bookmarks bool
	last      time.Duration // from beginning to end
	failed    error         // ends it at once

	initial []*storage.Object
	version uint64 // of initial
	mark    bool   // the end of initial is told
	cursor  *storage.Cursor

	w       http.ResponseWriter
	flush   func() error
	headers bool // the definitions of columns have been sent
}

// begin finds where the watch starts.
func (s *stream) begin(o *metainternal.ListOptions) error {
	store, table := s.h.Store, s.res.Table
	asked := uint64(0)
	if o.ResourceVersion != "" {
		var err error
		if asked, err = strconv.ParseUint(o.ResourceVersion, 10, 64); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
		}
	}
	now := store.Version()
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		if asked > now {
			return tooLarge(asked, now)
		}
		sel := storage.Selection{Namespace: s.namespace, Match: s.match}
		if s.x.StaleAt != 0 && o.ResourceVersion != "" && asked <= s.x.StaleAt {
			sel.At = s.x.StaleAt
		}
		list, cursor, err := store.WatchList(table, sel)
		if errors.Is(err, storage.ErrExpired) && sel.At != 0 {
			sel.At = 0 // a replica does not lag for ever
			list, cursor, err = store.WatchList(table, sel)
		}
		s.initial, s.version, s.cursor, s.mark = list.Objects, list.Version, cursor, o.AllowWatchBookmarks
		s.x.Listed = list.Version
		return gone(err, s.x)
	}
	if asked == 0 {
		asked = now
	}
	s.x.Listed = asked
	var err error
	s.cursor, err = store.Watch(table, asked)
	s.version = asked
	return gone(err, s.x)
}

// gone says that a table has just been dropped as the real server says it.
func gone(err error, x *Exchange) error {
	if errors.Is(err, storage.ErrDropped) {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, x.Verb, schema.GroupResource{Group: x.Group, Resource: x.Resource}, "", "404 page not found", 0, true)
	}
	return err
}

// serve sends events until the watch ends.
func (s *stream) serve(w http.ResponseWriter) {
	s.w, s.flush = w, http.NewResponseController(w).Flush
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	if s.cursor != nil {
		defer s.cursor.Close()
	}
	if s.failed != nil {
		s.fail(s.failed)
		return
	}
	if s.flush() != nil || !s.sendInitial() {
		return
	}
	timeout := time.NewTimer(s.last)
	defer timeout.Stop()
	bookmark := time.NewTimer(s.nextBookmark(time.Now().Add(s.last)))
	defer bookmark.Stop()
	s.follow(timeout, bookmark)
}

// nextBookmark is how long it is to the next bookmark of a watch that ends then:
// the last one comes two seconds before its end.
func (s *stream) nextBookmark(end time.Time) time.Duration {
	left := time.Until(end)
	if !s.bookmarks || left <= 0 {
		return left + time.Hour // never
	}
	if last := left - 2*time.Second; last > 0 && last < s.h.BookmarkEvery {
		return last
	}
	return s.h.BookmarkEvery
}

// follow sends what the cursor finds.
func (s *stream) follow(timeout, bookmark *time.Timer) {
	end := time.Now().Add(s.last)
	for {
		var stir <-chan struct{}
		if s.h.Stir != nil {
			stir = s.h.Stir()
		}
		events, version, changed, err := s.cursor.Next()
		switch {
		case errors.Is(err, storage.ErrExpired):
			s.fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", s.version, s.cursor.Oldest())))
			return
		case err != nil:
			return
		case len(events) > 0:
			for _, e := range events {
				if !s.event(e) {
					return
				}
			}
			s.version = version
			if s.flush() != nil || !s.gather() {
				return
			}
			continue
		}
		s.version = version
		if fate := s.fate(nil); fate.ends() {
			s.end(fate)
			return
		}
		select {
		case <-changed:
		case <-stir:
		case <-bookmark.C:
			if !s.write(s.bookmark(false)) || s.flush() != nil {
				return
			}
			bookmark.Reset(s.nextBookmark(end))
		case <-timeout.C:
			return
		case <-s.x.Request.Context().Done():
			return
		case <-s.h.Closing:
			return
		}
	}
}

// gather lets events come together where many watch one resource: each flush costs
// as much as many events, and all of them together would hold up whoever writes.
func (s *stream) gather() bool {
	const few, each, most = 10, 200 * time.Microsecond, 20 * time.Millisecond
	n := s.cursor.Beside()
	return n <= few || s.sleep(min(time.Duration(n)*each, most))
}

func (s *stream) fate(e *storage.Event) Fate {
	if s.h.Tap == nil {
		return Fate{}
	}
	return s.h.Tap(s.x, e)
}

// end ends the stream as a fate wants it.
func (s *stream) end(f Fate) {
	switch {
	case f.Expire:
		s.fail(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", s.version, s.h.Store.Version())))
	case f.Stall:
		s.flush() //nolint:errcheck // whether it arrives is all one
		select {
		case <-s.x.Request.Context().Done():
		case <-s.h.Closing:
		}
	default:
		panic(http.ErrAbortHandler)
	}
}

// event sends one event, if it is for this watch; false ends the watch.
func (s *stream) event(e *storage.Event) bool {
	change, whole := s.sees(e)
	if change == "" {
		return true
	}
	fate := s.fate(e)
	if fate.ends() {
		s.end(fate)
		return false
	}
	if fate.Drop {
		return true
	}
	if wait := time.Until(e.At.Add(fate.Delay)); fate.Delay > 0 && wait > 0 {
		if s.flush() != nil || !s.sleep(wait) {
			return false
		}
	}
	body := s.body(e, whole)
	for range 1 + fate.Again {
		if !s.send(change, body) {
			return false
		}
	}
	return true
}

func (s *stream) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.x.Request.Context().Done():
	case <-s.h.Closing:
	}
	return false
}

// sees is what an event is to this watch: what enters the selection was added to
// it, and what leaves was deleted, as it was before, with the version of now.
func (s *stream) sees(e *storage.Event) (change storage.Change, o *storage.Object) {
	if s.namespace != "" && e.Object.Namespace != s.namespace {
		return "", nil
	}
	if s.match == nil {
		return e.Change, e.Object
	}
	was := e.Old != nil && s.match(e.Old)
	is := e.Change != storage.Deleted && s.match(e.Object)
	switch {
	case is && was:
		return storage.Modified, e.Object
	case is:
		return storage.Added, e.Object
	case was && e.Change == storage.Deleted:
		return storage.Deleted, e.Object
	case was:
		return storage.Deleted, nil
	}
	return "", nil
}

// form is by what the encoded forms of an event are shared among watches.
type form struct {
	res     *catalog.Resource
	shape   shape
	include string
	left    bool
	headers bool
}

// body is the object of an event, encoded once for all watches of a kind. A nil
// object is the one before, which has left the selection.
func (s *stream) body(e *storage.Event, o *storage.Object) []byte {
	key := form{res: s.res, shape: s.x.accepted.shape, left: o == nil}
	if key.shape == tabular {
		key.include = s.x.Request.URL.Query().Get("includeObject")
		key.headers = !s.headers
		s.headers = true
	}
	if o == nil {
		o = e.Old
	}
	if key.shape == whole && !key.left && o.Form == s.res {
		return o.Data
	}
	return e.Encoded(key, func() []byte { return s.encode(o, e.Version(), key) })
}

func (s *stream) encode(o *storage.Object, version uint64, key form) []byte {
	if key.left {
		obj, err := s.h.Registry.Decode(s.res, o)
		if err != nil {
			return o.Data
		}
		o = s.h.Registry.At(s.res, obj, version)
	}
	if key.shape == whole {
		return s.h.Registry.Encoded(s.res, o)
	}
	data, err := s.h.shaped(s.x, s.res, []*storage.Object{o}, strconv.FormatUint(version, 10), "", 0, false)
	if err != nil {
		return s.h.Registry.Encoded(s.res, o)
	}
	if key.shape == tabular && !key.headers {
		data = withoutColumns(data)
	}
	return data
}

// withoutColumns is a table whose columns the client knows already.
func withoutColumns(data []byte) []byte {
	var t metav1.Table
	if json.Unmarshal(data, &t) != nil {
		return data
	}
	t.ColumnDefinitions = nil
	short, err := json.Marshal(t)
	if err != nil {
		return data
	}
	return short
}

func (s *stream) sendInitial() bool {
	for _, o := range s.initial {
		e := &storage.Event{Change: storage.Added, Object: o, At: time.Now()}
		if !s.event(e) {
			return false
		}
	}
	s.initial = nil
	if s.mark && !s.write(s.bookmark(true)) {
		return false
	}
	return s.flush() == nil
}

// bookmark is an event that says how far the watch has come.
func (s *stream) bookmark(end bool) []byte {
	m := map[string]any{"resourceVersion": strconv.FormatUint(s.version, 10)}
	if end {
		m["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	obj := map[string]any{"kind": s.res.Kind, "apiVersion": s.res.GroupVersion().String(), "metadata": m}
	switch s.x.accepted.shape {
	case metadata:
		obj["kind"], obj["apiVersion"] = "PartialObjectMetadata", "meta.k8s.io/v1"
	case tabular:
		row := map[string]any{"cells": []any{}, "object": map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": m}}
		obj = map[string]any{
			"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": m["resourceVersion"]},
			"columnDefinitions": nil, "rows": []any{row},
		}
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil // texts alone
	}
	return frame("BOOKMARK", body)
}

func frame(change string, body []byte) []byte {
	b := make([]byte, 0, len(body)+40)
	b = append(append(append(b, `{"type":"`...), change...), `","object":`...)
	return append(append(b, body...), "}\n"...)
}

func (s *stream) send(change storage.Change, body []byte) bool {
	return s.write(frame(string(change), body))
}

func (s *stream) write(b []byte) bool {
	_, err := s.w.Write(b)
	return err == nil
}

// fail ends the stream with an error.
func (s *stream) fail(err error) {
	body, marshalErr := json.Marshal(StatusOf(err))
	if marshalErr == nil && s.write(frame("ERROR", body)) {
		s.flush() //nolint:errcheck // it ends either way
	}
}
