// Package booking is the wire contract of the booking API and a client for it.
//
// The contract itself is the OpenAPI 3.1 document openapi.yaml in this folder.
// The package uses the standard library alone and knows nothing of Kubernetes.
//
//	token := booking.TokenFile("/var/run/secrets/booking/token")
//	c, err := booking.NewClient(booking.Options{BaseURL: "https://api.example.com", Token: token})
//	…
//	res, err := c.Create(ctx, "key-1", booking.Request{
//		ClientReference: "my-reference",
//		From:            "ICN",
//		To:              "JFK",
//		DepartureDate:   "2027-05-01",
//		Passengers:      []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
//	})
//	switch {
//	case err == nil:
//		fmt.Println(res.Booking.ID, res.Booking.Status)
//	case errors.Is(err, booking.SoldOut):
//		…
//	}
//
// # What an error says
//
// Every error of a [Client] is an [*Error]. Its [Kind] says what went wrong and
// is what errors.Is compares with. Its [Class] says what is known about the
// effect, which is what a caller that must act exactly once needs:
//
//   - [Refused]: this request took no effect, and the same one will be refused
//     again until something changes.
//   - [Deferred]: this request took no effect, and the same one may be accepted
//     later, not before [Error.RetryAfter].
//   - [Denied]: the server does not let this token do it. No effect.
//   - [Absent]: the server knows no such booking. No effect.
//   - [OutcomeUnknown]: a mutation was sent and no answer tells what became of
//     it. It may have taken effect, or may still take effect later.
//   - [CannotTell]: a read brought no answer. It proves nothing, absence least.
//
// A class speaks of the request at hand. An earlier request with the same
// idempotency key may have taken effect all the same.
//
// Only an answer that follows the contract is definite. A 404 whose body is not
// the contract's not-found problem, as a proxy would send it, is no proof that a
// booking does not exist.
//
// # No retries
//
// A Client sends each request once. Whether a mutation may be sent again depends
// on what was recorded about it before it was sent, and that is known to the
// caller alone; a retry below it would also multiply with the caller's own
// back-off, and hide from it that an outcome was unknown. For the same reason a
// mutation is built so that [net/http.Transport] cannot send it again by itself:
// the transport does so when a kept connection turns out to be dead and the
// request carries an Idempotency-Key header, unless it has a body that cannot be
// rewound. Every mutation has such a body. Reads may be sent again by it.
//
// No redirect is followed: the token stays with the host it was configured for,
// and a mutation is not replayed elsewhere.
//
// # Concurrency
//
// A Client is safe for concurrent use. It starts no goroutine of its own;
// [Client.Close] gives back its idle connections.
package booking
