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
// Over [BookingServer.Transport] no socket is used, so that a server, its clients
// and what stands between them can run in one testing/synctest bubble. Make the
// server inside the bubble and close it before the bubble ends.
//
// A seed fixes ids, prices and which requests a fault with a probability meets.
// It cannot fix the order in which goroutines arrive.
//
// A server is safe for concurrent use. Its constructor starts nothing; after its
// Close returns, nothing of it runs.
package fake
