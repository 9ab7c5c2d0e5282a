package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers every request with handle, and returns a connection to it.
func server(t *testing.T, observe func(Request), handle http.HandlerFunc) *Conn {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	conn, err := Dial(&rest.Config{Host: s.URL, BearerToken: "token"}, observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// client-go looks through what wraps a transport for the one that it can cancel
// requests of, and warns where it finds none.
func TestARequestThatIsGivenUpCanBeCancelled(t *testing.T) {
	t.Parallel()
	var rt http.RoundTripper = &meter{next: &http.Transport{}}
	for {
		wraps, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}
		rt = wraps.WrappedRoundTripper()
	}
	if _, ok := rt.(interface{ CancelRequest(*http.Request) }); !ok {
		t.Errorf("%T hides what could be cancelled", rt)
	}
}

func TestAConnectionOwnsItsTransportAndTellsOfEachRequest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []Request
	conn := server(t, func(r Request) { mu.Lock(); defer mu.Unlock(); seen = append(seen, r) }, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" || !strings.Contains(r.UserAgent(), "/") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","namespace":"ns","managedFields":[{"manager":"m"}]}}`))
	})
	for _, keep := range []bool{false, true} {
		typed, err := NewClient[*corev1.ConfigMap](conn, configMaps)
		if err != nil {
			t.Fatal(err)
		}
		typed.Keep = keep
		got, err := typed.Get(t.Context(), key("ns", "n"))
		if err != nil || got.Name != "n" || (len(got.ManagedFields) > 0) != keep {
			t.Fatalf("typed: %+v, %v", got, err)
		}
		loose, err := NewClient[*unstructured.Unstructured](conn, configMaps)
		if err != nil {
			t.Fatal(err)
		}
		loose.Keep = keep
		u, err := loose.Get(t.Context(), key("ns", "n"))
		if err != nil || u.GetName() != "n" || (len(u.GetManagedFields()) > 0) != keep {
			t.Fatalf("unstructured: %+v, %v", u, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 4 || seen[0].Method != http.MethodGet || seen[0].Resource != "configmaps" || seen[0].Code != 200 {
		t.Fatalf("seen %+v", seen)
	}
	if ahead := time.Until(conn.Now()); ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("the server's clock is %v ahead, want an hour", ahead)
	}
}

func TestAPathNamesItsResource(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/api/v1/configmaps":                                  "configmaps",
		"/api/v1/namespaces/ns/configmaps/n":                  "configmaps",
		"/api/v1/namespaces/kube-system":                      "namespaces",
		"/api/v1/namespaces/ns/status":                        "namespaces/status",
		"/apis/flights.com/v1/tickets":                        "tickets",
		"/apis/flights.com/v1/namespaces/ns/tickets/n":        "tickets",
		"/apis/flights.com/v1/namespaces/ns/tickets/n/status": "tickets/status",
		"/apis/flights.com/v1":                                "discovery",
		"/version":                                            "discovery",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestEventsThatRepeatAreCountedOnOne(t *testing.T) {
	t.Parallel()
	type write struct {
		method string
		event  eventsv1.Event
	}
	writes := make(chan write, 10)
	conn := server(t, nil, func(w http.ResponseWriter, r *http.Request) {
		var e eventsv1.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		writes <- write{r.Method, e}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(e)
	})
	r, err := NewRecorder(conn, "here", func(err error, _ Event) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	e := Event{Regarding: corev1.ObjectReference{Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "1"}, Controller: "d/c", Type: "Normal", Reason: "Booked", Note: strings.Repeat("x", 2000)}
	r.Record(e)
	e.Regarding.ResourceVersion = "2" // of the same object still
	r.Record(e)
	e.Reason = "Cancelled"
	r.Record(e)
	r.Close()
	r.Record(e) // too late: dropped
	r.Close()
	r.Run(context.Background())
	first, second, third := <-writes, <-writes, <-writes
	if len(writes) > 0 {
		t.Error("an event came after Close")
	}
	if first.method != http.MethodPost || first.event.Reason != "Booked" || first.event.Namespace != "ns" || len(first.event.Note) > 1024 || first.event.ReportingInstance != "here" {
		t.Errorf("first: %s %+v", first.method, first.event)
	}
	if second.method != http.MethodPatch || second.event.Series == nil || second.event.Series.Count != 2 {
		t.Errorf("second: %s %+v", second.method, second.event)
	}
	if third.method != http.MethodPost || third.event.Reason != "Cancelled" || third.event.Name == first.event.Name {
		t.Errorf("third: %s %+v", third.method, third.event)
	}
}

func TestARecorderIsBounded(t *testing.T) {
	t.Parallel()
	conn := server(t, nil, func(http.ResponseWriter, *http.Request) {})
	r, err := NewRecorder(conn, "here", func(error, Event) {})
	if err != nil {
		t.Fatal(err)
	}
	for range eventQueue + 5 {
		r.Record(Event{Reason: "R"}) // nobody takes them
	}
	if r.dropped != 5 || len(r.queue) != eventQueue {
		t.Errorf("dropped %d, queued %d", r.dropped, len(r.queue))
	}
	r.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.Run(ctx)
}

func TestANoteIsCutAtARunesBorder(t *testing.T) {
	t.Parallel()
	for note, want := range map[string]string{
		"short":                        "short",
		strings.Repeat("x", 1024):      strings.Repeat("x", 1024),
		strings.Repeat("x", 1025):      strings.Repeat("x", 1021) + "…",
		strings.Repeat("é", 1000):      strings.Repeat("é", 510) + "…",
		"x" + strings.Repeat("é", 600): "x" + strings.Repeat("é", 510) + "…",
		"bad \xff byte":                "bad \uFFFD byte",
	} {
		if got := fitting(note); got != want || len(got) > 1024 {
			t.Errorf("%q became %q", note, got)
		}
	}
}

func TestARecorderRemembersABoundedNumberOfEvents(t *testing.T) {
	t.Parallel()
	conn := server(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	})
	r, err := NewRecorder(conn, "here", func(err error, _ Event) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for i := range eventSeries {
		r.series[Event{Reason: strconv.Itoa(i)}] = &series{}
	}
	r.Record(Event{Reason: "one more", Regarding: corev1.ObjectReference{Namespace: "ns", Name: "n"}})
	r.Close()
	r.Run(t.Context())
	if len(r.series) > eventSeries {
		t.Errorf("%d are remembered", len(r.series))
	}
}
