package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// What the controller does in hours and weeks, and around its own end.

type (
	manageOptions = tether.ManageOptions[*v1.Ticket]
	world         = faketest.World
)

// controls is the controller as main runs it, but for what change changes.
func controls(change func(*manageOptions, *tether.RunOptions)) faketest.Program {
	return func(ctx context.Context, cluster *rest.Config, client *http.Client) error {
		api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: client.Transport})
		if err != nil {
			return err
		}
		quiet := logr.Discard()
		o := manageOptions{
			Options: tether.Options{Budget: tether.NewBudget(tether.BudgetOptions{Name: "booking"})},
			ID:      func(t *v1.Ticket) *string { return &t.Status.BookingID }, Guarantee: tether.UniqueReference, Policy: policy,
		}
		run := tether.RunOptions{SingleProcess: true, Logger: &quiet}
		if change != nil {
			change(&o, &run)
		}
		c := tether.Manage(tether.NewInformer(Tickets, tether.InformerOptions{}), &flights{api}, o)
		return tether.Run(ctx, cluster, run, c)
	}
}

// passing runs f in a world that knows Tickets.
func passing(t *testing.T, o faketest.Options, f func(ctx context.Context, t *testing.T, w *world)) {
	t.Helper()
	o.API.Manifests = append(o.API.Manifests, string(file(t, "deploy/crd.yaml")))
	faketest.Run(t, o, f)
}

// person is who creates Tickets and changes them.
type person struct {
	t       *testing.T
	tickets dynamic.ResourceInterface
}

func someone(t *testing.T, w *world) person {
	t.Helper()
	client, err := dynamic.NewForConfig(w.API.Config())
	if err != nil {
		t.Fatal(err)
	}
	return person{t, client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")}
}

func (p person) create(ctx context.Context, name string) {
	p.t.Helper()
	tk := smallest()
	tk.APIVersion, tk.Kind, tk.Name = v1.GroupVersion.String(), "Ticket", name
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tk)
	if err != nil {
		p.t.Fatal(err)
	}
	delete(raw, "status")
	if _, err := p.tickets.Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p person) patch(ctx context.Context, name, format string, args ...any) {
	p.t.Helper()
	if _, err := p.tickets.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p person) label(ctx context.Context, name string, value int) {
	p.t.Helper()
	p.patch(ctx, name, `{"metadata":{"labels":{"n":"%d"}}}`, value)
}

func (p person) moveTo(ctx context.Context, name, date string) {
	p.t.Helper()
	p.patch(ctx, name, `{"spec":{"departureDate":%q}}`, date)
}

// replace is moveTo by a PUT, which none of the controller's requests is.
func (p person) replace(ctx context.Context, name, date string) {
	p.t.Helper()
	tk, err := p.tickets.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = unstructured.SetNestedField(tk.Object, date, "spec", "departureDate")
	}
	if err == nil {
		_, err = p.tickets.Update(ctx, tk, metav1.UpdateOptions{})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// ready fails the test where a Ticket is not booked as it says.
func (p person) ready(ctx context.Context, name string) {
	p.t.Helper()
	raw, err := p.tickets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if !isReady(raw.Object) {
		p.t.Errorf("not booked: %v", raw.Object["status"])
	}
}

func isReady(object map[string]any) bool {
	var tk v1.Ticket
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, &tk) != nil || tk.Status.ObservedGeneration != tk.Generation || tk.Status.BookingID == "" {
		return false
	}
	for _, c := range tk.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// untilReady waits until a status write says so.
func untilReady(ctx context.Context, t *testing.T, w *world, name string) fake.APIEntry {
	t.Helper()
	e, err := w.API.Await(ctx, func(e fake.APIEntry) bool {
		var o map[string]any
		return e.Resource == "tickets/status" && e.Name == name && json.Unmarshal(e.After, &o) == nil && isReady(o)
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// calls is when the booking server was asked about a booking, once for what came at
// one moment: a pass takes no time. The list of all there is, by which the
// controller looks for what belongs to nobody, is about none.
func calls(w *world, since time.Time) (at []time.Duration) {
	for _, e := range w.Booking.Journal() {
		about := e.Reference != "" || e.BookingID != ""
		if d := e.Time.Sub(since); about && !e.Late && d >= 0 && (len(at) == 0 || d > at[len(at)-1]) {
			at = append(at, d)
		}
	}
	return at
}

// creates is when creates arrived.
func creates(w *world, since time.Time) (at []time.Duration) {
	for _, e := range w.Booking.Journal() {
		if e.Op == booking.OpCreate && !e.Late {
			at = append(at, e.Time.Sub(since))
		}
	}
	return at
}

// once fails the test unless one booking was made ever, and stands as often as live
// says.
func once(t *testing.T, w *world, live int) {
	t.Helper()
	var effects, stand int
	for _, e := range w.Booking.Journal() {
		if e.Op == booking.OpCreate && e.Effect {
			effects++
		}
	}
	for _, b := range w.Booking.Bookings() {
		if b.Status.Live() {
			stand++
		}
	}
	if effects != 1 || stand != live {
		t.Errorf("%d bookings were made and %d stand, want 1 and %d", effects, stand, live)
	}
}
