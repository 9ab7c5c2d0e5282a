package e2e

import (
	"fmt"
	"maps"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// life is what one Ticket, "short", goes through under a controller to which
// something happens in it.
type life struct {
	*stage
	flags  []string
	way    *route                     // the controller's
	c      *controller                // the one that runs, if any
	saved  *unstructured.Unstructured // the Ticket as a backup has it
	byHand string                     // the booking that was made at the booking site
}

// longWindows are longer than a test: whatever waits for one to pass is seen, as
// stuck.
var longWindows = []string{"--call-timeout=20s", "--settle=90s"}

func newLife(t *testing.T, flags ...string) *life {
	t.Helper()
	l := &life{stage: newStage(t, fake.BookingOptions{}), flags: append([]string{"--allow-adopt=true"}, flags...)}
	l.way = l.route
	l.site.SellOut("ICN", "JFK", soldOut, true)
	return l
}

// begin starts a controller.
func (l *life) begin(t *testing.T) {
	t.Helper()
	l.c = l.way.start(t, l.flags...)
}

// stop ends it as a rollout does, which gives a lease back.
func (l *life) stop(t *testing.T) {
	t.Helper()
	l.c.signal(t, syscall.SIGTERM)
	if code := l.c.exit(t); code != 0 {
		t.Errorf("the controller ended with status %d", code)
	}
}

// pointAt makes the controller's n-th request for a Ticket from now on wait at the
// point. An answer to an earlier one, which may still be on its way, does not count.
func (l *life) pointAt(t *testing.T, at proxy.Point, n int, match func(proxy.Exchange) bool) *proxy.Hold {
	t.Helper()
	before, way := len(l.journal.Exchanges(nil)), l.way
	return l.hold(t, at, n, func(e proxy.Exchange) bool {
		return e.Number > before && (e.Proxy == way.api || e.Proxy == way.site) && match(e)
	})
}

// What people do.
func ordered(t *testing.T, l *life)  { l.create(t, "short", `{}`) }
func changed(t *testing.T, l *life)  { l.mustPatch(t, "short", changes["contact"]) }
func replaced(t *testing.T, l *life) { l.mustPatch(t, "short", changes["passengers"]) }
func deleted(t *testing.T, l *life)  { l.remove(t, "short") }

func replacedAgain(t *testing.T, l *life) {
	l.mustPatch(t, "short", `{"spec":{"passengers":[{"givenName":"Fourth","familyName":"Passenger"}]}}`)
}

// soldOut is a day without a seat.
const soldOut = "2027-05-05"

func orderedSoldOut(t *testing.T, l *life) {
	l.create(t, "short", `{"spec":{"departureDate":"`+soldOut+`"}}`)
}

func changedToSoldOut(t *testing.T, l *life) {
	l.mustPatch(t, "short", `{"spec":{"departureDate":"`+soldOut+`"}}`)
}

// adopted: a Ticket is made for a booking that stands already.
func adopted(t *testing.T, l *life) {
	l.create(t, "short", fmt.Sprintf(`{"metadata":{"annotations":{"flights.com/ticket.adopt":%q}}}`, l.byHand))
}

// restored: the backup is put back.
func restored(t *testing.T, l *life) {
	if _, err := l.dynamic.Resource(tickets).Namespace(l.namespace).Create(t.Context(), l.saved, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// What comes before.
func running(t *testing.T, l *life) { l.begin(t) }
func resumed(t *testing.T, l *life) { l.begin(t) }

func bookedAs(patch string) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		t.Helper()
		l.begin(t)
		l.create(t, "short", patch)
		l.awaitReady(t, "short")
		l.c.line(t, 0, `"pass ended"`) // of its booking: what comes after it is of what people do
	}
}

func booked(t *testing.T, l *life) { bookedAs(`{}`)(t, l) }

func deletesFirst(t *testing.T, l *life) { bookedAs(`{"spec":{"replace":"DeleteFirst"}}`)(t, l) }

// earlier: what runs did not do what was done before.
func earlier(before func(*testing.T, *life)) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		before(t, l)
		l.stop(t)
		l.begin(t)
		l.c.line(t, 0, "pass ended") // of the first list
	}
}

// toBeLeft: the Ticket is not to take its booking with it.
func toBeLeft(t *testing.T, l *life) {
	booked(t, l)
	_, log := l.c.line(t, 0, `"pass ended"`)
	l.mustPatch(t, "short", `{"metadata":{"annotations":{"flights.com/orphan":"true"}}}`)
	l.c.line(t, log, `"pass ended"`) // what is asked is looked at
}

// madeByHand is a booking that no Ticket made, and a controller.
func madeByHand(t *testing.T, l *life) {
	l.byHand = l.bookByHand(t)
	l.begin(t)
}

// lostRecord: a Ticket was booked and backed up, and its record is gone, while no
// controller ran.
func lostRecord(finalizers bool) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		booked(t, l)
		l.stop(t)
		l.saved = l.backUp(t, "short", finalizers)
		l.mustPatch(t, "short", `{"metadata":{"finalizers":null}}`)
		l.remove(t, "short")
		l.begin(t)
	}
}

// backUp is a Ticket as a backup tool restores it: what makes the API server's
// record is not kept, nor is status. Velero keeps finalizers and adds its labels,
// and others do neither.
func (l *life) backUp(t *testing.T, name string, finalizers bool) *unstructured.Unstructured {
	t.Helper()
	obj, err := l.dynamic.Resource(tickets).Namespace(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	delete(kept.Object, "metadata")
	delete(kept.Object, "status")
	kept.SetName(name)
	kept.SetAnnotations(obj.GetAnnotations())
	kept.SetLabels(obj.GetLabels())
	if finalizers {
		kept.SetFinalizers(obj.GetFinalizers())
		labels := map[string]string{"velero.io/backup-name": "nightly", "velero.io/restore-name": "nightly-20261201"}
		maps.Copy(labels, obj.GetLabels())
		kept.SetLabels(labels)
	}
	return kept
}

// bookByHand books what the smallest Ticket asks for.
func (l *life) bookByHand(t *testing.T) (id string) {
	t.Helper()
	api, err := booking.NewClient(booking.Options{BaseURL: l.site.URL(), Token: booking.TokenFile(l.token)})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON([]byte(ticket(t, "short", `{}`))); err != nil {
		t.Fatal(err)
	}
	tk, err := asTicket(obj)
	if err != nil {
		t.Fatal(err)
	}
	r := booking.Request{ClientReference: byHand, From: tk.Spec.From, To: tk.Spec.To, DepartureDate: tk.Spec.DepartureDate}
	for _, p := range tk.Spec.Passengers {
		r.Passengers = append(r.Passengers, booking.Passenger{GivenName: p.GivenName, FamilyName: p.FamilyName})
	}
	a, err := api.Create(t.Context(), byHand, r)
	if err != nil {
		t.Fatal(err)
	}
	return a.Booking.ID
}

// byHand is the reference, and the key, of what was booked by hand.
const byHand = "made-by-hand"

// halfway is what a controller leaves that is killed at a request.
func halfway(before func(*testing.T, *life), at proxy.Point, match func(proxy.Exchange) bool, act func(*testing.T, *life)) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		before(t, l)
		hold := l.pointAt(t, at, 1, match)
		act(t, l)
		reached(t, hold)
		l.c.kill(t)
	}
}

// then does one thing after the other.
func then(all ...func(*testing.T, *life)) func(*testing.T, *life) {
	return func(t *testing.T, l *life) {
		for _, do := range all {
			do(t, l)
		}
	}
}

// rejected: the Ticket is stalled for want of a seat.
func rejected(t *testing.T, l *life) {
	t.Helper()
	l.await(t, "short", "stalled", stalled("SoldOut"))
}

// another day shows that a rejection has spoiled nothing.
func anotherDay(t *testing.T, l *life) {
	rejected(t, l)
	l.mustPatch(t, "short", changes["departureDate"])
	isReady(t, l)
}

// How it ends.
func isReady(t *testing.T, l *life) { l.awaitReady(t, "short") }
func isGone(t *testing.T, l *life)  { l.awaitGone(t, "short") }

// story is a life to which something happens between act and end, and what must
// have come of it.
type story struct {
	name              string
	prepare, act, end func(*testing.T, *life)
	want              balance
	width             width    // how much happens in it
	flags             []string // in place of those of what happens

	// meanwhile is what people do when it has happened, where they do anything; then
	// undisturbed is how act ends where nothing happens and nobody does anything.
	meanwhile, undisturbed func(*testing.T, *life)
	unheard                bool // there is a meanwhile
	// after shows more when all has ended, where there is anything.
	after func(*testing.T, *life)
}

func nothing(*testing.T, *life) {}

// stories are the ones to be told.
var stories = []story{
	{name: "create", prepare: running, act: ordered, end: isReady, want: balance{creates: 1, live: 1}, width: wide},
	{name: "change in place", prepare: booked, act: changed, end: isReady, want: balance{creates: 1, changes: 1, live: 1}, width: wide},
	{name: "replace, create first", prepare: booked, act: replaced, end: isReady, want: balance{creates: 2, cancels: 1, live: 1, atOnce: 2}, width: wide},
	{name: "replace, delete first", prepare: earlier(deletesFirst), act: replaced, end: isReady, want: balance{creates: 2, cancels: 1, live: 1, none: true}, width: wide},
	{name: "delete", prepare: booked, act: deleted, end: isGone, want: balance{creates: 1, cancels: 1}, width: wide},
	{name: "delete what an earlier one booked", prepare: earlier(booked), act: deleted, end: isGone, want: balance{creates: 1, cancels: 1}, width: wide},
	{name: "adopt", prepare: madeByHand, act: adopted, end: isReady, want: balance{creates: 1, changes: 1, live: 1}, width: wide},
	{name: "restore", prepare: lostRecord(true), act: restored, end: isReady, want: balance{creates: 1, live: 1}, width: wide},
	{name: "orphan", prepare: toBeLeft, act: deleted, end: isGone, want: balance{creates: 1, live: 1}, width: wide},

	{name: "create, and deleted meanwhile", prepare: running, act: ordered, undisturbed: isReady, meanwhile: deleted, end: isGone, want: balance{creates: 1, cancels: 1, orLess: true}, width: middle},
	{
		name: "create, and changed meanwhile", prepare: running, act: ordered, undisturbed: isReady, meanwhile: replaced, end: isReady, want: balance{creates: 2, cancels: 1, live: 1, atOnce: 2, orLess: true}, width: middle,
		flags: scaledWindows,
	}, // with no claim yet, and not new any more, it waits for a window
	{name: "replace, create first, and deleted meanwhile", prepare: booked, act: replaced, undisturbed: isReady, meanwhile: deleted, end: isGone, want: balance{creates: 2, cancels: 2, atOnce: 2, orLess: true}, width: middle},
	{name: "replace, create first, and changed meanwhile", prepare: booked, act: replaced, undisturbed: isReady, meanwhile: replacedAgain, end: isReady, want: balance{creates: 3, cancels: 2, live: 1, atOnce: 2, orLess: true}, width: middle},
	{name: "replace, delete first, and deleted meanwhile", prepare: deletesFirst, act: replaced, undisturbed: isReady, meanwhile: deleted, end: isGone, want: balance{creates: 2, cancels: 2, orLess: true}, width: middle},
	{name: "replace, delete first, and changed meanwhile", prepare: deletesFirst, act: replaced, undisturbed: isReady, meanwhile: replacedAgain, end: isReady, want: balance{creates: 3, cancels: 2, live: 1, none: true, orLess: true}, width: middle},

	{name: "create, begun by one that was killed before it booked", prepare: halfway(running, proxy.Before, creates, ordered), act: resumed, end: isReady, want: balance{creates: 1, live: 1}, width: narrow},
	{name: "create, begun by one that was killed after it booked", prepare: halfway(running, proxy.After, creates, ordered), act: resumed, end: isReady, want: balance{creates: 1, live: 1}, width: narrow},
	{name: "change of what an earlier one booked", prepare: earlier(booked), act: changed, end: isReady, want: balance{creates: 1, changes: 1, live: 1}, width: narrow},
	{name: "replace what an earlier one booked", prepare: earlier(booked), act: replaced, end: isReady, want: balance{creates: 2, cancels: 1, live: 1, atOnce: 2}, width: narrow},
	{name: "replace, begun by one that was killed after it booked", prepare: halfway(booked, proxy.After, creates, replaced), act: resumed, end: isReady, want: balance{creates: 2, cancels: 1, live: 1, atOnce: 2}, width: narrow},
	{name: "replace, begun by one that was killed after it cancelled", prepare: halfway(deletesFirst, proxy.After, cancels, replaced), act: resumed, end: isReady, want: balance{creates: 2, cancels: 1, live: 1, none: true}, width: narrow},
	{name: "delete, begun by one that was killed after it cancelled", prepare: halfway(booked, proxy.After, cancels, deleted), act: resumed, end: isGone, want: balance{creates: 1, cancels: 1}, width: narrow},
	{name: "delete, begun by one that was killed before it booked", prepare: halfway(running, proxy.Before, creates, ordered), act: then(deleted, resumed), end: isGone, width: narrow},
	{name: "delete in the middle of a replacement", prepare: halfway(booked, proxy.After, creates, replaced), act: then(deleted, resumed), end: isGone, want: balance{creates: 2, cancels: 2, atOnce: 2}, width: narrow},
	{name: "replacement in the middle of a replacement", prepare: halfway(booked, proxy.After, creates, replaced), act: then(replacedAgain, resumed), end: isReady, want: balance{creates: 3, cancels: 2, live: 1, atOnce: 2}, width: narrow},
	{name: "restore without finalizers", prepare: lostRecord(false), act: restored, end: isReady, want: balance{creates: 1, live: 1}, width: narrow},
	{name: "create that is rejected", prepare: running, act: orderedSoldOut, end: rejected, want: balance{creates: 1, live: 1}, after: anotherDay, width: narrow},
	{name: "change that is rejected", prepare: booked, act: changedToSoldOut, end: rejected, want: balance{creates: 1, changes: 1, live: 1}, after: anotherDay, width: narrow},
}

// balance is what must have come of a life, by the booking server's journal: how
// often each operation took effect, ever, and how many bookings live at the end.
type balance struct {
	creates, changes, cancels int
	live                      int
	atOnce                    int  // how many may live at once [1]
	none                      bool // there may be none between the first and the last
	orLess                    bool // the last create may not have been made: then there is a cancel less
}

// verdict is what a balance shows. Each is a promise that was broken.
type verdict struct{ doubles, lost, leaked int }

// audit holds the booking server's journal against what must have come of it. tk is
// the Ticket as it is at the end; nil where it is gone.
func (l *life) audit(t *testing.T, want balance, tk *v1.Ticket) (v verdict) {
	t.Helper()
	if l.effects(booking.OpCreate) == want.creates-1 && want.orLess {
		want.creates, want.cancels = want.creates-1, want.cancels-1
	}
	for _, b := range l.site.Bookings() {
		if n := l.site.CreatesInEffect(b.ClientReference); n > 1 {
			t.Errorf("double: reference %s was booked %d times", b.ClientReference, n)
			v.doubles++
		}
	}
	v.doubles += l.atOnce(t, want)
	live := l.live()
	switch {
	case len(live) < want.live:
		t.Errorf("lost: %d bookings live, not %d", len(live), want.live)
		v.lost++
	case len(live) > want.live:
		t.Errorf("leaked: %d bookings live, not %d: %+v", len(live), want.live, live)
		v.leaked++
	case tk != nil && len(live) == 1:
		l.toldRight(t, tk, live[0])
		if live[0].ClientReference == byHand {
			t.Error("lost: the booking was not adopted")
			v.lost++
		}
	}
	if n := l.effects(booking.OpCreate); n > want.creates {
		t.Errorf("double: booked %d times, not %d", n, want.creates)
		v.doubles++
	} else if n < want.creates {
		t.Errorf("lost: booked %d times, not %d", n, want.creates)
		v.lost++
	}
	for op, want := range map[booking.Operation]int{booking.OpChange: want.changes, booking.OpCancel: want.cancels} {
		if got := l.effects(op); got != want {
			t.Errorf("%s took effect %d times, not %d", op, got, want)
		}
	}
	return v
}

// atOnce follows how many bookings lived: never too many, and from the first to the
// last act never none, unless the old one is to go first.
func (l *life) atOnce(t *testing.T, want balance) (doubles int) {
	t.Helper()
	live, ended := 0, 0
	for _, e := range l.entries(func(e fake.BookingEntry) bool { return e.Effect }) {
		switch e.Op {
		case booking.OpCreate:
			if live++; live > max(want.atOnce, 1) {
				t.Errorf("double: with %s there were %d at once", e, live)
				doubles++
			}
		case booking.OpCancel:
			live--
			if ended++; live == 0 && !want.none && want.live > 0 {
				t.Errorf("with %s nothing was booked any more", e)
			}
		}
	}
	return doubles
}
