// Package tether is a library for Kubernetes controllers that act on something
// outside the cluster: effects there happen exactly once, whatever repeats, lags,
// crashes or gets lost.
//
// A custom resource only stores what is wanted. With Tether a controller for it is
// a type with a few methods, and a Run:
//
//	type flights struct{ api *booking.Client }
//
//	func (f *flights) Observe(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error) { … }
//	func (f *flights) Create(ctx context.Context, t *v1.Ticket, c tether.Call) (tether.Observation, error)  { … }
//	func (f *flights) Update(ctx context.Context, t *v1.Ticket, c tether.Call, seen tether.Observation) (tether.Observation, error) { … }
//	func (f *flights) Delete(ctx context.Context, t *v1.Ticket, c tether.Call, seen tether.Observation) (tether.Observation, error) { … }
//
//	var Tickets = tether.Resource[*v1.Ticket]{GroupVersion: v1.GroupVersion, Kind: "Ticket", Plural: "tickets"}
//
//	in := tether.NewInformer(Tickets, tether.InformerOptions{})
//	c := tether.Manage(in, &flights{api}, tether.ManageOptions[*v1.Ticket]{
//		ID:        func(t *v1.Ticket) *string { return &t.Status.BookingID },
//		Guarantee: tether.UniqueReference,
//	})
//	err := tether.Run(ctx, cfg, tether.RunOptions{SingleProcess: true}, c)
//
// There is no scheme, no manager, no clientset, no list type, and no generated
// code but deep copies. A [Resource] may be of a CRD type, a built-in one, or
// *unstructured.Unstructured.
//
// # The kinds of controller
//
// [Manage] makes one from an [External]: one thing outside for each object. The
// author says how to observe, create, update and delete it; the library decides
// when, records a claim on the object before the first effect, derives the
// reference and the idempotency keys that go with each call, and finds out what
// became of a call that nobody answered.
//
// [New] makes one from a [Reconciler], for everything else: it makes the world as
// the object says, through a [Client] for other objects, and reports in status.
//
// # The life of one pass
//
// A change reaches the informer's store, and queues the object's key in one of
// three lanes: people, retries, background. A worker takes the key, looks the
// object up, and gives the author a private copy: the one deep copy of the pass.
// What the author leaves in Status is written once, at the end, if it differs; own
// writes feed the store and start no pass. How a pass ends says when the next is:
//
//	returned              next pass                                   condition
//	Done                  at the next change, or the poll             Ready by the author, else True
//	After(d)              d ± 10 % later, or at a change              as set
//	Backoff(reason, …)    after the object's backoff; no error        Reconciling
//	error                 after the object's backoff                  Ready False or Unknown, Reconciling
//	RetryAfter(err, d)    not before d, whatever happens              the same
//	Terminal(err)         none until spec, a watched secondary or     Stalled
//	                      the reconcile-at annotation changes
//
// An error wins over a Result. An event neither shortens nor lengthens a backoff; a
// new generation or a deletion ends it, within a floor of one pass a second after a
// burst.
//
// # What is guaranteed
//
//   - One pass at a time for an object. A pass never sees less than this process
//     itself has written.
//   - Status: a merge patch of the difference, guarded by resourceVersion; conflicts
//     are settled in place. The conditions Ready, Reconciling and Stalled follow
//     kstatus; a status whose meaning did not change is not written.
//   - Deletion: the finalizer is on the object before the first effect, and goes
//     after the last. An orphan annotation is always an exit.
//   - A stop lets running passes end; a lost lease cancels them, and no effect is
//     started after it. After [Run] has returned, nothing that it started is left.
//   - A [Budget], where one is given, bounds the calls to an endpoint over all
//     controllers that share it, makes fewer where the endpoint asks for that, and
//     none while it does not answer. Work is deferred, never dropped; what people
//     changed goes before polls.
//   - What keeps it from working is told in readiness ([Health]), in the log and in
//     metrics, or in the object's conditions, and waited for: see [Run]. It never
//     ends the process, and never panics on input.
//
// # Annotations
//
// Where <Domain> is the resource's group unless Options say otherwise:
//
//	<Domain>/paused: "true"          observe only; a deletion waits
//	<Domain>/orphan: "true"          at deletion, release the object and leave the outside untouched
//	<Domain>/reconcile-at: anything  a pass now, and a new try after a rejection
//
// and for one managed controller, where <Name> is its [Options] Name:
//
//	<Domain>/<Name>.adopt: <id>      take over what stands outside under that id
//	<Domain>/<Name>.new: <uid>       make another one: after a loss, or for a claim that is not this object's
//	<Domain>/<Name>.outcome: <incarnation>.<attempt>=happened:<id>, or …=did-not-happen
//	                                 what came of a create that nobody else can tell
//	<Domain>/<Name>.claim            the library's own: what it has begun outside; leave it alone
//
// The object's conditions name the annotation and the value that is wanted, where
// one is. An answer acts once; new acts again when it was taken off and is set again.
//
// # Rights
//
// What the controllers need of RBAC, each in its own namespaces where it is
// restricted to some:
//
//	the resource             get, list, watch, patch
//	its status               patch (the subresource)
//	events.k8s.io/events     create, patch
//	namespaces, kube-system  get, where ManageOptions.ClusterID is not given
//	leases                   get, create, update, where RunOptions.Lease is given
//	watched and read ones    list, watch
//
// The design, and why it is so, stands in docs/design.
package tether
