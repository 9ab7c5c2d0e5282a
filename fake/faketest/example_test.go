package faketest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// What a user writes: a controller, here one that books a seat for each ConfigMap
// that names a route …

var maps = tether.Resource[*corev1.ConfigMap]{GroupVersion: corev1.SchemeGroupVersion, Kind: "ConfigMap", Plural: "configmaps"}

type seats struct{ api *booking.Client }

func (s seats) Reconcile(ctx context.Context, m *corev1.ConfigMap) (tether.Result, error) {
	if m.Data["from"] == "" {
		return tether.Done, nil
	}
	_, err := s.api.Create(ctx, string(m.UID), booking.Request{
		ClientReference: string(m.UID), From: m.Data["from"], To: m.Data["to"], DepartureDate: "2027-05-01",
		Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
	})
	return tether.Done, err
}

func runSeats(ctx context.Context, cluster *rest.Config, client *http.Client) error {
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: client.Transport})
	if err != nil {
		return err
	}
	c := tether.New(tether.NewInformer(maps, tether.InformerOptions{}), seats{api}, tether.Options{})
	quiet := logr.Discard()
	return tether.Run(ctx, cluster, tether.RunOptions{Logger: &quiet}, c)
}

// … and a test of it: the airline is away for six hours, and the answer to the
// first request that it carries out is lost.
func testSeatsAreBookedOnce(t *testing.T) {
	route := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "holiday", Namespace: "default"}, Data: map[string]string{"from": "ICN", "to": "JFK"}}
	faketest.Run(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *faketest.World) {
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingUnavailable, For: 6 * time.Hour})
		w.Booking.Inject(fake.BookingFault{Kind: fake.BookingCutAfter, Op: booking.OpCreate, After: 6 * time.Hour, Times: 1})
		w.Start(runSeats)

		kube := kubernetes.NewForConfigOrDie(w.API.Config())
		created, err := kube.CoreV1().ConfigMaps("default").Create(ctx, route, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		told := func(e fake.BookingEntry) bool { return e.Status == http.StatusCreated }
		if _, err := w.Booking.Await(ctx, told); err != nil {
			t.Fatal(err)
		}
		if n := w.Booking.CreatesInEffect(string(created.UID)); n != 1 {
			t.Errorf("booked %d times, want once", n)
		}
	})
}

// A controller of the user's, and a test of it that takes six hours and no time.
func ExampleRun() {
	fmt.Println("passed:", passes(testSeatsAreBookedOnce)) // go test runs it, where it is called TestSeats…
	// Output: passed: true
}
