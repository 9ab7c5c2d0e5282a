package main

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake/faketest"
)

// What an airline, or a person at the booking site, does to a booking that stands.
func TestWhatBecomesOfABookingOutsideIsToldAndMadeAnewWhereItIsWanted(t *testing.T) {
	t.Parallel()
	airline := func(t *testing.T, w *world, b booking.Booking) {
		if err := w.Booking.CancelByAirline(b.ID, "the crew is on strike"); err != nil {
			t.Error(err)
		}
	}
	site := func(t *testing.T, w *world, b booking.Booking) {
		api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: w.Booking.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		if _, err := api.Cancel(t.Context(), "by-hand", b.ID, b.Version); err != nil {
			t.Error(err)
		}
	}
	for name, test := range map[string]struct {
		does   func(*testing.T, *world, booking.Booking)
		onLost v1.OnLost
		want   string // among the conditions
		event  string
		live   int
	}{
		"the airline cancels":                          {airline, "", "Stalled=True/CancelledByAirline", "CancelledByAirline", 0},
		"somebody cancels by hand":                     {site, "", "Stalled=True/Cancelled", "Cancelled", 0},
		"the airline cancels, and it is wanted anew":   {airline, v1.OnLostRecreate, "Ready=True/", "Recreated", 1},
		"it is cancelled by hand, and wanted anew":     {site, v1.OnLostRecreate, "Ready=True/", "Recreated", 1},
		"the airline moves the flight to another hour": {delayed, "", "Ready=True/", "ScheduleChanged", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
				w.Start(controls(nil))
				p := someone(t, w)
				p.create(ctx, "a")
				if test.onLost != "" {
					p.patch(ctx, "a", `{"spec":{"onLost":%q}}`, test.onLost)
				}
				time.Sleep(time.Hour)
				p.ready(ctx, "a")
				before := live(w)[0]
				test.does(t, w, before)
				time.Sleep(3 * time.Hour) // polls
				if got := p.conditions(ctx, "a"); !strings.Contains(got, test.want) {
					t.Errorf("conditions %s, want %s", got, test.want)
				}
				now := live(w)
				if len(now) != test.live || test.onLost != "" && now[0].ID == before.ID {
					t.Errorf("standing are %+v after %+v", now, before)
				}
				notes := said(ctx, t, w, test.event)
				if len(notes) != 1 {
					t.Fatalf("Events %s say %q", test.event, notes)
				}
				if want := "the airline moved TK585 from 2027-05-01T18:15:00Z to 2027-05-01T20:15:00Z"; test.event == "ScheduleChanged" && notes[0] != want {
					t.Errorf("it says %q, want %q", notes[0], want)
				}
			})
		})
	}
}

func delayed(t *testing.T, w *world, b booking.Booking) {
	if err := w.Booking.Reschedule(b.ID, 2*time.Hour); err != nil {
		t.Error(err)
	}
}

// said are the notes of the Events of a reason.
func said(ctx context.Context, t *testing.T, w *world, reason string) (notes []string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(w.API.Config())
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Items {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}
