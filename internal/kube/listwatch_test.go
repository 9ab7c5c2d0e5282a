package kube

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sunk is a Sink that notes what it is told of lists.
type sunk struct{ told []string }

func (s *sunk) Listing(authoritative bool) {
	s.told = append(s.told, fmt.Sprint("listing ", authoritative))
}
func (s *sunk) Replace([]*corev1.ConfigMap, string) {}
func (s *sunk) Apply(*corev1.ConfigMap)             {}
func (s *sunk) Remove(*corev1.ConfigMap)            {}
func (s *sunk) Reached(string)                      {}
func (s *sunk) Trouble(err error)                   { s.told = append(s.told, fmt.Sprint("trouble ", err != nil)) }

func TestAListOrAWatchThatFailsIsTold(t *testing.T) {
	t.Parallel()
	conn := server(t, nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	client, err := NewClient[*corev1.ConfigMap](conn, configMaps)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx  context.Context //nolint:containedctx // one of the cases
		want []string
	}{{t.Context(), []string{"trouble true"}}, {ended, nil}} { // a stop is no trouble
		var s sunk
		l := lister[*corev1.ConfigMap]{ListWatch[*corev1.ConfigMap]{Client: client, Sink: &s}}
		if _, err := l.WatchWithContext(c.ctx, metav1.ListOptions{ResourceVersion: "7"}); err == nil || !slices.Equal(s.told, c.want) {
			t.Errorf("a watch: told %q, want %q; %v", s.told, c.want, err)
		}
		s.told = nil
		if _, err := l.ListWithContext(c.ctx, metav1.ListOptions{Continue: "more"}); err == nil || !slices.Equal(s.told, c.want) {
			t.Errorf("a list: told %q, want %q; %v", s.told, c.want, err)
		}
	}
}

// An etcd restore turns versions back, and only such a list may follow it.
func TestOnlyAListThatIsAskedForWithoutAVersionIsAuthoritative(t *testing.T) {
	t.Parallel()
	yes := true
	for name, c := range map[string]struct {
		watch   bool
		options metav1.ListOptions
		want    []string
	}{
		"a list":                         {false, metav1.ListOptions{}, []string{"listing true"}},
		"a list of whatever is cached":   {false, metav1.ListOptions{ResourceVersion: "0"}, []string{"listing false"}},
		"a list of a version or newer":   {false, metav1.ListOptions{ResourceVersion: "7"}, []string{"listing false"}},
		"a later page":                   {false, metav1.ListOptions{Continue: "more"}, nil},
		"a watch that begins as a list":  {true, metav1.ListOptions{SendInitialEvents: &yes}, []string{"listing true"}},
		"one that begins with a version": {true, metav1.ListOptions{SendInitialEvents: &yes, ResourceVersion: "7"}, []string{"listing false"}},
		"a watch that goes on":           {true, metav1.ListOptions{ResourceVersion: "7"}, []string{"trouble false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sunk
			asked := 0
			conn := server(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if asked = len(s.told); c.watch {
					return // it ends at once
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[]}`))
			})
			client, err := NewClient[*corev1.ConfigMap](conn, configMaps)
			if err != nil {
				t.Fatal(err)
			}
			l := lister[*corev1.ConfigMap]{ListWatch[*corev1.ConfigMap]{Client: client, Sink: &s}}
			if c.watch {
				w, werr := l.WatchWithContext(t.Context(), c.options)
				if err = werr; err == nil {
					w.Stop()
				}
			} else {
				_, err = l.ListWithContext(t.Context(), c.options)
			}
			if err != nil || !slices.Equal(s.told, c.want) {
				t.Errorf("told %q, want %q; %v", s.told, c.want, err)
			}
			if len(c.want) > 0 && c.want[0] != "trouble false" && asked == 0 {
				t.Error("it was told of after the request had been sent")
			}
		})
	}
}
