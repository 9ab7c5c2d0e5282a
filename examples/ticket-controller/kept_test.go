package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

// What becomes of Tickets where both servers keep their state, and the process that
// has them ends.

// logs are the files of a state.
var logs = [2]string{"objects.log", "bookings.log"}

// image is how long the files were at a moment: as a process would leave them that
// is killed just then.
type image [2]int64

// images notes how the files grow.
type images struct {
	dir string

	mu  sync.Mutex // guards all
	all []image
}

func (is *images) take() {
	is.mu.Lock()
	defer is.mu.Unlock()
	var now image
	for i, name := range logs {
		info, err := os.Stat(filepath.Join(is.dir, name))
		if err != nil {
			return // not there yet
		}
		now[i] = info.Size()
	}
	if len(is.all) == 0 || is.all[len(is.all)-1] != now {
		is.all = append(is.all, now)
	}
}

// lifeOn runs the controller on a folder's state, which is new or was left behind,
// and f beside it; and tells what there is in the end.
func lifeOn(t *testing.T, is *images, f func(context.Context, person)) (open []string, bookings []booking.Booking) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// What was before is before, also on the clock of a new bubble.
		time.Sleep(24 * time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		state, err := fake.OpenState(is.dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		site, err := state.BookingServer(fake.BookingOptions{Log: func(fake.BookingEntry) { is.take() }})
		if err != nil {
			t.Fatal(err)
		}
		api, err := state.APIServer(fake.APIOptions{Manifests: []string{string(file(t, "deploy/crd.yaml"))}, Log: func(fake.APIEntry) { is.take() }})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- controls(nil)(ctx, api.Config(), &http.Client{Transport: site.Transport()}) }()
		client, err := dynamic.NewForConfig(api.Config())
		if err != nil {
			t.Fatal(err)
		}
		p := person{t, client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")}
		if f != nil {
			f(ctx, p)
		}
		time.Sleep(3 * time.Minute) // whatever was in the air has been looked for
		list, err := p.tickets.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tk := range list.Items {
			open = append(open, tk.GetName())
			p.ready(ctx, tk.GetName())
		}
		bookings = site.Bookings()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		api.Close()
		site.Close()
		if err := state.Close(); err != nil {
			t.Error(err)
		}
	})
	return open, bookings
}

func TestATicketIsBookedOnceWhereverTheProcessWasKilled(t *testing.T) {
	t.Parallel()
	first := &images{dir: t.TempDir()}
	lifeOn(t, first, func(ctx context.Context, p person) {
		p.create(ctx, "stays")
		p.create(ctx, "goes")
		time.Sleep(time.Minute)
		p.moveTo(ctx, "stays", "2027-06-01")
		if err := p.tickets.Delete(ctx, "goes", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	content := [2][]byte{file(t, filepath.Join(first.dir, logs[0])), file(t, filepath.Join(first.dir, logs[1]))}
	// Between two images the process may be killed in the middle of a write, too.
	var all []image
	for i, now := range first.all {
		all = append(all, now)
		for f := range logs {
			if i+1 < len(first.all) && first.all[i+1][f] > now[f] {
				half := now
				half[f] += (first.all[i+1][f] - now[f]) / 2
				all = append(all, half)
			}
		}
	}
	if len(all) < 15 {
		t.Fatalf("there were only %d moments to be killed at: %v", len(all), all)
	}
	for _, at := range all {
		again := &images{dir: t.TempDir()}
		for f, name := range logs {
			if err := os.WriteFile(filepath.Join(again.dir, name), content[f][:at[f]], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		open, bookings := lifeOn(t, again, nil)
		alive := slices.DeleteFunc(slices.Clone(bookings), func(b booking.Booking) bool { return !b.Status.Live() })
		if len(bookings) > 2 || len(alive) != len(open) {
			t.Errorf("killed at %v: the Tickets are %v, and what was booked is %+v", at, open, bookings)
		}
	}
}

// run is the program with a folder, until f has seen enough of its output.
func runIn(t *testing.T, dir string, f func(screen *bufio.Scanner) string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := dispatch(ctx, []string{"--embedded", "always", "--data-dir", dir}, in, io.Discard, none, new(lastActs).add)
		_ = in.Close() // it never fails
		ended <- code
	}()
	screen := bufio.NewScanner(out)
	seen := f(screen)
	stop()
	for screen.Scan() {
		seen += screen.Text() + "\n"
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d:\n%s", code, seen)
	}
	return seen
}

// until reads lines up to one that has all words.
func until(t *testing.T, screen *bufio.Scanner, words ...string) (seen string) {
	t.Helper()
	for screen.Scan() {
		seen += screen.Text() + "\n"
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(screen.Text(), w) }) {
			return seen
		}
	}
	t.Fatalf("%q was not said:\n%s", words, seen)
	return ""
}

// It is not parallel: the program sets the process's klog logger.
func TestWithADataDirTheProgramGoesOnWhereItEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	seen := runIn(t, dir, func(screen *bufio.Scanner) string {
		seen := until(t, screen, "What happens from now on")
		for _, want := range []string{"stays in " + dir, "export KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), "to-paris is sold out"} {
			if !strings.Contains(seen, want) {
				t.Errorf("the banner lacks %q:\n%s", want, seen)
			}
		}
		seen = until(t, screen, "to-paris", "SoldOut")
		code := dispatch(t.Context(), []string{"--embedded", "always", "--data-dir", dir}, io.Discard, io.Discard, none, new(lastActs).add)
		if code != 1 {
			t.Errorf("a second process on the folder: exit status %d", code)
		}
		var told strings.Builder
		dispatch(t.Context(), []string{"--embedded", "always", "--data-dir", dir}, io.Discard, &told, none, new(lastActs).add)
		if want := fmt.Sprintf("--data-dir: fake: the state: %s: process %d uses it", dir, os.Getpid()); !strings.Contains(told.String(), want) {
			t.Errorf("it says %q", told.String())
		}
		return seen
	})
	if !strings.Contains(seen, "SoldOut") {
		t.Error(seen)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is still there: %v", err)
	}
	state, err := fake.OpenState(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	api, err := state.APIServer(fake.APIOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	tickets := client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")
	err = tickets.Delete(t.Context(), "to-paris", metav1.DeleteOptions{}) // nothing is booked for it
	api.Close()
	if err != nil || state.Close() != nil {
		t.Fatal(err)
	}
	seen = runIn(t, dir, func(screen *bufio.Scanner) string { return until(t, screen, "What happens from now on") })
	if !strings.Contains(seen, "What is in "+dir+" from before is there again") || strings.Contains(seen, "to-paris") || strings.Contains(seen, "a new Ticket") {
		t.Errorf("the second time:\n%s", seen)
	}
}

func TestTheKubeconfigGoesThoughTheProgramIsEndedHard(t *testing.T) {
	dir := t.TempDir()
	var last lastActs
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := dispatch(ctx, []string{"--embedded", "always", "--data-dir", dir}, in, io.Discard, none, last.add)
		_ = in.Close() // it never fails
		ended <- code
	}()
	screen := bufio.NewScanner(out)
	until(t, screen, "export KUBECONFIG=")
	path := filepath.Join(dir, "kubeconfig")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	last.do()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	stop()
	for screen.Scan() { // what it has to say still has to be read
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d", code)
	}
}
