package endpoint

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// serve sends events until the watch ends.
func (s *stream) serve(w http.ResponseWriter) {
	s.w, s.flush = w, http.NewResponseController(w).Flush
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
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

// sendInitial sends what is there already.
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
