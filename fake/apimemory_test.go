package fake_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/fake"
)

// kilobyte is a ConfigMap that is 1 KB as it is stored.
func kilobyte(name string) *corev1.ConfigMap {
	c := configMap(name)
	c.Data["k"] = strings.Repeat("x", 500)
	return c
}

func kubeOf(t *testing.T, s *fake.APIServer) kubernetes.Interface {
	t.Helper()
	return must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(s.Config()))
}

func create(t *testing.T, a kubernetes.Interface, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := a.CoreV1().ConfigMaps("default").Create(t.Context(), kilobyte(fmt.Sprint("c", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// heap is what is alive.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// No t.Parallel: what else runs would be counted.
func TestAnObjectOfAKilobyteTakesAFewKilobytesAndListsInChunks(t *testing.T) {
	s := fake.NewAPIServer(fake.APIOptions{JournalLimit: 100, HistoryLimit: 100})
	t.Cleanup(s.Close)
	a := kubeOf(t, s)
	const objects = 1000
	create(t, a, 0, 200) // what is made once, is
	before := heap()
	create(t, a, 200, 200+objects)
	// 100,000 are to fit into 500 MB.
	const most = 500 << 20 / 100_000
	if each := (heap() - before) / objects; each > most {
		t.Errorf("each takes %d bytes, want at most %d", each, most)
	}
	seen, chunks := 0, 0
	for o := (metav1.ListOptions{Limit: 500}); ; {
		list, err := a.CoreV1().ConfigMaps("default").List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		chunks++
		if seen += len(list.Items); list.Continue == "" {
			break
		}
		o.Continue = list.Continue
	}
	if seen != objects+200 || chunks != (objects+200+499)/500 {
		t.Errorf("%d in %d chunks", seen, chunks)
	}
}

// No t.Parallel: it is about time.
func TestFiftyWatchesSlowAWriteToNoMoreThanTwiceWhatOneDoes(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector is what takes the time then; .ci/run has the tests run without it once, with the newest Go")
	}
	took := func(watches int) time.Duration {
		s := fake.NewAPIServer(fake.APIOptions{})
		defer s.Close()
		a := kubeOf(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range watches {
			w, err := a.CoreV1().RESTClient().Get().AbsPath("/api/v1/configmaps").Param("watch", "1").Stream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer w.Close()
				_, _ = io.Copy(io.Discard, w) // until ctx ends
			}()
		}
		create(t, a, 0, 50)
		begin := time.Now()
		create(t, a, 50, 450)
		return time.Since(begin)
	}
	// Others use the machine too: the best of some rounds counts.
	one, fifty := time.Hour, time.Hour
	for range 8 {
		one, fifty = min(one, took(1)), min(fifty, took(50))
		if fifty <= 2*one {
			return
		}
	}
	t.Errorf("400 writes took %v with one watch, and %v with fifty", one, fifty)
}
