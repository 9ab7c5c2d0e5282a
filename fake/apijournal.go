package fake

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetherkube/tether/internal/apiserver/endpoint"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// APIEntry is what the journal says of one request.
type APIEntry struct {
	Seq   int           // 1, 2, … in the order of arrival
	Time  time.Time     // of arrival, by the clients' clock
	Since time.Duration // from the making of the server to Time
	User  string        // empty where none was accepted

	// Verb is as RBAC has it: get, list, watch, create, …; for a path that is no
	// resource the method in lower case.
	Verb                     string
	Group, Version, Resource string // Resource with its subresource, as tickets/status
	Namespace, Name          string
	Path                     string
	// ContentType is that of the body; it tells one kind of patch from another.
	ContentType string
	DryRun      bool

	// Before and After are the object around what the request did, as stored, in
	// JSON: equal where nothing changed, nil where there was or is none. They are
	// not to be written to.
	Before, After []byte
	// Events is how many events a watch has been given to, bookmarks not counted.
	Events int
	// Status is the HTTP status that was answered. It is 0 while the request runs,
	// and where the connection was cut.
	Status int
	// Reason is that of an error.
	Reason string
	// Faults are those that met the request.
	Faults []APIFaultKind
	// Done says that the entry does not change any more.
	Done bool
}

// Changed says that the request changed what is stored.
func (e APIEntry) Changed() bool { return !e.DryRun && !bytes.Equal(e.Before, e.After) }

// String is one line, without the date, so that two runs can be compared.
func (e APIEntry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d +%v", e.Seq, e.Since.Round(time.Millisecond))
	if e.User != "" {
		b.WriteString(" " + e.User)
	}
	b.WriteString(" " + e.Verb)
	if e.Resource == "" {
		b.WriteString(" " + e.Path)
	} else {
		b.WriteString(" " + e.Resource)
		if where := e.place(); where != "" {
			b.WriteString(" " + where)
		}
	}
	if e.DryRun {
		b.WriteString(" dry-run")
	}
	switch {
	case !e.Done && e.Status == 0:
		b.WriteString(" running")
	case e.Status == 0:
		b.WriteString(" cut")
	default:
		fmt.Fprintf(&b, " %d", e.Status)
	}
	if e.Reason != "" {
		b.WriteString(" " + e.Reason)
	}
	if e.Events > 0 {
		fmt.Fprintf(&b, " events=%d", e.Events)
	}
	if e.Changed() {
		b.WriteString(" " + strings.Join(differences(e.Before, e.After), " "))
	}
	for _, f := range e.Faults {
		b.WriteString(" fault=" + string(f))
	}
	return b.String()
}

// place is the namespace and name, as far as there are any. A namespace is in
// itself.
func (e APIEntry) place() string {
	if e.Namespace == "" || e.Resource == "namespaces" || strings.HasPrefix(e.Resource, "namespaces/") {
		return e.Name
	}
	return strings.TrimSuffix(e.Namespace+"/"+e.Name, "/")
}

// arrived, finished and clone are for the journal.
func (e APIEntry) arrived(seq int, at time.Time, since time.Duration) APIEntry {
	e.Seq, e.Time, e.Since = seq, at, since
	return e
}

func (e APIEntry) finished() bool { return e.Done }

func (e APIEntry) clone() APIEntry {
	e.Faults = slices.Clone(e.Faults)
	return e
}

// entryFor is the entry of an exchange that begins.
func entryFor(x *endpoint.Exchange) APIEntry {
	e := APIEntry{
		User: x.User.Name, Verb: x.Verb, Group: x.Group, Version: x.Target.Version, Resource: x.Resource, Namespace: x.Namespace, Name: x.Name,
		Path: x.Path, ContentType: x.Request.Header.Get("Content-Type"),
	}
	if x.Subresource != "" {
		e.Resource += "/" + x.Subresource
	}
	return e
}

// answered notes what became of an exchange; a nil answer was cut.
func (e *APIEntry) answered(x *endpoint.Exchange, a *endpoint.Answer) {
	e.User, e.Name, e.DryRun = x.User.Name, x.Name, x.DryRun
	e.Before, e.After = bytesOf(x.Before), bytesOf(x.After)
	if a != nil {
		e.Status = a.Code
		if a.Status != nil {
			e.Reason = string(a.Status.Reason)
		}
	}
	e.Done = a == nil || !a.Streams()
}

func bytesOf(o *storage.Object) []byte {
	if o == nil {
		return nil
	}
	return o.Data
}

// Journal is every entry so far, oldest first, up to JournalLimit of the newest.
// The slice is the caller's.
func (s *APIServer) Journal() []APIEntry { return s.journal.snapshot() }

// Transcript is the journal for people, one line for each entry.
func (s *APIServer) Transcript() string { return s.journal.transcript() }

// Await waits until an entry that match accepts is in the journal, and answers
// the first such. An entry is looked at when it arrives, when it is answered, and
// when an event is given to a watch. Where ctx ends first, the error holds the
// transcript.
func (s *APIServer) Await(ctx context.Context, match func(APIEntry) bool) (APIEntry, error) {
	return s.journal.await(ctx, match)
}

// Writes counts the requests in the journal, by verb, that changed something of a
// resource: tickets, or tickets/status for its subresource alone.
func (s *APIServer) Writes(resource string) map[string]int {
	counts := map[string]int{}
	for _, e := range s.Journal() {
		if e.Resource == resource && e.Changed() {
			counts[e.Verb]++
		}
	}
	return counts
}

type entryKey struct{}

// withEntry lets what serves a request find its entry.
func withEntry(ctx context.Context, e *note[APIEntry]) context.Context {
	return context.WithValue(ctx, entryKey{}, e)
}

func entryOf(ctx context.Context) *note[APIEntry] {
	e, _ := ctx.Value(entryKey{}).(*note[APIEntry])
	return e
}
