package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// Tickets carried in a file: back into their cluster, and into another.

// at is a subcommand's desk at a cluster. broken is asked before each request to the
// API server and to the booking API; nil for none.
func at(ctx context.Context, t *testing.T, w *world, cluster *rest.Config, s settings, broken func() error) *desk {
	t.Helper()
	through := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if broken != nil {
				if err := broken(); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	}
	cluster = rest.CopyConfig(cluster)
	cluster.Wrap(through)
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		t.Fatal(err)
	}
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: through(w.Booking.Transport())})
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{settings: s, tickets: client.Resource(v1.GroupVersion.WithResource(Tickets.Plural)), flights: &flights{api}, close: func() {}}
	if d.clusterID, err = tether.ClusterID(ctx, cluster); err != nil && broken == nil {
		t.Fatal(err)
	}
	d.references = managed(s, nil).References(d.clusterID)
	return d
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// another is a second cluster that knows Tickets.
func another(t *testing.T) *fake.APIServer {
	t.Helper()
	c := fake.NewAPIServer(fake.APIOptions{Manifests: []string{string(file(t, "deploy/crd.yaml"))}, Seed: 99})
	t.Cleanup(c.Close)
	return c
}

// says runs a subcommand that must succeed, and returns what it printed.
func (d *desk) says(ctx context.Context, t *testing.T, run func(*desk, context.Context, io.Writer) error) string {
	t.Helper()
	var out strings.Builder
	if err := run(d, ctx, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

// conditions are a Ticket's, as type=status/reason.
func (p person) conditions(ctx context.Context, name string) string {
	p.t.Helper()
	raw, err := p.tickets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	var all []string
	list, _, _ := unstructured.NestedSlice(raw.Object, "status", "conditions")
	for _, c := range list {
		m := c.(map[string]any)
		all = append(all, fmt.Sprintf("%s=%s/%s", m["type"], m["status"], m["reason"]))
	}
	return strings.Join(all, " ")
}

func live(w *world) []booking.Booking {
	var all []booking.Booking
	for _, b := range w.Booking.Bookings() {
		if b.Status.Live() {
			all = append(all, b)
		}
	}
	return all
}

func on(t *testing.T, server *fake.APIServer) person {
	t.Helper()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return person{t, client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")}
}

// elsewhere is the controller at another cluster than the World's own.
func elsewhere(server *fake.APIServer) faketest.Program {
	return func(ctx context.Context, _ *rest.Config, client *http.Client) error {
		return controls(nil)(ctx, server.Config(), client)
	}
}

func TestTicketsThatAreRestoredWhereTheyWereFindTheirBookings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tickets.json")
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		c := w.Start(controls(nil))
		for _, name := range []string{"a", "b", "c"} {
			p.create(ctx, name)
			untilReady(ctx, t, w, name)
		}
		before := live(w)
		d := at(ctx, t, w, w.API.Config(), settings{file: path}, nil)
		if out := d.says(ctx, t, (*desk).backup); !strings.Contains(out, "3 Tickets") {
			t.Error(out)
		}
		c.Stop()
		for _, name := range []string{"a", "b"} { // lost, and nobody cancelled their bookings
			p.patch(ctx, name, `{"metadata":{"finalizers":null}}`)
			if err := p.tickets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if out := d.says(ctx, t, (*desk).orphans); strings.Count(out, "bk-") != 2 {
			t.Errorf("the bookings of two lost Tickets are orphans:\n%s", out)
		}
		dry := at(ctx, t, w, w.API.Config(), settings{file: path, dryRun: true}, nil)
		if out := dry.says(ctx, t, (*desk).restore); strings.Count(out, ": create") != 2 || strings.Count(out, ": leave: it is there") != 1 {
			t.Errorf("the plan:\n%s", out)
		}
		if _, err := p.tickets.Get(ctx, "a", metav1.GetOptions{}); err == nil {
			t.Error("a dry run has made a Ticket")
		}
		d.says(ctx, t, (*desk).restore)
		w.Start(controls(nil))
		time.Sleep(10 * time.Minute)
		for _, name := range []string{"a", "b", "c"} {
			p.ready(ctx, name)
		}
		if after := live(w); len(after) != 3 || len(w.Booking.Bookings()) != 3 || after[0].ID != before[0].ID {
			t.Errorf("before %v, after %v", before, w.Booking.Bookings())
		}
		if out := d.says(ctx, t, (*desk).orphans); !strings.Contains(out, "every booking") {
			t.Error(out)
		}
		if out := d.says(ctx, t, (*desk).restore); strings.Count(out, ": leave: it is there") != 3 {
			t.Errorf("again:\n%s", out)
		}
	})
}

func TestTicketsRestoredElsewhereBookNothingUntilTheyAreTakenOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tickets.json")
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		w.Start(controls(nil))
		p.create(ctx, "a")
		untilReady(ctx, t, w, "a")
		at(ctx, t, w, w.API.Config(), settings{file: path}, nil).says(ctx, t, (*desk).backup)

		other := another(t)
		w.Start(elsewhere(other))
		q := on(t, other)
		out := at(ctx, t, w, other.Config(), settings{file: path}, nil).says(ctx, t, (*desk).restore)
		if !strings.Contains(out, "--take-over") {
			t.Error(out)
		}
		time.Sleep(time.Hour)
		if got := q.conditions(ctx, "a"); !strings.Contains(got, "Stalled=True/ForeignClaim") {
			t.Errorf("restored elsewhere: %s", got)
		}
		p.ready(ctx, "a")
		once(t, w, 1)

		at(ctx, t, w, other.Config(), settings{file: path, takeOver: true}, nil).says(ctx, t, (*desk).restore)
		time.Sleep(time.Hour)
		q.ready(ctx, "a")
		if got := p.conditions(ctx, "a"); !strings.Contains(got, "Stalled=True/TakenOver") {
			t.Errorf("the old one: %s", got)
		}
		p.moveTo(ctx, "a", "2027-06-06") // which must not touch what is the other's now
		if err := p.tickets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := p.tickets.Get(ctx, "a", metav1.GetOptions{}); err == nil {
			t.Error("the old Ticket cannot be deleted")
		}
		q.ready(ctx, "a")
		once(t, w, 1)
		if err := q.tickets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		once(t, w, 0)
	})
}

// inAccount is the desk with a token of another account.
func (d *desk) inAccount(t *testing.T, w *world, account string) *desk {
	t.Helper()
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken(account), Transport: w.Booking.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	d.flights = &flights{api}
	return d
}

func TestATokenOfAnotherAccountIsSuspectedAndChangesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tickets.json")
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		w.Start(controls(nil))
		p.create(ctx, "a")
		untilReady(ctx, t, w, "a")
		here := at(ctx, t, w, w.API.Config(), settings{file: path}, nil)
		here.says(ctx, t, (*desk).backup)
		var out strings.Builder
		if err := here.inAccount(t, w, "another's").orphans(ctx, &out); err == nil || !strings.Contains(err.Error(), "none of the bookings that 1 Tickets say") || out.Len() > 0 {
			t.Errorf("orphans: %v, %s", err, out.String())
		}

		other := another(t)
		there := at(ctx, t, w, other.Config(), settings{file: path, takeOver: true}, nil)
		err := there.inAccount(t, w, "another's").restore(ctx, &out)
		if err == nil || !strings.Contains(out.String(), "FAILED: the booking API does not know booking "+live(w)[0].ID) || !strings.Contains(out.String(), "Nothing was changed") {
			t.Errorf("restore: %v, %s", err, out.String())
		}
		if left, err := on(t, other).tickets.List(ctx, metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
			t.Errorf("there are %d Tickets, %v", len(left.Items), err)
		}

		there = at(ctx, t, w, other.Config(), settings{file: path, takeOver: true}, nil)
		there.says(ctx, t, (*desk).restore)
		// No controller has seen it yet.
		if out := there.says(ctx, t, (*desk).orphans); !strings.Contains(out, "every booking") {
			t.Errorf("what was taken over is an orphan: %s", out)
		}
	})
}

func TestATakeOverThatIsCutShortGoesOnTheNextTime(t *testing.T) {
	t.Parallel()
	const most = 40 // requests of one take-over: more than it makes
	path := filepath.Join(t.TempDir(), "tickets.json")
	ends := 0
	for n := 1; n <= most && ends == 0; n++ {
		passing(t, faketest.Options{Seed: uint64(n)}, func(ctx context.Context, t *testing.T, w *world) {
			p := someone(t, w)
			w.Start(controls(nil))
			p.create(ctx, "a")
			untilReady(ctx, t, w, "a")
			at(ctx, t, w, w.API.Config(), settings{file: path}, nil).says(ctx, t, (*desk).backup)
			other := another(t)
			w.Start(elsewhere(other))
			requests := 0
			cut := at(ctx, t, w, other.Config(), settings{file: path, takeOver: true, workers: 1}, func() error {
				if requests++; requests == n {
					return errors.New("cut")
				}
				return nil
			})
			cut.clusterID = cmp.Or(cut.clusterID, mustID(ctx, t, other))
			cut.references = managed(cut.settings, nil).References(cut.clusterID)
			var out strings.Builder
			if err := cut.restore(ctx, &out); err == nil && requests < n {
				ends = n
			}
			time.Sleep(5 * time.Minute) // the controllers see what is half done
			at(ctx, t, w, other.Config(), settings{file: path, takeOver: true}, nil).says(ctx, t, (*desk).restore)
			time.Sleep(time.Hour)
			q := on(t, other)
			q.ready(ctx, "a")
			once(t, w, 1)
			got, err := q.tickets.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{annotationPaused, annotationTaking} {
				if v, ok := got.GetAnnotations()[name]; ok {
					t.Errorf("%s=%s is left", name, v)
				}
			}
			if t.Failed() {
				t.Logf("cut at request %d:\n%s", n, out.String())
			}
		})
	}
	if ends < 8 {
		t.Errorf("a take-over makes %d requests: too few to be one, or more than %d", ends-1, most)
	}
}

func mustID(ctx context.Context, t *testing.T, server *fake.APIServer) string {
	t.Helper()
	id, err := tether.ClusterID(ctx, server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestABookingThatEndedIsNotMadeAnewByATakeOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tickets.json")
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		c := w.Start(controls(nil))
		p.create(ctx, "a")
		untilReady(ctx, t, w, "a")
		at(ctx, t, w, w.API.Config(), settings{file: path}, nil).says(ctx, t, (*desk).backup)
		c.Stop()
		if err := w.Booking.CancelByAirline(live(w)[0].ID, "weather"); err != nil {
			t.Fatal(err)
		}
		other := another(t)
		w.Start(elsewhere(other))
		out := at(ctx, t, w, other.Config(), settings{file: path, takeOver: true}, nil).says(ctx, t, (*desk).restore)
		if !strings.Contains(out, "does not stand") || !strings.Contains(out, annotationNew+"=") {
			t.Error(out)
		}
		time.Sleep(time.Hour)
		q := on(t, other)
		if got := q.conditions(ctx, "a"); !strings.Contains(got, "Stalled=True/ForeignClaim") {
			t.Error(got)
		}
		once(t, w, 0)
		_, uid, _ := strings.Cut(out, annotationNew+"=")
		q.patch(ctx, "a", `{"metadata":{"annotations":{%q:%q}}}`, annotationNew, strings.Fields(uid)[0])
		time.Sleep(time.Hour)
		q.ready(ctx, "a")
	})
}

func TestARestoreRefusesWhatIsAnothers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tickets.json")
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		p := someone(t, w)
		w.Start(controls(nil))
		for _, name := range []string{"a", "b"} {
			p.create(ctx, name)
			untilReady(ctx, t, w, name)
		}
		d := at(ctx, t, w, w.API.Config(), settings{file: path}, nil)
		d.says(ctx, t, (*desk).backup)
		if err := p.tickets.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		p.create(ctx, "a")
		untilReady(ctx, t, w, "a")
		var out strings.Builder
		if err := d.restore(ctx, &out); err == nil || !strings.Contains(out.String(), "default/a: refuse") || !strings.Contains(out.String(), "default/b: leave") {
			t.Errorf("%v\n%s", err, out.String())
		}
		missing := at(ctx, t, w, w.API.Config(), settings{file: path, namespaces: []string{"nowhere"}}, nil)
		if got := missing.says(ctx, t, (*desk).restore); got != "" {
			t.Errorf("of no namespace: %s", got)
		}
	})
}

func TestABackupFileIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tickets.json")
	passing(t, faketest.Options{Seed: 1}, func(ctx context.Context, t *testing.T, w *world) {
		at(ctx, t, w, w.API.Config(), settings{file: path}, nil).says(ctx, t, (*desk).backup)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("the file's mode is %o", got)
		}
	})
}
