package endpoint

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
