package endpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

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
	if s.cursor != nil {
		x.over = s.cursor.Close
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
		return gone(err, s.x)
	}
	if asked == 0 {
		asked = now
	}
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
