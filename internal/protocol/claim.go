package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Version is the highest claim version that this code understands.
const Version = 1

// Claim is what one annotation on the object says: whose the thing outside is,
// and how far its life has come. It is written before the first effect. A Claim
// is comparable.
type Claim struct {
	V int

	// What the reference is made from.
	Controller, Cluster, Namespace, Name, UID string

	Owner  string // UID of the object that holds it
	Holder string // namespace/name of the Lease; empty without one

	Incarnation int
	Attempt     int
	Next        int    // the incarnation that replaces this one; 0 for none
	ID          string // of the incarnation before this one, or of the old one beside Next
	Seen        bool   // this incarnation was outside: known from a restore or a rebuild

	Guarantee string
	Window    time.Duration
	Scope     string
	Time      int64 // Unix seconds of the first call with this key
	Term      int64 // Unix nanoseconds of when the term began that last took the claim up
	Recreated int   // times in a row that what stood was lost and made anew
	Answered  Answered
	Released  bool

	unknown string // fields of other versions, as one JSON object, kept as they are
}

// Answered records, by annotation, the last value that was acted on.
type Answered struct {
	Adopt       string `json:"adopt,omitempty"`
	New         string `json:"new,omitempty"`
	Outcome     string `json:"outcome,omitempty"`
	ReconcileAt string `json:"reconcile-at,omitempty"`
}

// wire is the claim's JSON.
type wire struct {
	V           int      `json:"v"`
	Controller  string   `json:"controller"`
	Cluster     string   `json:"cluster"`
	Namespace   string   `json:"namespace,omitempty"`
	Name        string   `json:"name"`
	UID         string   `json:"uid"`
	Owner       string   `json:"owner"`
	Holder      string   `json:"holder,omitempty"`
	Incarnation int      `json:"incarnation"`
	Attempt     int      `json:"attempt"`
	Next        int      `json:"next,omitempty"`
	ID          string   `json:"id,omitempty"`
	Seen        bool     `json:"seen,omitempty"`
	Guarantee   string   `json:"guarantee"`
	Window      string   `json:"window"`
	Scope       string   `json:"scope,omitempty"`
	Time        string   `json:"time,omitempty"`
	Term        int64    `json:"term,omitempty,string"`
	Recreated   int      `json:"recreated,omitempty"`
	Answered    Answered `json:"answered,omitzero"`
	Released    bool     `json:"released,omitempty"`
}

var known = func() map[string]bool {
	all := wire{
		Namespace: "x", Holder: "x", Next: 1, ID: "x", Seen: true, Scope: "x", Time: "x", Term: 1, Recreated: 1,
		Answered: Answered{Adopt: "x"}, Released: true,
	}
	raw, err := json.Marshal(all)
	fields := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for name := range fields {
		names[name] = true
	}
	return names
}()

// ErrNewer says that a claim is of a version that only a newer program may touch.
var ErrNewer = errors.New("the claim is of a newer version")

// ParseClaim reads the annotation. An error other than [ErrNewer] says that it is
// not a claim, and why.
func ParseClaim(raw string) (Claim, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		return Claim{}, fmt.Errorf("not a JSON object: %w", err)
	}
	var w wire
	if err := json.Unmarshal(fields["v"], &w.V); err != nil || w.V < 1 {
		return Claim{}, errors.New(`field "v" is missing or not a positive number`)
	}
	if w.V > Version {
		return Claim{}, fmt.Errorf("%w: %d, this program knows %d", ErrNewer, w.V, Version)
	}
	if err := json.Unmarshal([]byte(raw), &w); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return Claim{}, fmt.Errorf("field %q is a %s, which it must not be", wrong.Field, wrong.Value)
		}
		return Claim{}, err
	}
	c, err := w.claim()
	if err != nil {
		return Claim{}, err
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return known[name] })
	if len(fields) > 0 {
		rest, err := json.Marshal(fields)
		if err != nil {
			return Claim{}, err
		}
		c.unknown = string(rest)
	}
	return c, nil
}

// mostIncarnations is more than an object lives to see. Whose a thing is, is found
// by deriving the reference of every incarnation: a claim that says another number
// must not keep a worker busy with that.
const mostIncarnations = 100_000

// LongestWindow bounds what a claim can make its readers wait for.
const LongestWindow = 7 * 24 * time.Hour

func (w wire) claim() (Claim, error) {
	c := Claim{
		V: w.V, Controller: w.Controller, Cluster: w.Cluster, Namespace: w.Namespace, Name: w.Name, UID: w.UID,
		Owner: w.Owner, Holder: w.Holder, Incarnation: w.Incarnation, Attempt: w.Attempt, Next: w.Next, ID: w.ID,
		Seen: w.Seen, Guarantee: w.Guarantee, Scope: w.Scope, Term: w.Term, Recreated: w.Recreated, Answered: w.Answered, Released: w.Released,
	}
	switch {
	case c.Incarnation < 1:
		return c, errors.New(`field "incarnation" is missing or not a positive number`)
	case c.Attempt < 1:
		return c, errors.New(`field "attempt" is missing or not a positive number`)
	case c.Incarnation > mostIncarnations || c.Next > mostIncarnations:
		return c, fmt.Errorf(`field "incarnation" or "next" is above %d`, mostIncarnations)
	case c.Next != 0 && c.Next <= c.Incarnation:
		return c, errors.New(`field "next" is not above "incarnation"`)
	case c.UID == "" || c.Name == "" || c.Controller == "" || c.Cluster == "" || c.Owner == "":
		return c, errors.New(`one of the fields "controller", "cluster", "name", "uid" and "owner" is missing`)
	}
	if w.Window != "" {
		d, err := time.ParseDuration(w.Window)
		if err != nil || d < 0 || d > LongestWindow {
			return c, fmt.Errorf(`field "window" is not a duration of at most %v: %q`, LongestWindow, clipped(w.Window))
		}
		c.Window = d
	}
	if w.Time != "" {
		at, err := time.Parse(time.RFC3339, w.Time)
		if err != nil {
			return c, fmt.Errorf(`field "time" is not an RFC 3339 time: %q`, w.Time)
		}
		c.Time = at.Unix()
	}
	return c, nil
}

// String is the annotation's value.
func (c Claim) String() string {
	w := wire{
		V: c.V, Controller: c.Controller, Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		Owner: c.Owner, Holder: c.Holder, Incarnation: c.Incarnation, Attempt: c.Attempt, Next: c.Next, ID: c.ID,
		Seen: c.Seen, Guarantee: c.Guarantee, Window: c.Window.String(), Scope: c.Scope, Term: c.Term, Recreated: c.Recreated, Answered: c.Answered,
		Released: c.Released,
	}
	if c.Time != 0 {
		w.Time = time.Unix(c.Time, 0).UTC().Format(time.RFC3339)
	}
	raw, _ := json.Marshal(w) // strings, numbers and bools always marshal
	if c.unknown == "" {
		return string(raw)
	}
	return string(raw[:len(raw)-1]) + "," + c.unknown[1:]
}
