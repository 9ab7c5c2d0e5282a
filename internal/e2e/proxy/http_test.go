package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// setupHTTP is a proxy in front of a server that counts POSTs, and on a watch
// sends one event and then nothing.
func setupHTTP(t *testing.T) (p *HTTP, client *http.Client, posts *atomic.Int32) {
	t.Helper()
	posts = &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("watch") == "true":
			fmt.Fprintln(w, "event")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case r.Method == http.MethodPost:
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != "seat" || r.Header.Get("Authorization") != "Bearer token" {
				http.Error(w, "not as it was sent", http.StatusBadRequest)
				return
			}
			posts.Add(1)
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(server.Close)
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	p, err := ListenHTTP(HTTPOptions{Name: "api", Target: server.URL, Certificate: &server.TLS.Certificates[0], Trust: trust})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	transport := server.Client().Transport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport}, posts
}

func post(ctx context.Context, p *HTTP, client *http.Client) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL()+"/v1/bookings", strings.NewReader("seat"))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer token")
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func posts(e Exchange) bool { return e.Method == http.MethodPost }

func TestHTTPPassesRequestsAndWritesThemDown(t *testing.T) {
	t.Parallel()
	p, client, count := setupHTTP(t)
	if status, err := post(t.Context(), p, client); err != nil || status != http.StatusCreated || count.Load() != 1 {
		t.Fatalf("status %d, %v, %d posts", status, err, count.Load())
	}
	if got, want := p.Journal().String(), "   1 api POST /v1/bookings → 201\n"; got != want {
		t.Errorf("journal %q, want %q", got, want)
	}
}

func TestAHeldRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at      Point
		verdict func(*Hold)
		posts   int32
		status  int // 0: the connection was cut
	}{
		"released before the server saw it":     {Before, (*Hold).Release, 1, http.StatusCreated},
		"released after the server did it":      {After, (*Hold).Release, 1, http.StatusCreated},
		"dropped before the server saw it":      {Before, (*Hold).Drop, 0, 0},
		"dropped after the server did it":       {After, (*Hold).Drop, 1, 0},
		"answered before the server saw it":     {Before, func(h *Hold) { h.Answer(Answer{Status: 503}) }, 0, 503},
		"answered anew after the server did it": {After, func(h *Hold) { h.Answer(Answer{Status: 500, Body: "oh"}) }, 1, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, client, count := setupHTTP(t)
			if _, err := post(t.Context(), p, client); err != nil { // the first is not the one
				t.Fatal(err)
			}
			hold := p.Journal().Hold(test.at, 2, posts)
			if _, err := post(t.Context(), p, client); err != nil { // nor is this, the first that counts
				t.Fatal(err)
			}
			go func() {
				<-hold.Reached()
				test.verdict(hold)
			}()
			status, err := post(t.Context(), p, client)
			if status != test.status || (err == nil) != (test.status != 0) {
				t.Errorf("status %d, %v", status, err)
			}
			if got := count.Load() - 2; got != test.posts {
				t.Errorf("the server did it %d times", got)
			}
			if status, err := post(t.Context(), p, client); err != nil || status != http.StatusCreated {
				t.Errorf("the next one: status %d, %v", status, err)
			}
		})
	}
}

func TestARequestOfAClientThatHasGoneNeverReachesTheServer(t *testing.T) {
	t.Parallel()
	p, client, count := setupHTTP(t)
	hold := p.Journal().Hold(Before, 1, posts)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hold.Reached()
		cancel()
	}()
	if _, err := post(ctx, p, client); err == nil {
		t.Error("it was answered")
	}
	if err := p.Close(); err != nil { // waits for the handler to see it
		t.Fatal(err)
	}
	hold.Release()
	if count.Load() != 0 {
		t.Error("it reached the server")
	}
}

func TestARequestThatIsCutOffReachesTheServerWhenItIsLetLand(t *testing.T) {
	t.Parallel()
	p, client, count := setupHTTP(t)
	hold := p.Journal().Hold(Before, 1, posts)
	cut := make(chan func(), 1)
	var landed <-chan struct{}
	go func() {
		<-hold.Reached()
		land, done := hold.Cut()
		landed = done
		cut <- land
	}()
	if _, err := post(t.Context(), p, client); err == nil {
		t.Error("it was answered")
	}
	land := <-cut
	if count.Load() != 0 {
		t.Error("it reached the server before")
	}
	land()
	<-landed
	if count.Load() != 1 {
		t.Errorf("it reached the server %d times", count.Load())
	}
	if got, want := p.Journal().String(), "   1 api POST /v1/bookings → 201 (cut off, to land later)\n"; got != want {
		t.Errorf("journal %q, want %q", got, want)
	}
}

func TestARequestThatIsCutOffAndNeverLandsGoesWithTheProxy(t *testing.T) {
	t.Parallel()
	p, client, count := setupHTTP(t)
	hold := p.Journal().Hold(Before, 1, posts)
	_, landed := hold.Cut()
	if _, err := post(t.Context(), p, client); err == nil {
		t.Error("it was answered")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	<-landed
	if count.Load() != 0 {
		t.Error("it reached the server")
	}
}

func TestAWatchThatLagsTellsNothingUntilItFlows(t *testing.T) {
	t.Parallel()
	p, client, _ := setupHTTP(t)
	flow := p.LagWatches()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/tickets?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() { // its answer lags as well, as there is nothing to begin it with
		res, err := client.Do(req)
		if err != nil {
			lines <- err.Error()
			return
		}
		defer res.Body.Close()
		line, _ := bufio.NewReader(res.Body).ReadString('\n')
		lines <- line
	}()
	// What is shown is that nothing happens, for which no event can be awaited.
	select {
	case line := <-lines:
		t.Errorf("it told %q", line)
	case <-time.After(100 * time.Millisecond):
	}
	flow()
	if line := <-lines; line != "event\n" {
		t.Errorf("it told %q", line)
	}
}

func TestCutWatchesEndsAStreamInItsMiddle(t *testing.T) {
	t.Parallel()
	p, client, _ := setupHTTP(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/tickets?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	stream := bufio.NewReader(res.Body)
	if line, err := stream.ReadString('\n'); err != nil || line != "event\n" {
		t.Fatalf("%q, %v", line, err)
	}
	p.CutWatches()
	if _, err := stream.ReadString('\n'); err == nil || err == io.EOF {
		t.Errorf("the stream ended with %v, and was not cut", err)
	}
}
