package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
)

func TestTheEmbeddedServerIsUsedWhereNoClusterIsConfiguredOrItIsAskedFor(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := t.TempDir()
	good, broken := filepath.Join(dir, "good"), filepath.Join(dir, "broken")
	for path, content := range map[string]string{good: kubeconfig + "current-context: one\n", broken: "{nonsense"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const url = "https://x.example"
	for _, c := range []struct {
		name     string
		s        settings
		env      string
		embedded bool
		want     string // in the error; "" for none
	}{
		{"nothing", settings{}, "", true, ""},
		{"nothing, auto", settings{embedded: auto}, "", true, ""},
		{"nothing, never", settings{embedded: never, bookingURL: url}, "", false, "no cluster is configured"},
		{"nothing, but a context", settings{context: "c"}, "", false, "--context c"},
		{"a cluster", settings{bookingURL: url}, good, false, ""},
		{"a cluster and no booking API", settings{}, good, false, "--booking-url is missing"},
		{"a cluster and a data dir", settings{bookingURL: url, dataDir: "d"}, good, false, "--data-dir is for the embedded servers"},
		{"nothing, and a data dir", settings{dataDir: "d"}, "", true, ""},
		{"a cluster, always", settings{embedded: always}, good, true, ""},
		{"broken", settings{}, broken, false, "cannot be read"},
		{"broken, always", settings{embedded: always}, broken, true, ""},
		{"no such file", settings{}, filepath.Join(dir, "no"), false, "no such file"},
		{"a flag with no such file", settings{kubeconfig: filepath.Join(dir, "no")}, "", false, "no such file"},
	} {
		k, embedded, err := choose(c.s, func(string) string { return c.env }, filepath.Join(dir, "home"))
		if embedded != c.embedded || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: embedded %v, %v", c.name, embedded, err)
		}
		if err == nil && !embedded && k.config == nil {
			t.Errorf("%s: there is neither a cluster nor an error", c.name)
		}
	}
}

func ready(t *testing.T, u *unstructured.Unstructured) (status, reason string) {
	t.Helper()
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
			status, _ = m["status"].(string)
			reason, _ = m["reason"].(string)
		}
	}
	return status, reason
}

// It is not parallel: the program sets the process's klog logger.
func TestWithNoClusterTheProgramBooksItsSamplesAndFollowsAPerson(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	screen, stdout := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := dispatch(ctx, []string{"--embedded", "always"}, stdout, io.Discard, none, new(lastActs).add)
		_ = stdout.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(screen)
	var path string
	var all strings.Builder
	for path == "" && lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if _, after, found := strings.Cut(lines.Text(), "export KUBECONFIG="); found {
			path = after
		}
	}
	rest := make(chan string, 1)
	go func() {
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
		}
		rest <- all.String()
	}()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the kubeconfig: %v, %v", info, err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tickets := client.Resource(v1.GroupVersion.WithResource("tickets")).Namespace("default")
	w, err := tickets.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	open := map[string]string{"to-new-york": "True", "two-to-tokyo": "True", "to-paris": "SoldOut"}
	await(t, w, func(_ watch.Event, u *unstructured.Unstructured) bool {
		if status, reason := ready(t, u); open[u.GetName()] == status || open[u.GetName()] == reason {
			delete(open, u.GetName())
		}
		return len(open) == 0
	})
	day := time.Now().AddDate(0, 0, 90).Format(time.DateOnly)
	if _, err := tickets.Patch(ctx, "to-paris", types.MergePatchType, []byte(`{"spec":{"departureDate":"`+day+`"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, w, func(_ watch.Event, u *unstructured.Unstructured) bool {
		status, _ := ready(t, u)
		return u.GetName() == "to-paris" && status == "True"
	})
	if err := tickets.Delete(ctx, "two-to-tokyo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, w, func(e watch.Event, u *unstructured.Unstructured) bool {
		return e.Type == watch.Deleted && u.GetName() == "two-to-tokyo"
	})
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig's folder is still there: %v", err)
	}
	shown := <-rest
	for _, words := range []string{
		"EMBEDDED FAKE, not a cluster", "kubectl get tickets", "to-paris              Stalled, SoldOut", "you         to-paris              spec changed: departureDate from",
		"Ready: confirmed as", "has cancelled the booking", "two-to-tokyo          the Ticket is gone",
	} {
		if !strings.Contains(shown, words) {
			t.Errorf("the screen lacks %q", words)
		}
	}
	if strings.Contains(shown, "\x1b") {
		t.Error("there are colours where there is no terminal")
	}
	if t.Failed() {
		t.Log(shown)
	}
}
