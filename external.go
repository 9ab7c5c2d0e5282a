package tether

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tetherkube/tether/internal/protocol"
)

// External is something outside the cluster that stands for an object: a booking,
// a bucket, a record. The author says how to observe, create, update and delete
// one; [Manage] decides when, so that each effect happens exactly once, within
// what the outside's [Guarantee] allows.
//
// Each method gets a private copy of the object, and fills obj.Status from what it
// saw, but for the id, which the library alone sets and clears; status is rebuilt
// from the outside, so losing it loses nothing. obj is otherwise to be read. The
// methods may be called concurrently, for different objects.
//
// A call ends in one of three ways. Done: an Observation of what stands now.
// Rejected: an error that says that definitely nothing took effect, [Terminal]
// where only a change of the object can help, else [NoEffect]. Unknown: any other
// error, a time-out or a panic among them; the library finds out by looking, and
// repeats a call with the same key. A rejection that the outside had kept under
// the key is of what was asked then: it is a NoEffect, and not Terminal.
type External[T Object] interface {
	// Observe looks by c.ID when that is known, else by c.Reference. Not finding it
	// is an answer (State Absent); an error means that it cannot tell. A 403 is an
	// error, and not an absence.
	Observe(ctx context.Context, obj T, c Call) (Observation, error)
	// Create makes it, stores c.Reference beside it, and sends c.Key as the
	// idempotency key where the outside knows such keys. It sends one request: a client
	// that repeats by itself is told not to (see docs/errors.md for net/http).
	Create(ctx context.Context, obj T, c Call) (Observation, error)
	// Update makes what was seen as the spec says, where possible on condition that
	// seen.Version still holds.
	Update(ctx context.Context, obj T, c Call, seen Observation) (Observation, error)
	// Delete ends what was seen. That it has ended already is no error, and neither is
	// that there is nothing left to end, since it ran its natural course: the answer
	// to both is Ended. An Observe of an object that is being deleted says Ended of
	// such a thing too.
	Delete(ctx context.Context, obj T, c Call, seen Observation) (Observation, error)
}

// Call is what identifies a call to the outside.
type Call struct {
	// Reference belongs to the thing: at most 63 characters of [a-z0-9-], derived for
	// this object and never the same for another one.
	Reference string
	// Key is the idempotency key of a create, update or delete: the same for a
	// repetition, and only for that. It is empty in an Observe.
	Key string
	// ID is the outside's id, where it is known.
	ID string
}

// State is how a thing outside stands.
type State uint8

// The states of an [Observation]. The zero value is none of them, and a mistake.
const (
	Absent    State = iota + 1 // not there
	Closed                     // not there, and no create with this reference can take effect any more
	Pending                    // there, and on its way to Present or Failed
	Present                    // there; what ran its natural course is Present too
	Ended                      // was there, and is not any more
	Failed                     // ended, and was never Present
	Ambiguous                  // several live ones carry the reference; Message names them
)

// String is the state's name.
func (s State) String() string { return protocol.State(s).String() }

// Observation is what a call saw.
type Observation struct {
	State     State
	ID        string   // the outside's id
	Reference string   // as the outside tells it: what is not this object's is left alone; "" only where nobody gave it one
	Version   string   // an ETag or the like; "" where there is none
	Replay    bool     // an earlier answer, kept under the key: it happened, but how it stands a look-up must tell
	Differs   []string // paths of spec in which it is not as wanted; empty: as wanted
	Replace   bool     // … and it cannot be changed in place
	Reason    string   // for the condition, CamelCase; "" for the library's own
	Message   string   // for people; no token, body or request id
}

// Fencer is an optional part of an [External]: a way to close a reference, so that
// no create with it takes effect any more. The answer is what exists. c.Key is a
// new one each time, since closing twice is as good as once.
type Fencer[T Object] interface {
	Fence(ctx context.Context, obj T, c Call) (Observation, error)
}

// Rebinder is an optional part of an [External]: it puts a thing under another
// reference, c.Reference. It is needed to adopt what was made by others, and to keep
// what a policy retains out of the reach of a later object. Where
// possible it does so on condition that seen.Version still holds. A reference that
// was fenced is never asked for.
type Rebinder[T Object] interface {
	Rebind(ctx context.Context, obj T, c Call, seen Observation) (Observation, error)
}

// Scoper is an optional part of an [External]: the account, region or tenant that
// the credentials for an object reach. What was made in one scope is not looked for
// in another, where its absence would prove nothing. It makes no call.
type Scoper[T Object] interface {
	Scope(ctx context.Context, obj T) (string, error)
}

// Lister is an optional part of an [External]: everything outside that carries a
// reference. What belongs to this cluster and to none of its objects is reported,
// in the log and through [Hooks], and never touched.
type Lister interface {
	List(ctx context.Context) iter.Seq2[Listed, error]
}

// Listed is one thing of a [Lister].
type Listed struct {
	Reference string
	ID        string
	State     State
}

// Validator is an optional part of an [External]: what is wrong with the object,
// before anything is written or called. It makes no call. The object is Stalled, with the
// error behind "invalid: "; unlike a rejection by the outside, it is asked anew by each
// pass, also of a program that starts anew.
type Validator[T Object] interface {
	Validate(ctx context.Context, obj T) error
}

// Guarantee is what the outside offers against a call that is made twice.
type Guarantee uint8

// The guarantees, strongest first.
const (
	// UniqueReference: a reference is accepted once, for ever, ended things included.
	UniqueReference Guarantee = iota + 1
	// UniqueLiveReference: a reference is accepted while no live thing carries it.
	UniqueLiveReference
	// IdempotencyKeys: a create that is repeated with its key takes effect once,
	// within ManageOptions.KeyLifetime.
	IdempotencyKeys
	// LookupOnly: things can be found by reference, and that is all.
	LookupOnly
	// None: they cannot even be found. An unknown outcome waits for a person.
	None
)

// Drift is what to do about a thing that changed outside although nobody changed
// the object.
type Drift uint8

// The drift policies.
const (
	CorrectDrift Drift = iota // put it right
	ReportDrift               // say so in status
	IgnoreDrift               // nothing
)

// Deletion is what happens outside when the object is deleted.
type Deletion uint8

// The deletion policies.
const (
	DeleteOutside Deletion = iota // it is deleted
	RetainOutside                 // it stays
)

// Loss is what to do about a thing that is gone although nobody here ended it.
type Loss uint8

// The loss policies.
const (
	ReportLoss   Loss = iota // Stalled, until a person decides
	RecreateLoss             // make it anew, unless much is lost at once, or the same again and again
)

// Replacement is the order in which one thing replaces another.
type Replacement uint8

// The orders.
const (
	CreateFirst Replacement = iota // never none
	DeleteFirst                    // never two
)

// Policy is the author's wish for one object. The zero value reports a loss,
// deletes, corrects drift and creates first.
type Policy struct {
	OnLost      Loss
	Deletion    Deletion
	Drift       Drift
	Replace     Replacement
	ObserveOnly bool // never act on the outside
}

// ManageOptions configure a managed controller: [Options], and what the outside is.
type ManageOptions[T Object] struct {
	Options

	// ID says where in status the outside's id is kept. Required.
	ID func(obj T) *string
	// Guarantee is what the outside offers. Required.
	Guarantee Guarantee
	// KeyLifetime is how long the outside keeps an idempotency key, at least two
	// windows of Settle; a create that could be repeated later is handled as with
	// LookupOnly [for ever].
	KeyLifetime time.Duration
	// CallTimeout is the deadline of one call, within that of the pass [30 s].
	CallTimeout time.Duration
	// Settle is the window within which a call in the air lands or never does, and
	// look-ups by reference show what has landed; at least CallTimeout [1 min].
	Settle time.Duration
	// Policy is the author's wish for one object; it must be pure [the zero Policy].
	Policy func(obj T) Policy
	// ClusterID names this cluster in references [the UID of namespace kube-system].
	ClusterID string
	// FormerClusterIDs are what it was before [none].
	FormerClusterIDs []string
	// Formerly are the names, as "<Domain>/<Name>", that this controller had before.
	// What carries a claim or a finalizer under one of them is taken over [none].
	Formerly []string
	// AllowAdopt says whether an object may adopt what stands outside, as its
	// annotation "<Domain>/<Name>.adopt" asks; an error is the reason why not. It
	// must be pure [never].
	AllowAdopt func(obj T, seen Observation) error
}

// Manage makes a controller from an [External]: something outside the cluster,
// exactly once. It starts nothing. T is a Go type with a Status, where the outside's id
// is kept; *unstructured.Unstructured has none.
func Manage[T Object](in *Informer[T], e External[T], o ManageOptions[T]) *Controller {
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = max(defaultTimeout, 4*o.CallTimeout)
	}
	if o.Settle == 0 {
		o.Settle = max(time.Minute, o.CallTimeout)
	}
	o.Formerly = slices.Clip(slices.Clone(o.Formerly)) // it is appended to
	c := newController(in, o.Options)
	c.external = &managedBy[T]{External: e, opts: o}
	for _, name := range o.Formerly {
		c.former = append(c.former, newNames(name))
	}
	c.external.fencer, _ = e.(Fencer[T])
	c.external.validator, _ = e.(Validator[T])
	c.external.rebinder, _ = e.(Rebinder[T])
	c.external.scoper, _ = e.(Scoper[T])
	c.external.lister, _ = e.(Lister)
	return &Controller{c}
}

// managedBy is what a managed controller has beside an ordinary one.
type managedBy[T Object] struct {
	External[T]
	fencer    Fencer[T]    // nil: it is none
	validator Validator[T] // nil: it is none
	rebinder  Rebinder[T]  // nil: it is none
	scoper    Scoper[T]    // nil: it is none
	lister    Lister       // nil: it is none
	opts      ManageOptions[T]
}

func (m *managedBy[T]) mistakes(c *controller[T]) []string {
	var wrong []string
	say := func(s string) { wrong = append(wrong, s) }
	o := m.opts
	if isNil(m.External) {
		say("the External is nil; give one")
	}
	if c.status.unstructured {
		say("Resource: what is managed needs a Go type with a Status, in which the outside's id is kept; *unstructured.Unstructured has none")
	}
	if o.ID == nil {
		say("ManageOptions.ID: it is missing; say where in status the outside's id is kept, for example func(t *v1.Ticket) *string { return &t.Status.BookingID }")
	}
	if o.ID != nil && !c.status.unstructured && c.status.status != nil {
		if m := misplacedID(c.status, o.ID); m != "" {
			say("ManageOptions.ID: " + m + "; return the address of a field of the given object's status, for example func(t *v1.Ticket) *string { return &t.Status.BookingID }")
		}
	}
	if o.Guarantee < UniqueReference || o.Guarantee > None {
		say("ManageOptions.Guarantee: it is missing; choose what the outside offers: UniqueReference, UniqueLiveReference, IdempotencyKeys, LookupOnly or None")
	}
	if o.CallTimeout < 0 || o.Settle < 0 || o.KeyLifetime < 0 {
		say("ManageOptions: CallTimeout, Settle or KeyLifetime is negative; give positive durations, or 0 for the defaults")
	}
	if o.Settle < o.CallTimeout {
		say("ManageOptions.Settle: " + o.Settle.String() + " is shorter than CallTimeout, " + o.CallTimeout.String() + "; a call could land after it; make it longer")
	}
	if o.CallTimeout > c.opts.Timeout {
		say("ManageOptions.CallTimeout: " + o.CallTimeout.String() + " is longer than a whole pass may take, Options.Timeout " + c.opts.Timeout.String() + "; lengthen Options.Timeout, or leave it 0")
	}
	if o.Settle > protocol.LongestWindow {
		say("ManageOptions.Settle: " + o.Settle.String() + " is longer than " + protocol.LongestWindow.String() + "; shorten it")
	}
	if o.KeyLifetime > 0 && o.KeyLifetime < 2*o.Settle {
		say("ManageOptions.KeyLifetime: " + o.KeyLifetime.String() + " is shorter than two windows of Settle; shorten Settle")
	}
	for _, name := range o.Formerly {
		domain, rest, _ := strings.Cut(name, "/")
		if len(validation.IsDNS1123Subdomain(domain)) > 0 || len(validation.IsDNS1123Label(rest)) > 0 || name == c.finalizerName() {
			say(fmt.Sprintf("ManageOptions.Formerly: %q is not a former name of this controller as <Domain>/<Name>, for example \"example.com/ticket\"", name))
		}
	}
	if o.AllowAdopt != nil && m.rebinder == nil && m.External != nil {
		say("ManageOptions.AllowAdopt: it is given, but the External is no Rebinder, without which nothing can be adopted; implement Rebind")
	}
	if !c.status.has() {
		say("Resource: the type has no Status, where the outside's id is kept; use a type that has one")
	}
	return wrong
}

// misplacedID tries out where an ID function points to. One that panics at an empty
// object tells nothing.
func misplacedID[T Object](f statusField[T], id func(T) *string) (mistake string) {
	defer func() { _ = recover() }()
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	status := f.value(obj, true)
	before := reflect.New(status.Type()).Elem()
	before.Set(status)
	p := id(obj)
	if p == nil {
		return "it returns nil"
	}
	was := *p
	*p = "tried out"
	same := reflect.DeepEqual(before.Interface(), status.Interface())
	if *p = was; same {
		return "what it points to is not in the object's status"
	}
	return ""
}
