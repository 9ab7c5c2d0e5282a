package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/fake"
)

var objects = flag.Int("objects", 10_000, "how many objects BenchmarkMemoryOfObjects creates")

// quiet are options of a server that keeps little beside its objects.
func quiet() fake.APIOptions { return fake.APIOptions{JournalLimit: 100, HistoryLimit: 100} }

func serve(b *testing.B, o fake.APIOptions) kubernetes.Interface {
	b.Helper()
	s := fake.NewAPIServer(o)
	b.Cleanup(s.Close)
	return client(b, s)
}

func client(b *testing.B, s *fake.APIServer) kubernetes.Interface {
	b.Helper()
	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		b.Fatal(err)
	}
	return c
}

var names atomic.Int64

// create creates a ConfigMap that is 1 KB as it is stored.
func create(b *testing.B, c kubernetes.Interface) {
	b.Helper()
	o := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", names.Add(1))}, Data: map[string]string{"k": strings.Repeat("x", 500)},
	}
	if _, err := c.CoreV1().ConfigMaps("default").Create(b.Context(), o, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
	b.ReportMetric(0, "ns/op") // says the same
}

func BenchmarkCreates(b *testing.B) {
	c := serve(b, quiet())
	create(b, c) // what is made once, is
	for b.Loop() {
		create(b, c)
	}
	perSecond(b)
}

// Each create waits for the disk.
func BenchmarkCreatesThatAreKept(b *testing.B) {
	state, err := fake.OpenState(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = state.Close() }() // what was measured is there
	s, err := state.APIServer(quiet())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := client(b, s)
	create(b, c) // what is made once, is
	for b.Loop() {
		create(b, c)
	}
	perSecond(b)
}

// What fifty watchers cost a write, as a multiple of what one does.
func BenchmarkWritesWithFiftyWatchersAgainstOne(b *testing.B) {
	const round = 100
	var took [2]time.Duration
	for b.Loop() {
		for i, watchers := range []int{1, 50} {
			took[i] += writes(b, watchers, round)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "times-one")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N*round), "µs/write")
	b.ReportMetric(0, "ns/op") // is of both, and of nothing in particular
}

// writes is the time of so many creates beside so many watchers.
func writes(b *testing.B, watchers, n int) time.Duration {
	b.Helper()
	s := fake.NewAPIServer(quiet())
	defer s.Close()
	c := client(b, s)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for range watchers {
		w, err := c.CoreV1().RESTClient().Get().AbsPath("/api/v1/configmaps").Param("watch", "1").Stream(ctx)
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			defer w.Close()
			_, _ = io.Copy(io.Discard, w) // until ctx ends
		}()
	}
	create(b, c) // what is made once, is
	begin := time.Now()
	for range n {
		create(b, c)
	}
	return time.Since(begin)
}

// What an object of a kilobyte takes, and how fast all of them are listed in chunks.
func BenchmarkMemoryOfObjects(b *testing.B) {
	for b.Loop() {
		c := serve(b, quiet())
		create(b, c)
		heap, resident := memory(b)
		for range *objects {
			create(b, c)
		}
		heapNow, residentNow := memory(b)
		begin := time.Now()
		seen := 0
		for o := (metav1.ListOptions{Limit: 500}); ; {
			list, err := c.CoreV1().ConfigMaps("default").List(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			if seen += len(list.Items); list.Continue == "" {
				break
			}
			o.Continue = list.Continue
		}
		if seen != *objects+1 {
			b.Fatalf("%d objects are listed, want %d", seen, *objects+1)
		}
		n := float64(*objects)
		b.ReportMetric(float64(heapNow-heap)/n, "heap-B/object")
		b.ReportMetric(float64(residentNow-resident)/n, "resident-B/object")
		b.ReportMetric(n/time.Since(begin).Seconds(), "listed/s")
	}
	b.ReportMetric(0, "ns/op") // is mostly of the creates
}

// memory is what is alive, and what the process has of the machine; 0 where that
// cannot be told.
func memory(b *testing.B) (heap, resident int64) {
	b.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages int64
		if _, err := fmt.Sscan(string(raw), &size, &pages); err == nil {
			resident = pages * int64(os.Getpagesize())
		}
	}
	return int64(m.HeapAlloc), resident //nolint:gosec // no heap is that large
}
