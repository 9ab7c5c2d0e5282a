package realcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tetherkube/tether/internal/e2e/process"
)

// TestMain lets the test's own executable be a program that has a cluster and is
// killed.
func TestMain(m *testing.M) {
	if os.Getenv("REALCLUSTER_TEST") == "owner" {
		c, err := withAPod(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Println("it runs", c.dir)
		select {}
	}
	os.Exit(m.Run())
}

// withAPod starts a cluster of one node, on which a pod runs.
func withAPod(ctx context.Context) (*Cluster, error) {
	c, err := Start(ctx, Options{})
	if err != nil {
		return nil, err
	}
	client, err := c.Client()
	if err != nil {
		return c, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "waits", Image: pauseImage, ImagePullPolicy: corev1.PullNever}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return c, err
	}
	return c, c.await(ctx, client.CoreV1().RESTClient(), "pods", "default", "one", &corev1.Pod{}, func(o runtime.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && pod.Status.Phase == corev1.PodRunning
	})
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // the first time, the programs are built
	t.Cleanup(cancel)
	return ctx
}

// traces are of the cluster that has its files in a folder: the folder, control
// groups, and processes that have something of it mounted or on their command
// line, on whatever machine.
func traces(t *testing.T, dir string) (all []string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		all = append(all, dir)
	}
	name := filepath.Base(dir)
	for _, pattern := range []string{"/sys/fs/cgroup/tether-" + name, "/sys/fs/cgroup/*/tether-" + name} {
		groups, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, groups...)
	}
	for _, pattern := range []string{"/proc/[0-9]*/mountinfo", "/proc/[0-9]*/cmdline"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), name) { // it may have ended
				comm, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
				all = append(all, file+" of "+strings.TrimSpace(string(comm)))
			}
		}
	}
	return all
}

// enough is how many traces a cluster has at least while it runs: fewer would mean
// that they are looked for where they are not.
const enough = 20

func TestAClusterRunsAPodAndStopsWithoutATrace(t *testing.T) {
	t.Parallel()
	c, err := withAPod(limit(t))
	if c != nil {
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if found := traces(t, c.dir); len(found) < enough {
		t.Fatalf("while it runs, there are only %v", found)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, c.dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNothingIsLeftWhenTheOwnerIsKilled(t *testing.T) {
	t.Parallel()
	owner, err := process.Start(process.Options{Path: os.Args[0], Env: append(os.Environ(), "REALCLUSTER_TEST=owner")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owner.Kill(); err != nil {
			t.Error(err)
		}
	})
	line, _, err := owner.WaitForLine(limit(t), 0, "it runs")
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimPrefix(line, "it runs ")
	if found := traces(t, dir); len(found) < enough {
		t.Fatalf("while it runs, there are only %v", found)
	}
	if err := owner.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed, tick := time.Now(), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		left := traces(t, dir)
		if len(left) == 0 {
			t.Logf("all was gone after %v", time.Since(killed).Round(100*time.Millisecond))
			return
		}
		if <-tick.C; time.Since(killed) > time.Minute {
			t.Fatalf("left behind: %v", left)
		}
	}
}

func TestWhatIsMissingIsNamedWithTheRemedy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		uid   int
		there []string
		words []string
	}{
		"two programs": {0, []string{"mount", "ip"}, []string{"runc, nft", "apt-get install --no-install-recommends runc nftables"}},
		"root":         {1000, []string{"mount", "ip", "runc", "nft"}, []string{"the rights of root", "run it as root"}},
		"nothing":      {0, []string{"mount", "ip", "runc", "nft"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := missing(test.uid, func(program string) (string, error) {
				if strings.Contains(strings.Join(test.there, " "), program) {
					return "/bin/" + program, nil
				}
				return "", os.ErrNotExist
			})
			if (err == nil) != (test.words == nil) {
				t.Fatalf("the error is %v", err)
			}
			for _, words := range test.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in: %v", words, err)
				}
			}
		})
	}
}
