package pods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/internal/e2e/traffic"
)

func TestTheOperatorIsTakenAwayInTheOrderOfItsReadmeAndLeavesNothing(t *testing.T) {
	operator(t)
	f := newFlights(t)
	f.book(t, "one", "two")
	f.exactlyOnce(t, 2)

	must(t, "delete", "tickets", "--all", "--all-namespaces")
	if live := site.live(); len(live) > 0 {
		t.Errorf("the Tickets are gone, and booked are %v", live)
	}
	must(t, "delete", "-k", filepath.Join(deploy, "base"))
	must(t, "delete", "-f", filepath.Join(deploy, "people.yaml"), "-f", filepath.Join(deploy, "crd.yaml"))

	// The namespace takes what is in it with it, the Secret and the ConfigMap too.
	if left := must(t, "get", "namespace", namespace, "--ignore-not-found", "-o", "name"); left != "" {
		t.Errorf("left is %s", left)
	}
	if left := must(t, "get", "clusterroles,clusterrolebindings,priorityclasses,crds", "-o", "name", "-l", "app.kubernetes.io/part-of=tether"); left != "" {
		t.Errorf("left are %s", left)
	}
	unit, err := os.ReadFile(filepath.Join(deploy, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(unit), "\n---\n") {
		if strings.Contains(document, "namespace: "+namespace) {
			continue // it went with the namespace, without which nothing can be asked
		}
		if left := mustWith(t, document, "get", "-f", "-", "--ignore-not-found", "-o", "name"); left != "" {
			t.Errorf("left is %s", left)
		}
	}
}

func TestATicketDeletedAfterTheOperatorWaitsForItsReturn(t *testing.T) {
	operator(t)
	f := newFlights(t)
	f.book(t, "one", "two")
	f.exactlyOnce(t, 2)

	must(t, "delete", "-k", filepath.Join(deploy, "base"))
	must(t, "delete", "tickets", "-n", f.Namespace, "--all", "--wait=false")
	await(t, ticketResource, f.Namespace, "Tickets that wait", func(all []*v1.Ticket) bool {
		for _, tk := range all {
			if tk.DeletionTimestamp == nil || len(tk.Finalizers) == 0 {
				return false
			}
		}
		return len(all) == 2
	})
	if n := len(site.live()); n != 2 {
		t.Errorf("%d bookings stand", n)
	}

	operator(t)
	await(t, ticketResource, f.Namespace, "no Ticket", func(all []*v1.Ticket) bool { return len(all) == 0 })
	for _, wrong := range traffic.Wrong(nil, site.BookingServer) {
		t.Error(wrong)
	}
}
