package fake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/wal"
)

// kept is both servers with one state.
type kept struct {
	dir      string
	state    *fake.State
	api      api
	bookings fixture
	disk     *disk
	warnings []string
}

// disk fails as it is told. It forces nothing to the real one, which takes time and
// proves nothing where no machine fails.
type disk struct {
	mu     sync.Mutex // guards what follows
	writes int        // that succeed until all fail; less than 0 for no end
}

type diskFile struct {
	wal.File
	d *disk
}

func (f diskFile) WriteAt(b []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.writes == 0 {
		n, err := f.File.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, syscall.ENOSPC)
	}
	f.d.writes--
	return f.File.WriteAt(b, at)
}

func (diskFile) Sync() error { return nil }

func (d *disk) fits(writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes = writes
}

const noEnd = -1

func stateOptions() (fake.APIOptions, fake.BookingOptions) {
	return fake.APIOptions{Seed: 5, Manifests: []string{boxes}}, fake.BookingOptions{Seed: 5}
}

// open opens the state of a folder, with what is to be closed at the test's end.
func open(t *testing.T, dir string) *kept {
	t.Helper()
	a, b := stateOptions()
	k, err := tryOpen(t, dir, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func tryOpen(t *testing.T, dir string, a fake.APIOptions, b fake.BookingOptions) (*kept, error) {
	t.Helper()
	k := &kept{dir: dir, disk: &disk{writes: noEnd}}
	var err error
	if k.state, err = fake.OpenState(dir, func(text string) { k.warnings = append(k.warnings, text) }); err != nil {
		return nil, err
	}
	t.Cleanup(func() { k.close(t) })
	k.state.OnDisk(func(f wal.File) wal.File { return diskFile{f, k.disk} })
	if k.bookings.BookingServer, err = k.state.BookingServer(b); err != nil {
		return nil, err
	}
	k.bookings.client = client(t, k.bookings.BookingServer, "one")
	if k.api.APIServer, err = k.state.APIServer(a); err != nil {
		return nil, err
	}
	k.api.kube = kubeOf(t, k.api.APIServer)
	k.api.boxes = boxesOf(t, k.api.Config())
	return k, nil
}

func (k *kept) close(t *testing.T) {
	t.Helper()
	if k.api.APIServer != nil {
		k.api.Close()
	}
	if k.bookings.BookingServer != nil {
		k.bookings.Close()
	}
	if err := k.state.Close(); err != nil {
		t.Error(err)
	}
}

// again ends everything and opens it again.
func (k *kept) again(t *testing.T) *kept {
	t.Helper()
	k.close(t)
	return open(t, k.dir)
}

// seen is what clients see of the API: lists as they come over the wire.
func (k *kept) seen(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	c := k.api.kube.CoreV1().RESTClient().(*rest.RESTClient).Client
	for _, path := range []string{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/boxes", "/api/v1/namespaces", "/api/v1/configmaps",
		"/api/v1/secrets", "/api/v1/services", "/apis/apps/v1/deployments", "/api/v1/pods", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/apis/coordination.k8s.io/v1/leases", "/api/v1/events", "/apis/events.k8s.io/v1/events", "/apis", "/api/v1",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.api.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(&all, path, " ", resp.StatusCode, " ")
		if _, err := io.Copy(&all, resp.Body); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // read to its end
		all.WriteByte('\n')
	}
	return all.String()
}

// booked is what the airline has, over all versions.
func (k *kept) booked() string {
	raw, err := json.Marshal(k.bookings.Bookings())
	return fmt.Sprint(string(raw), err)
}

func TestWhatAnAPIServerHasStaysAsItWas(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	if !k.state.Empty() {
		t.Error("a new folder is not empty")
	}
	ctx := t.Context()
	first := k.api.create(t, box("a"))
	k.api.create(t, box("b"))
	second := must[*corev1.ConfigMap](t)(k.api.kube.CoreV1().ConfigMaps("default").Create(ctx, configMap("c"), metav1.CreateOptions{}))
	for _, o := range []string{`{"spec":{"size":3}}`, `{"metadata":{"labels":{"l":"1"},"finalizers":["example.com/f"]}}`} {
		must[any](t)(k.api.boxes.Patch(ctx, "a", types.MergePatchType, []byte(o), metav1.PatchOptions{}))
	}
	must[any](t)(k.api.boxes.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"phase":"x"}}`), metav1.PatchOptions{}, "status"))
	must[any](t)(k.api.kube.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{}))
	must[any](t)(k.api.kube.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{}))
	must[any](t)(k.api.kube.CoreV1().Events("default").Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Box", Name: "a", Namespace: "default"}, Count: 2,
	}, metav1.CreateOptions{}))
	if err := errors.Join(k.api.boxes.Delete(ctx, "b", metav1.DeleteOptions{}), k.api.boxes.Delete(ctx, "a", metav1.DeleteOptions{})); err != nil {
		t.Fatal(err)
	}
	before, version := k.seen(t), k.api.Version()

	k = k.again(t)
	if diff := cmp.Diff(before, k.seen(t)); diff != "" || k.state.Empty() || k.api.Version() != version {
		t.Errorf("version %d, was %d:\n%s", k.api.Version(), version, diff)
	}
	// Nothing is given out twice.
	made := k.api.create(t, box("d"))
	for _, o := range []metav1.Object{first, second} {
		if o.GetUID() == made.GetUID() {
			t.Errorf("%s and d have one UID", o.GetName())
		}
	}
	if made.GetResourceVersion() != fmt.Sprint(version+1) {
		t.Errorf("the next version is %s, after %d", made.GetResourceVersion(), version)
	}
	for version, want := range map[string]bool{first.GetResourceVersion(): false, fmt.Sprint(version): true} {
		w, err := k.api.boxes.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		e := <-w.ResultChan()
		if w.Stop(); (e.Type == "ADDED") != want || !want && apierrors.FromObject(e.Object).(apierrors.APIStatus).Status().Code != http.StatusGone {
			t.Errorf("from version %s: %v", version, e)
		}
	}
	// A third time: from a snapshot and what came after it.
	before = k.seen(t)
	if diff := cmp.Diff(before, k.again(t).seen(t)); diff != "" {
		t.Error(diff)
	}
}

func TestADefinitionThatGoesTakesItsObjectsAlongForGood(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	k.api.create(t, box("a"))
	definitions := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	c := k.api.kube.CoreV1().RESTClient()
	if err := c.Delete().AbsPath(definitions, "boxes.example.com").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if k = k.again(t); !strings.Contains(k.seen(t), "/apis/example.com/v1/boxes 404") {
		t.Error("the definition is there again")
	}
}

// A controller's work is done within the request, but for that the process ends, or
// the disk is full, in the middle of it.
func TestWhatControllersHadNotComeToIsMadeUpFor(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(*testing.T, *kept) *kept{
		"after a restart": func(t *testing.T, k *kept) *kept { return k.again(t) },
		"once there is space": func(t *testing.T, k *kept) *kept {
			k.disk.fits(noEnd)
			other := box("")
			other.SetGenerateName("any-")
			k.api.create(t, other)
			return k
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			k := open(t, t.TempDir())
			owner := k.api.create(t, box("owner"))
			dependent := box("dependent")
			dependent.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Box", Name: "owner", UID: owner.GetUID()}})
			k.api.create(t, dependent)
			must[any](t)(k.api.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, metav1.CreateOptions{}))
			must[any](t)(k.api.kube.CoreV1().ConfigMaps("ns").Create(ctx, configMap("c"), metav1.CreateOptions{}))

			k.disk.fits(1)
			if err := k.api.boxes.Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := k.api.boxes.Get(ctx, "dependent", metav1.GetOptions{}); err != nil {
				t.Fatalf("the disk was not full in time: %v", err)
			}
			k = goOn(t, k)
			if _, err := k.api.boxes.Get(ctx, "dependent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the dependent is still there: %v", err)
			}
			k.disk.fits(1)
			if err := k.api.kube.CoreV1().Namespaces().Delete(ctx, "ns", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			k = goOn(t, k)
			if _, err := k.api.kube.CoreV1().Namespaces().Get(ctx, "ns", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the namespace is still there: %v", err)
			}
		})
	}
}

func TestAWriteThatCannotBeKeptChangesNothingAndTheServerGoesOn(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	ctx := t.Context()
	w := must[watch.Interface](t)(k.api.boxes.Watch(ctx, metav1.ListOptions{}))
	defer w.Stop()
	k.api.create(t, box("a"))
	before := k.seen(t)
	k.disk.fits(0)
	for _, write := range []func() error{
		func() error { _, err := k.api.boxes.Create(ctx, box("b"), metav1.CreateOptions{}); return err },
		func() error {
			_, err := k.api.boxes.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":9}}`), metav1.PatchOptions{})
			return err
		},
		func() error { return k.api.boxes.Delete(ctx, "a", metav1.DeleteOptions{}) },
	} {
		if err := write(); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no space left on device") || !strings.Contains(err.Error(), k.dir) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := k.bookings.client.Create(ctx, "k1", request("r")); !errors.Is(err, booking.Internal) {
		t.Errorf("a booking: %v", err)
	}
	if err := k.bookings.Lose("no"); err == nil {
		t.Error("what is not there was lost")
	}
	k.bookings.SellOut("ICN", "CDG", "", true) // goes with what comes next
	if diff := cmp.Diff(before, k.seen(t)); diff != "" || len(k.bookings.Bookings()) != 0 {
		t.Error(diff, k.booked())
	}

	k.disk.fits(noEnd)
	k.api.create(t, box("c"))
	made := must[booking.Answer](t)(k.bookings.client.Create(ctx, "k1", request("r")))
	for _, want := range []string{"a", "c"} {
		if got := (<-w.ResultChan()).Object.(metav1.Object).GetName(); got != want {
			t.Errorf("the watch told of %s, want %s", got, want)
		}
	}
	seen, booked := k.seen(t), k.booked()
	k = k.again(t)
	if diff := cmp.Diff(seen, k.seen(t)) + cmp.Diff(booked, k.booked()); diff != "" || len(k.warnings) > 0 {
		t.Error(diff, k.warnings)
	}
	if again := must[booking.Answer](t)(k.bookings.client.Create(ctx, "k1", request("r"))); !again.Replayed || again.Booking.ID != made.Booking.ID {
		t.Errorf("the key was not kept: %+v", again)
	}
	r := request("sold-out")
	r.To = "CDG"
	if _, err := k.bookings.client.Create(ctx, "k2", r); !errors.Is(err, booking.SoldOut) {
		t.Errorf("got %v, want that it is sold out", err)
	}
}

func TestWhatAnAirlineHasStaysAsItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		a, b := stateOptions()
		b.ConfirmAfter, b.RescheduleAfter, b.FlownAfter = time.Minute, time.Hour, 48*time.Hour
		dir := t.TempDir()
		reopen := func(k *kept) *kept {
			if k != nil {
				k.close(t)
			}
			return must[*kept](t)(tryOpen(t, dir, a, b))
		}
		k := reopen(nil)
		c := k.bookings.client
		one := must[booking.Answer](t)(c.Create(ctx, "k1", request("one")))
		two := must[booking.Answer](t)(c.Create(ctx, "k2", request("two")))
		must[any](t)(c.Create(ctx, "k3", request("three")))
		must[any](t)(c.Change(ctx, "k4", two.Booking.ID, two.Booking.Version, booking.Change{ClientReference: ptr("renamed"), Cabin: ptr(booking.Business)}))
		closed := must[booking.Closed](t)(c.CloseReference(ctx, "k5", "one"))
		_, refusal := c.Create(ctx, "k6", request("one"))
		if err := k.bookings.Lose(k.bookings.Bookings()[2].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		before := k.booked()

		k = reopen(k)
		c = k.bookings.client
		if diff := cmp.Diff(before, k.booked()); diff != "" || !strings.Contains(before, "confirmed") {
			t.Error(diff, before)
		}
		if again := must[booking.Answer](t)(c.Create(ctx, "k1", request("one"))); !again.Replayed || !cmp.Equal(again.Booking, one.Booking) {
			t.Errorf("the first answer was %+v, and now is %+v", one, again)
		}
		if again := must[booking.Closed](t)(c.CloseReference(ctx, "k5", "one")); !again.Replayed || !cmp.Equal(again.Bookings, closed.Bookings) {
			t.Error(cmp.Diff(closed, again))
		}
		if _, err := c.Create(ctx, "k6", request("one")); err == nil || err.Error() != refusal.Error() {
			t.Errorf("the refusal was %v, and is %v", refusal, err)
		}
		if _, err := c.Create(ctx, "k7", request("one")); !errors.Is(err, booking.ReferenceClosed) {
			t.Errorf("a closed reference: %v", err)
		}
		for _, spent := range []string{"two", "renamed", "three"} {
			if _, err := c.Create(ctx, "spent-"+spent, request(spent)); !errors.Is(err, booking.ReferenceTaken) {
				t.Errorf("reference %s: %v", spent, err)
			}
		}
		four := must[booking.Answer](t)(c.Create(ctx, "k8", request("four"))).Booking
		time.Sleep(time.Minute)
		for _, b := range k.bookings.Bookings() {
			if b.ID != four.ID && b.Cabin == booking.Economy && slices.Equal(b.Seats, k.bookings.Live("four")[0].Seats) {
				t.Errorf("seats %v are given out twice", b.Seats)
			}
		}
		// What is planned goes on, as of its own time, and answers are kept as long
		// as they were to be.
		time.Sleep(72 * time.Hour)
		k = reopen(k)
		if got := k.bookings.Live("renamed"); len(got) != 1 || got[0].Status != booking.Flown || got[0].ScheduleChange == nil ||
			got[0].UpdatedAt.Sub(got[0].BookedAt) != 48*time.Hour {
			t.Errorf("got %+v", got)
		}
		if _, err := k.bookings.client.Create(ctx, "k1", request("other")); err != nil {
			t.Errorf("a key that has outlived its time: %v", err)
		}
	})
}

func TestAKeyThatIsUsedAgainOnceItHasOutlivedItsTimeIsKeptAsLongAsAnyOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		k := open(t, t.TempDir())
		must[any](t)(k.bookings.client.Create(ctx, "k", request("one")))
		time.Sleep(25 * time.Hour)
		must[any](t)(k.bookings.client.Create(ctx, "k", request("two")))
		for range 2 { // from the log, and from a snapshot of it
			k = k.again(t)
			if again := must[booking.Answer](t)(k.bookings.client.Create(ctx, "k", request("two"))); !again.Replayed {
				t.Errorf("the answer was not kept\n%s", k.bookings.Transcript())
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(23 * time.Hour)
		if again, err := k.bookings.client.Create(ctx, "k", request("three")); err != nil || again.Replayed {
			t.Errorf("it is kept for too long: %+v, %v", again, err)
		}
	})
}

// files are those of a state, by name.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{"objects.log", "bookings.log"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = raw
	}
	return all
}

func put(t *testing.T, content map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, raw := range content {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A log that is cut within its last record is one in which that record was never
// written. That this is so at every byte of it internal/wal tests; here the servers
// are opened at enough of them.
func TestAnEndThatIsBrokenIsCutOffWithAWarning(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	k.api.create(t, box("a"))
	must[any](t)(k.bookings.client.Create(t.Context(), "k1", request("one")))
	seen, booked, whole := k.seen(t), k.booked(), files(t, k.dir)
	k.api.create(t, box("b"))
	must[any](t)(k.bookings.client.Create(t.Context(), "k2", request("two")))
	longer := files(t, k.dir)
	k.close(t)
	steps := max(len(longer["objects.log"])-len(whole["objects.log"]), len(longer["bookings.log"])-len(whole["bookings.log"]))
	for n := 0; n < steps; n += 1 + 3*(n/8) {
		cut := map[string][]byte{}
		for name := range whole {
			cut[name] = longer[name][:min(len(whole[name])+n, len(longer[name])-1)]
		}
		k := open(t, put(t, cut))
		want := 2
		if n == 0 {
			want = 0
		}
		if len(k.warnings) != want || n > 0 && !strings.Contains(k.warnings[1], fmt.Sprintf("objects.log: the last write is broken off at offset %d: ", len(whole["objects.log"]))) {
			t.Fatalf("%d bytes of the last record: warned of %q", n, k.warnings)
		}
		if k.booked() != booked {
			t.Fatalf("%d bytes of the last record: the airline has %s", n, k.booked())
		}
		if diff := cmp.Diff(seen, k.seen(t)); diff != "" {
			t.Fatalf("%d bytes of the last record: %s", n, diff)
		}
		k.close(t)
	}
}

func TestAFileThatIsDamagedOrStrangeIsAnErrorAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	k.api.create(t, box("a"))
	k.api.create(t, box("b"))
	must[any](t)(k.bookings.client.Create(t.Context(), "k1", request("one")))
	must[any](t)(k.bookings.client.Create(t.Context(), "k2", request("two")))
	good := files(t, k.dir)
	k.close(t)
	a, b := stateOptions()
	for name, raw := range good {
		for _, at := range []int{0, 20, len(raw) / 3} {
			broken := maps.Clone(good)
			broken[name] = slices.Clone(raw)
			broken[name][at] ^= 0x40
			dir := put(t, broken)
			_, err := tryOpen(t, dir, a, b)
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, name)+": it is damaged at offset ") || !strings.Contains(err.Error(), "restore the file from a copy") {
				t.Errorf("%s, byte %d: %v", name, at, err)
			}
			if !bytes.Equal(files(t, dir)[name], broken[name]) {
				t.Errorf("%s, byte %d: the file was changed", name, at)
			}
		}
	}
}

func TestAFileUnderTheOthersNameIsAnErrorAndOneThatIsGoneAWarning(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	k.api.create(t, box("a"))
	must[any](t)(k.bookings.client.Create(t.Context(), "k1", request("one")))
	good := files(t, k.dir)
	k.close(t)
	a, b := stateOptions()
	swapped := map[string][]byte{"objects.log": good["bookings.log"], "bookings.log": good["objects.log"]}
	dir := put(t, swapped)
	if _, err := tryOpen(t, dir, a, b); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "bookings.log")) || !strings.Contains(err.Error(), "under their own names") {
		t.Errorf("swapped: %v", err)
	}
	if d := cmp.Diff(swapped, files(t, dir)); d != "" {
		t.Errorf("the files were changed: %s", d)
	}
	for gone, other := range map[string]string{"objects.log": "bookings.log", "bookings.log": "objects.log"} {
		k := open(t, put(t, map[string][]byte{other: good[other]}))
		want := filepath.Join(k.dir, gone) + ": it is not there, and " + other + " is: what it would have is taken for never made"
		if len(k.warnings) != 1 || k.warnings[0] != want {
			t.Errorf("without %s: warned of %q, want %q", gone, k.warnings, want)
		}
		if k = k.again(t); len(k.warnings) > 0 {
			t.Errorf("the next time: %q", k.warnings)
		}
	}
}

func TestAStateIsOfOneProcessAndOneServerOfEachKind(t *testing.T) {
	t.Parallel()
	k := open(t, filepath.Join(t.TempDir(), "new"))
	if _, err := fake.OpenState(k.dir, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: process %d uses it", k.dir, os.Getpid())) {
		t.Errorf("a second one: %v", err)
	}
	a, b := stateOptions()
	if _, err := k.state.APIServer(a); err == nil {
		t.Error("there are two API servers")
	}
	if _, err := k.state.BookingServer(b); err == nil {
		t.Error("there are two booking servers")
	}
	a.HistoryLimit, b.FixedFares = -1, 2
	if _, err := k.state.APIServer(a); err == nil || !strings.Contains(err.Error(), "HistoryLimit") {
		t.Errorf("got %v", err)
	}
	if _, err := k.state.BookingServer(b); err == nil || !strings.Contains(err.Error(), "FixedFares") {
		t.Errorf("got %v", err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "objects.log": 0o600, "bookings.log": 0o600, "lock": 0o600} {
		if info, err := os.Stat(filepath.Join(k.dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	if err := k.state.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.api.boxes.Create(t.Context(), box("late"), metav1.CreateOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAFileDoesNotGrowWithWhatIsOver(t *testing.T) {
	t.Parallel()
	k := open(t, t.TempDir())
	size := func() int { return len(files(t, k.dir)["objects.log"]) }
	begin := size()
	for i := range 50 {
		name := fmt.Sprint("b", i)
		k.api.create(t, box(name))
		if err := k.api.boxes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grown := size()
	if k = k.again(t); size() > begin+100 || grown < begin+50*100 {
		t.Errorf("%d bytes at first, %d after a hundred writes, %d after the next start", begin, grown, size())
	}
}
