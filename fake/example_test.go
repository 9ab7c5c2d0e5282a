package fake_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
)

// A lost answer: the first create takes effect and its connection is cut. The
// same key again books nothing more.
func ExampleBookingServer_Inject() {
	s := fake.NewBookingServer(fake.BookingOptions{Seed: 1})
	defer s.Close()
	s.Inject(fake.BookingFault{Kind: fake.BookingCutAfter, Op: booking.OpCreate, Nth: 1})

	c, err := booking.NewClient(booking.Options{BaseURL: s.URL(), Transport: s.Transport(), Token: booking.StaticToken("me")})
	if err != nil {
		panic(err)
	}
	r := booking.Request{
		ClientReference: "my-first", From: "ICN", To: "JFK", DepartureDate: "2027-05-01",
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	}
	_, err = c.Create(context.Background(), "key-1", r)
	var e *booking.Error
	if errors.As(err, &e) {
		fmt.Println(e.Class())
	}
	a, err := c.Create(context.Background(), "key-1", r)
	fmt.Println(a.Booking.Status, a.Replayed, err)
	fmt.Println(s.CreatesInEffect("my-first"), len(s.Live("my-first")))
	// Output:
	// OutcomeUnknown
	// confirmed true <nil>
	// 1 1
}

// What the airline does by itself is seen at the next look.
func ExampleBookingServer_Reschedule() {
	s := fake.NewBookingServer(fake.BookingOptions{Seed: 1})
	defer s.Close()
	c, err := booking.NewClient(booking.Options{BaseURL: s.URL(), Transport: s.Transport(), Token: booking.StaticToken("me")})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	a, err := c.Create(ctx, "key-1", booking.Request{
		From: "ICN", To: "JFK", DepartureDate: "2027-05-01",
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	})
	if err != nil {
		panic(err)
	}
	if err := s.Reschedule(a.Booking.ID, 2*time.Hour); err != nil {
		panic(err)
	}
	b, err := c.Get(ctx, a.Booking.ID)
	fmt.Println(b.Flight.DepartureTime.Sub(b.ScheduleChange.PreviousDepartureTime), b.Version != a.Booking.Version, err)
	// Output: 2h0m0s true <nil>
}

// An answer is lost after the write has taken effect. Who then reads finds it.
func ExampleAPIServer() {
	s := fake.NewAPIServer(fake.APIOptions{})
	defer s.Close()
	s.Inject(fake.APIFault{Kind: fake.APICutAfter, Verb: "create", Resource: "configmaps", Nth: 1})

	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		panic(err)
	}
	ctx, maps := context.Background(), c.CoreV1().ConfigMaps("default")
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	fmt.Println("answered:", err == nil)
	_, err = maps.Get(ctx, "a", metav1.GetOptions{})
	fmt.Println("there:", err == nil)
	for _, e := range s.Journal() {
		fmt.Println(e.Verb, e.Resource, e.Name, e.Status, e.Faults)
	}
	// Output:
	// answered: false
	// there: true
	// create configmaps a 0 [cut-after]
	// get configmaps a 200 []
}

// Go functions stand in for CEL and webhooks.
func ExampleAPIAdmission() {
	s := fake.NewAPIServer(fake.APIOptions{Admission: []fake.APIAdmission{func(w fake.APIWrite) error {
		if w.Operation == "DELETE" && w.Resource.Resource == "secrets" {
			return errors.New("secrets are kept")
		}
		return nil
	}}})
	defer s.Close()
	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		panic(err)
	}
	ctx, secrets := context.Background(), c.CoreV1().Secrets("default")
	if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		panic(err)
	}
	fmt.Println(secrets.Delete(ctx, "a", metav1.DeleteOptions{}))
	// Output: secrets "a" is forbidden: secrets are kept
}

// What was booked is there after the process has ended, however it did.
func ExampleOpenState() {
	dir, err := os.MkdirTemp("", "state-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		state, err := fake.OpenState(dir, func(warning string) { fmt.Println(warning) })
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := state.BookingServer(fake.BookingOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		c, err := booking.NewClient(booking.Options{BaseURL: s.URL(), Transport: s.Transport(), Token: booking.StaticToken("test")})
		if err != nil {
			fmt.Println(err)
			return
		}
		a, err := c.Create(context.Background(), "the-first-call", booking.Request{
			ClientReference: "example", From: "ICN", To: "JFK", DepartureDate: "2027-05-01",
			Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
		})
		fmt.Println(a.Booking.Status, a.Replayed, len(s.Bookings()), err)
		s.Close()
		if err := state.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// confirmed false 1 <nil>
	// confirmed true 1 <nil>
}
