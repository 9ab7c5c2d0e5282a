// Package fake has servers for tests and for trying things out: real HTTP servers
// whose state lives in memory.
//
// A [BookingServer] is the booking API of booking/openapi.yaml in full, with
// faults that can be switched on while it runs and a journal of every request:
//
//	s := fake.NewBookingServer(fake.BookingOptions{Seed: 1})
//	defer s.Close()
//	s.Inject(fake.BookingFault{Kind: fake.BookingCutAfter, Op: booking.OpCreate, Nth: 1})
//
//	c, err := booking.NewClient(booking.Options{
//		BaseURL:   s.URL(),
//		Transport: s.Transport(), // or s.Start("127.0.0.1:0") and real connections
//		Token:     booking.StaticToken("test"),
//	})
//	…
//	if n := s.CreatesInEffect("my-reference"); n != 1 {
//		t.Errorf("booked %d times\n%s", n, s.Transcript())
//	}
//
// An [APIServer] is a Kubernetes API: for custom resources of any definition, and
// for the core types that a controller meets. kubectl, client-go and
// controller-runtime work with it as they are.
//
//	s := fake.NewAPIServer(fake.APIOptions{Manifests: []string{crd}})
//	defer s.Close()
//	s.Inject(fake.APIFault{Kind: fake.APICutAfter, Verb: "patch", Resource: "tickets/status", Nth: 1})
//
//	err := tether.Run(ctx, s.Config(), …) // or s.Start("127.0.0.1:0"), and s.Kubeconfig for kubectl
//	…
//	if n := s.Writes("tickets/status")["patch"]; n != 1 {
//		t.Errorf("written %d times\n%s", n, s.Transcript())
//	}
//
// What a server has goes with it, unless it is made by a [State], which keeps it in
// a folder for the next process.
//
// Over memory no socket is used, so that servers, their clients and what stands
// between them can run in one testing/synctest bubble. Make a server inside the
// bubble and close it before the bubble ends.
//
// A seed fixes ids, prices and which requests a fault with a probability meets.
// It cannot fix the order in which goroutines arrive.
//
// # Known differences from kube-apiserver
//
// What an [APIServer] answers is held against kube-apiserver 1.37 by one suite that
// runs on both. It differs in this:
//
//   - There is no CEL: x-kubernetes-validations and admission policies are not
//     evaluated. There are no webhooks, and of conversions only None. Give a Go
//     function as [APIOptions].Admission instead.
//   - Of the built-in types there are Namespaces, ConfigMaps, Secrets,
//     ServiceAccounts, Services, Pods, Events, Deployments, Leases, and the types of
//     RBAC and of definitions. Their metadata is validated, and of the rest little:
//     what is immutable, and what a binding binds. Defaults are those that are seen
//     most, of Secrets, Services, Pods and Deployments.
//   - There is no scale subresource of built-in types, and none of pods and tokens; that
//     of custom resources has no table, and takes an apply, where the real one fails
//     with 500.
//   - Controllers do their work before the request is answered that makes it: garbage
//     is collected, a namespace is emptied, a definition is established. Nothing
//     runs a Deployment or a Pod, so that a pod on a node that is deleted stays until
//     it is deleted without grace; and a new namespace has no ServiceAccount.
//   - A watch that is too slow is told so by an event of 410; the real one ends, and
//     the next one is told. What asks for a version that is to come is refused at
//     once; the real server waits for three seconds.
//   - Answers are JSON or YAML, over HTTP/1.1. Requests may be protobuf.
//   - Events stay until they are deleted. No request is limited by priority and
//     fairness: inject [APITooManyRequests].
//   - RBAC does not keep users from giving rights that they do not have, does not
//     aggregate roles, and has of the default ones cluster-admin, system:discovery,
//     system:basic-user and system:public-info-viewer.
//   - /openapi/v2 is not served.
//
// A server is safe for concurrent use. Its constructor starts nothing; after its
// Close returns, nothing of it runs.
package fake
