package storage

import (
	"cmp"
	"sync"
	"time"
)

// Key names an object within a table. The namespace is empty for objects of the
// cluster.
type Key struct{ Namespace, Name string }

// compareKeys is the order of lists. A "/" ends a namespace, so that a namespace
// that begins with another's name comes where the real server has it.
func compareKeys(a, b Key) int {
	if a.Namespace != b.Namespace {
		return cmp.Compare(a.Namespace+"/", b.Namespace+"/")
	}
	return cmp.Compare(a.Name, b.Name)
}

// Object is one version of one object. Nothing of it is written to once it is
// stored, so that it is shared by all who read.
type Object struct {
	Key
	UID     string
	Version uint64
	// Data is the object in JSON, with Version as its resourceVersion.
	Data []byte
	// Form is what Data was encoded by: a comparable value of the caller's.
	Form any
	// Labels and Fields are what selectors look at. Name and namespace are not
	// among Fields.
	Labels, Fields map[string]string
	// Owners are the UIDs of its owners.
	Owners []string
}

// Change is what an event says.
type Change string

// The changes of an object.
const (
	Added    Change = "ADDED"
	Modified Change = "MODIFIED"
	Deleted  Change = "DELETED"
)

// Event is one committed change.
type Event struct {
	Change Change
	// Object is the state after the change; for a deletion the last state, with
	// the version of the deletion.
	Object *Object
	// Old is the state before; nil where there was none.
	Old *Object
	// At is when it was committed.
	At time.Time

	forms sync.Map // of *form by key
}

// Version is the version that the change made.
func (e *Event) Version() uint64 { return e.Object.Version }

type form struct {
	once sync.Once
	data []byte
}

// Encoded is what encode makes, called once for each key however many ask.
func (e *Event) Encoded(key any, encode func() []byte) []byte {
	v, ok := e.forms.Load(key)
	if !ok {
		v, _ = e.forms.LoadOrStore(key, &form{})
	}
	f := v.(*form)
	f.once.Do(func() { f.data = encode() })
	return f.data
}
