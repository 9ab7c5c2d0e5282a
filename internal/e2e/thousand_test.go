package e2e

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

// direct starts a controller without proxies, which would be what a crowd waits for.
func (s *stage) direct(t *testing.T, flags ...string) *controller {
	t.Helper()
	kubeconfig, err := s.cluster.WriteKubeconfig(s.namespace, s.account)
	if err != nil {
		t.Fatal(err)
	}
	c := startProgram(t, append([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + s.namespace,
		"--booking-url=" + s.site.URL(), "--booking-token-file=" + s.token, plenty,
	}, flags...)...)
	c.line(t, 0, "controllers run")
	return c
}

func TestAThousandTicketsAreBookedAndCancelledByThreePatchesEachAndPeopleGoFirst(t *testing.T) {
	// Not beside other tests, whose times it would spoil.
	const crowd = 1000
	s := newStage(t, fake.BookingOptions{})
	s.site.Inject(fake.BookingFault{Kind: fake.BookingLatency, Op: booking.OpCreate, Delay: 20 * time.Millisecond})
	s.createAll(t, crowd)

	started := time.Now()
	// With a long window the last of them are new as well, however busy the machine.
	c := s.direct(t, "--workers=8", "--settle=30m")
	s.calls(t, crowd/5, "a fifth of the bookings", func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && e.Effect })

	// A person comes, and another one changes a Ticket that was booked.
	changed := s.owners()[0]
	s.create(t, "urgent", `{"spec":{"contact":{"email":"urgent@example.com"}}}`)
	s.mustPatch(t, changed, `{"spec":{"cabin":"first"}}`)
	asked := s.effects(booking.OpCreate)

	s.awaitAll(t, crowd+1, ready)
	t.Logf("%d Tickets were ready after %v", crowd+1, time.Since(started).Round(time.Millisecond))
	s.servedFirst(t, asked, crowd)
	s.neverTwice(t)
	if n, live := s.effects(booking.OpCreate), len(s.live()); n != crowd+1 || live != n {
		t.Errorf("booked %d times, %d live", n, live)
	}

	started = time.Now()
	if err := s.dynamic.Resource(tickets).Namespace(s.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitAll(t, 0, nil)
	t.Logf("and gone after %v", time.Since(started).Round(time.Millisecond))
	if n, live := s.effects(booking.OpCancel), len(s.live()); n != crowd+1 || live != 0 {
		t.Errorf("cancelled %d times, %d live", n, live)
	}
	if lines := c.errorsLogged(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
	s.threePatchesEach(t, crowd, changed)
}

func member(n int) string { return fmt.Sprintf("t-%04d", n) }

// createAll makes the crowd's Tickets, each with a contact that tells it.
func (s *stage) createAll(t *testing.T, crowd int) {
	t.Helper()
	all := make(chan *unstructured.Unstructured, crowd)
	for n := range crowd {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(ticket(t, member(n), fmt.Sprintf(`{"spec":{"contact":{"email":"%s@example.com"}}}`, member(n))))); err != nil {
			t.Fatal(err)
		}
		all <- obj
	}
	close(all)
	var makers sync.WaitGroup
	for range 8 {
		makers.Go(func() {
			for obj := range all {
				if _, err := s.dynamic.Resource(tickets).Namespace(s.namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
}

// owners are the Tickets that creates took effect for, in order.
func (s *stage) owners() []string {
	contacts := map[string]string{}
	for _, b := range s.site.Bookings() {
		contacts[b.ID], _, _ = strings.Cut(b.Contact.Email, "@")
	}
	var owners []string
	for _, e := range s.entries(func(e fake.BookingEntry) bool { return e.Op == booking.OpCreate && e.Effect }) {
		owners = append(owners, contacts[e.BookingID])
	}
	return owners
}

// servedFirst checks that those who asked when so many were booked did not wait for
// the crowd: for what was under way at most, and what went on before the controller
// knew of them.
func (s *stage) servedFirst(t *testing.T, asked, crowd int) {
	t.Helper()
	owners := s.owners()
	beforeChange := len(s.entries(func(e fake.BookingEntry) bool {
		return e.Op == booking.OpCreate && e.Effect && e.Seq < s.firstChange()
	}))
	for what, before := range map[string]int{"the new Ticket": slices.Index(owners, "urgent") - asked, "the change": beforeChange - asked} {
		t.Logf("%s was served after %d of %d that waited", what, before, crowd-asked)
		if before > 50 || crowd-asked < 500 {
			t.Errorf("%s waited for %d of %d", what, before, crowd-asked)
		}
	}
}

// firstChange is the journal's number of the first change that took effect.
func (s *stage) firstChange() int {
	changes := s.entries(func(e fake.BookingEntry) bool { return e.Op == booking.OpChange && e.Effect })
	if len(changes) == 0 {
		return math.MaxInt
	}
	return changes[0].Seq
}

// threePatchesEach reads in the audit log what each life of a Ticket cost, but for
// the one that a person changed: claim, status, release.
func (s *stage) threePatchesEach(t *testing.T, crowd int, but string) {
	t.Helper()
	audit, err := s.cluster.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked, err := audit.Requests(func(r controlplane.Request) bool {
		return r.Object.Namespace == s.namespace && r.Object.Resource == "tickets" && strings.HasSuffix(r.User.Name, ":ticket-controller") && r.Verb != "watch"
	})
	if err != nil {
		t.Fatal(err)
	}
	asked = controlplane.Complete(asked)
	t.Logf("the controller's requests about Tickets: %v", controlplane.ByVerb(asked))
	// Beside them, one list of one Ticket tells what was written before the term began.
	if n := controlplane.ByVerb(asked)["list tickets"]; n != 1 {
		t.Errorf("%d lists", n)
	}
	asked = slices.DeleteFunc(asked, func(r controlplane.Request) bool { return r.Verb == "list" })
	// A first list that came before that version costs one read for each key that is popped meanwhile.
	if n := controlplane.ByVerb(asked)["get tickets"]; n > 64 {
		t.Errorf("%d reads", n)
	}
	asked = slices.DeleteFunc(asked, func(r controlplane.Request) bool { return r.Verb == "get" })
	patches := map[string][]string{}
	for _, r := range asked {
		if r.Verb != "patch" || r.Response.Code != http.StatusOK {
			t.Errorf("%s %s was answered %d", r.Verb, r.URI, r.Response.Code)
		}
		patches[r.Object.Name] = append(patches[r.Object.Name], r.Verb+" "+r.Object.Subresource)
	}
	want := []string{"patch ", "patch status", "patch "}
	delete(patches, but)
	for name, got := range patches {
		if !slices.Equal(got, want) {
			t.Errorf("%s took %q, not %q", name, got, want)
		}
	}
	if len(patches) != crowd {
		t.Errorf("%d Tickets were patched, not %d", len(patches), crowd)
	}
}
