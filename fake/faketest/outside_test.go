package faketest_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake/faketest"
)

func TestAnOutsideOfOnesOwnIsReachedCountedAndCut(t *testing.T) {
	t.Parallel()
	served := make(chan string, 8)
	outside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served <- r.URL.Path
		if r.URL.Path == "/hangs" {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "here")
	})
	faketest.Run(t, faketest.Options{Outside: outside}, func(_ context.Context, t *testing.T, w *faketest.World) {
		ended := make(chan error, 1)
		p := w.StartUntil(3, faketest.CrashAfter, func(ctx context.Context, _ *rest.Config, client *http.Client) error {
			for _, path := range []string{"/a", "/b"} {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shelf.example"+path, nil)
				if err != nil {
					return err
				}
				resp, err := client.Do(req)
				if err != nil {
					return err
				}
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "here" {
					t.Errorf("%s: %q, %v", path, body, err)
				}
				resp.Body.Close()
			}
			go func() {
				time.Sleep(time.Minute)
				_, err := client.Get("http://shelf.example/late") //nolint:noctx,bodyclose // it has no answer
				ended <- err
			}()
			resp, err := client.Get("http://shelf.example/hangs") //nolint:noctx // the crash ends it
			if err == nil {
				resp.Body.Close()
			}
			ended <- err
			return err
		})
		time.Sleep(time.Second)
		p.Crash()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("a request of a crashed program was answered")
			}
		}
		if n := p.Requests(); n != 4 {
			t.Errorf("%d requests, want 4", n)
		}
		if n := len(served); n != 3 {
			t.Errorf("%d requests arrived, want 3", n)
		}
		if n := len(w.Booking.Journal()); n != 0 {
			t.Errorf("%d requests reached the booking server", n)
		}
	})
}
