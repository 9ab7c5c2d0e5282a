package fake

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// APIUser is who a bearer token stands for.
type APIUser struct {
	// Name is the user's; it stands in the journal.
	Name string
	// Groups are the user's, beside system:authenticated. One in system:masters may
	// do everything.
	Groups []string
}

// APIOptions configure an [APIServer]. The zero value works.
type APIOptions struct {
	// Seed fixes UIDs, generated names and drawn faults [0]. Servers that stand for
	// different clusters want different seeds: the UID of kube-system is a cluster's
	// identity.
	Seed uint64
	// Manifests are objects in YAML, each text with as many documents as it likes;
	// Objects are objects as Go values or unstructured. They are created in this
	// order, after definitions of custom resources and namespaces [none].
	Manifests []string
	// Objects: see Manifests. They are not changed [none].
	Objects []runtime.Object
	// Admission is asked in this order about every write; it stands in for the CEL
	// and webhooks that the server does not have [none].
	Admission []APIAdmission

	// Users are who the bearer tokens stand for. With any, a request without a token
	// is of system:anonymous, and one with another token is refused with 401
	// [none: every request may do everything].
	Users map[string]APIUser
	// RBAC says that users may do what roles and bindings in the server say, and no
	// more [false].
	RBAC bool
	// TLS says that the server has a certificate, of an authority of its own [false].
	TLS bool

	// HistoryLimit is how many changes of each resource are kept for watches and for
	// lists of the past, at least [10000].
	HistoryLimit int
	// BookmarkInterval is the time between the bookmarks of a watch [1m].
	BookmarkInterval time.Duration
	// NoControllers leaves out what a kube-controller-manager does: garbage is not
	// collected, and namespaces are not emptied [false].
	NoControllers bool
	// ClockAhead is how far the server's clock is ahead; see SetClockAhead [0].
	ClockAhead time.Duration

	// JournalLimit is how many entries are kept; the oldest go first [10000].
	JournalLimit int
	// Log is called with each entry when it is done, by the goroutine that served
	// the request [nil].
	Log func(APIEntry)
}

// Validate says what is wrong with o, and names each field.
func (o APIOptions) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.HistoryLimit < 0 || o.JournalLimit < 0 {
		bad("HistoryLimit and JournalLimit: want no negative numbers")
	}
	if o.BookmarkInterval < 0 {
		bad("BookmarkInterval: %v is negative: want a duration from 0 on", o.BookmarkInterval)
	}
	for token, u := range o.Users {
		if token == "" || u.Name == "" {
			bad("Users: a token or a name is empty: want both for %q", u.Name)
		}
	}
	if o.RBAC && len(o.Users) == 0 {
		bad("RBAC: there is nobody whose rights could be looked at: give Users, by token")
	}
	for i, a := range o.Admission {
		if a == nil {
			bad("Admission[%d]: is nil", i)
		}
	}
	return errors.Join(errs...)
}

func (o APIOptions) withDefaults() APIOptions {
	if o.HistoryLimit == 0 {
		o.HistoryLimit = 10_000
	}
	if o.JournalLimit == 0 {
		o.JournalLimit = 10_000
	}
	if o.BookmarkInterval == 0 {
		o.BookmarkInterval = time.Minute
	}
	return o
}
