package fake

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// apiJournal holds the entries.
type apiJournal struct {
	start time.Time
	limit int
	log   func(APIEntry) // nil for none; called without the lock

	mu      sync.Mutex // guards what follows
	seq     int
	entries []*APIEntry
	changed chan struct{} // closed and replaced at every change; nil while nobody waits
}

func newAPIJournal(limit int, log func(APIEntry)) *apiJournal {
	return &apiJournal{start: time.Now(), limit: limit, log: log}
}

// add appends an entry of an exchange that begins.
func (j *apiJournal) add(x *endpoint.Exchange) *APIEntry {
	e := &APIEntry{
		User: x.User.Name, Verb: x.Verb, Group: x.Group, Version: x.Target.Version, Resource: x.Resource, Namespace: x.Namespace, Name: x.Name,
		Path: x.Path, ContentType: x.Request.Header.Get("Content-Type"),
	}
	if x.Subresource != "" {
		e.Resource += "/" + x.Subresource
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	e.Seq, e.Time = j.seq, time.Now()
	e.Since = e.Time.Sub(j.start)
	if len(j.entries) >= j.limit {
		j.entries = j.entries[1:]
	}
	j.entries = append(j.entries, e)
	j.announceLocked()
	return e
}

// update changes an entry that add gave out.
func (j *apiJournal) update(e *APIEntry, f func(*APIEntry)) {
	j.mu.Lock()
	done := e.Done
	f(e)
	finished := e.Done && !done
	snapshot := e.clone()
	j.announceLocked()
	j.mu.Unlock()
	if finished && j.log != nil {
		j.log(snapshot)
	}
}

// finish notes what became of an exchange; a nil answer was cut.
func (j *apiJournal) finish(e *APIEntry, x *endpoint.Exchange, a *endpoint.Answer) {
	j.update(e, func(e *APIEntry) {
		e.User, e.Name, e.DryRun = x.User.Name, x.Name, x.DryRun
		e.Before, e.After = bytesOf(x.Before), bytesOf(x.After)
		if a != nil {
			e.Status = a.Code
			if a.Status != nil {
				e.Reason = string(a.Status.Reason)
			}
		}
		e.Done = a == nil || !a.Streams()
	})
}

func bytesOf(o *storage.Object) []byte {
	if o == nil {
		return nil
	}
	return o.Data
}

func (e *APIEntry) clone() APIEntry {
	c := *e
	c.Faults = slices.Clone(e.Faults)
	return c
}

func (j *apiJournal) announceLocked() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

func (j *apiJournal) snapshot() ([]APIEntry, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	entries := make([]APIEntry, 0, len(j.entries))
	for _, e := range j.entries {
		entries = append(entries, e.clone())
	}
	return entries, j.changed
}

// Journal is every entry so far, oldest first, up to JournalLimit of the newest.
// The slice is the caller's.
func (s *APIServer) Journal() []APIEntry {
	entries, _ := s.journal.snapshot()
	return entries
}

// Transcript is the journal for people, one line for each entry.
func (s *APIServer) Transcript() string {
	var b strings.Builder
	for _, e := range s.Journal() {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// Await waits until an entry that match accepts is in the journal, and answers
// the first such. An entry is looked at when it arrives, when it is answered, and
// when an event is given to a watch. Where ctx ends first, the error holds the
// transcript.
func (s *APIServer) Await(ctx context.Context, match func(APIEntry) bool) (APIEntry, error) {
	for {
		entries, changed := s.journal.snapshot()
		for _, e := range entries {
			if match(e) {
				return e, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return APIEntry{}, fmt.Errorf("fake: no such entry in the API server's journal: %w\n%s", context.Cause(ctx), s.Transcript())
		}
	}
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
func withEntry(ctx context.Context, e *APIEntry) context.Context {
	return context.WithValue(ctx, entryKey{}, e)
}

func entryOf(ctx context.Context) *APIEntry {
	e, _ := ctx.Value(entryKey{}).(*APIEntry)
	return e
}
