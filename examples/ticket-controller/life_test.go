package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

func file(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// await takes events until one satisfies.
func await(t *testing.T, w watch.Interface, satisfies func(watch.Event, *unstructured.Unstructured) bool) {
	t.Helper()
	for e := range w.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); ok && satisfies(e, u) {
			return
		}
	}
	t.Fatal("the watch ended before what was awaited")
}

func TestATicketIsBookedAndCancelledWithNothingButThisProcess(t *testing.T) {
	t.Parallel()
	definition, sample := file(t, "deploy/crd.yaml"), file(t, "deploy/samples/to-new-york.yaml")
	synctest.Test(t, func(t *testing.T) {
		cluster := fake.NewAPIServer(fake.APIOptions{Manifests: []string{string(definition)}})
		defer cluster.Close()
		airline := fake.NewBookingServer(fake.BookingOptions{Seed: 1})
		defer airline.Close()
		api, err := booking.NewClient(booking.Options{BaseURL: airline.URL(), Transport: airline.Transport(), Token: booking.StaticToken("t")})
		if err != nil {
			t.Fatal(err)
		}
		in := tether.NewInformer(Tickets, tether.InformerOptions{})
		c := tether.Manage(in, &flights{api}, tether.ManageOptions[*v1.Ticket]{
			ID: func(t *v1.Ticket) *string { return &t.Status.BookingID }, Guarantee: tether.UniqueReference, Policy: policy,
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tether.Run(ctx, cluster.Config(), tether.RunOptions{SingleProcess: true}, c) }()

		client, err := dynamic.NewForConfig(cluster.Config())
		if err != nil {
			t.Fatal(err)
		}
		tickets := client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")
		ticket := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(sample, &ticket.Object); err != nil {
			t.Fatal(err)
		}
		w, err := tickets.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if _, err := tickets.Create(ctx, ticket, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
			t.Fatal(err)
		}
		await(t, w, func(_ watch.Event, u *unstructured.Unstructured) bool {
			id, _, _ := unstructured.NestedString(u.Object, "status", "bookingID")
			return id != ""
		})
		if n := len(airline.Bookings()); n != 1 {
			t.Errorf("%d bookings, want 1\n%s", n, airline.Transcript())
		}
		if err := tickets.Delete(ctx, ticket.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, w, func(e watch.Event, _ *unstructured.Unstructured) bool { return e.Type == watch.Deleted })
		for _, b := range airline.Bookings() {
			if b.Status.Live() {
				t.Errorf("still booked: %+v", b)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("\n" + cluster.Transcript())
		}
		// One write before the effect, one after it, and one that lets go.
		if got := cluster.Writes("tickets")["patch"] + cluster.Writes("tickets/status")["patch"]; got != 3 {
			t.Errorf("%d patches, want 3\n%s", got, cluster.Transcript())
		}
	})
}
