// Package faketest tests a whole program in virtual time: the program, the
// Kubernetes API and the booking API that it speaks to run in one testing/synctest
// bubble, over memory. Hours of outage, backoff and polls pass in milliseconds, and
// what takes no time takes none.
//
//	func TestATicketIsBookedOnceThoughTheAnswerIsLost(t *testing.T) {
//		o := faketest.Options{Seed: 1, API: fake.APIOptions{Manifests: []string{crd, ticket}}}
//		faketest.Run(t, o, func(ctx context.Context, t *testing.T, w *faketest.World) {
//			w.Booking.Inject(fake.BookingFault{Kind: fake.BookingCutAfter, Op: booking.OpCreate, Nth: 1})
//			w.Start(func(ctx context.Context, cluster *rest.Config, client *http.Client) error {
//				… // what main does
//			})
//			time.Sleep(time.Hour)
//			if n := len(w.Booking.Bookings()); n != 1 {
//				t.Errorf("%d bookings, want 1", n)
//			}
//		})
//	}
//
// time.Sleep, context deadlines and the servers' Await are how such a test waits:
// none of them takes real time. A program is stopped as by SIGTERM, or crashed as
// by a power cut, at once or at a request of its own:
//
//	for n := 1; ; n++ { // a crash at every point of what the program does
//		faketest.Run(t, o, func(ctx context.Context, t *testing.T, w *faketest.World) {
//			p := w.StartUntil(n, faketest.CrashAfter, program)
//			…
//			w.Start(program)
//			…
//		})
//	}
//
// What has no place in the bubble: sockets, other processes, and anything
// that was made outside of it (a channel, a timer, a t of the outer test).
//
// Importing this package replaces ErrorHandlers[1] of apimachinery, which is the whole
// process's: it waits between errors that nobody handles, by a clock that bubbles do not
// share. What waits in its place has none.
package faketest
