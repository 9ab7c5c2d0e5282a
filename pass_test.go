package tether

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/internal/kube"
	"github.com/tetherkube/tether/internal/protocol"
	"github.com/tetherkube/tether/internal/queue"
)

// single is a controller of one thing, whose passes a test runs by itself. There
// is no API server but the test's function.
type single struct {
	wire
	c   *controller[*thing]
	obj *thing
}

// wire is what went to the API server, and into the log.
type wire struct {
	mu       sync.Mutex // guards the rest
	requests []string
	log      []string
}

// answer is what the API server of a test says to a request: a code, and a body.
type answer func(r *http.Request) (int, string)

func (s *wire) serve(say answer) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		code, body := say(r)
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refused is a Status of the API server.
func refused(code int, reason metav1.StatusReason) answer {
	return func(*http.Request) (int, string) {
		return code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
}

// alone prepares a controller of obj, which its informer has seen.
func alone(t *testing.T, c *Controller, obj *thing, say answer) *single {
	t.Helper()
	s := &single{c: c.engine.(*controller[*thing]), obj: obj}
	begin(t, s.c, obj, s.environment(t, say))
	return s
}

// environment is that of a Run with such an API server.
func (s *wire) environment(t *testing.T, say answer) *environment {
	t.Helper()
	conn, err := kube.Dial(&rest.Config{Host: "http://api.example.com", Transport: s.serve(say)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := funcr.New(func(_, args string) { s.mu.Lock(); defer s.mu.Unlock(); s.log = append(s.log, args) }, funcr.Options{})
	return &environment{
		conn: conn, log: log, hooks: NoHooks{}, term: time.Now(), cluster: "c",
		record: func(kube.Event) {}, held: func() error { return nil }, fail: func(err error) { t.Error(err) },
	}
}

// begin prepares a controller of obj, which its informer has seen.
func begin[T Object](t *testing.T, c *controller[T], obj T, env *environment) {
	t.Helper()
	if err := c.in.open(env); err != nil {
		t.Fatal(err)
	}
	if err := c.setUp(env); err != nil {
		t.Fatal(err)
	}
	c.judgesStatus(true)
	c.live.store.Apply(obj)
	close(c.live.ready)
	t.Cleanup(func() { c.drain(); c.in.close() })
}

// pass runs one pass.
func (s *single) pass(t *testing.T) queue.Outcome {
	t.Helper()
	return s.c.pass(logr.NewContext(t.Context(), s.c.env.log), queue.Item[Key]{Key: s.key()})
}

func (s *single) key() Key { return Key{Namespace: s.obj.Namespace, Name: s.obj.Name} }

// now is the time as JSON keeps it.
func now() *metav1.Time { return new(metav1.Now().Rfc3339Copy()) }

func newThing(edit func(*thing)) *thing {
	o := &thing{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "1", Generation: 1, CreationTimestamp: *now()}}
	if edit != nil {
		edit(o)
	}
	return o
}

// steps is a Reconciler, and a Finalizer, of functions.
type steps struct {
	reconcile, finalize func(context.Context) (Result, error)
}

func (s steps) Reconcile(ctx context.Context, _ *thing) (Result, error) { return s.reconcile(ctx) }
func (s steps) Finalize(ctx context.Context, _ *thing) (Result, error)  { return s.finalize(ctx) }

type onlyReconcile struct {
	reconcile func(context.Context) (Result, error)
}

func (s onlyReconcile) Reconcile(ctx context.Context, _ *thing) (Result, error) {
	return s.reconcile(ctx)
}

func done(context.Context) (Result, error) { return Done, nil }

// silent is an External that must not be called.
type silent struct{ t *testing.T }

func (s silent) called(verb string) (Observation, error) {
	s.t.Errorf("%s was called", verb)
	return Observation{}, errors.New("it must not be called")
}

func (s silent) Observe(context.Context, *thing, Call) (Observation, error) {
	return s.called("Observe")
}

func (s silent) Create(context.Context, *thing, Call) (Observation, error) { return s.called("Create") }

func (s silent) Update(context.Context, *thing, Call, Observation) (Observation, error) {
	return s.called("Update")
}

func (s silent) Delete(context.Context, *thing, Call, Observation) (Observation, error) {
	return s.called("Delete")
}

var errTaken = fmt.Errorf("%w: by the test", kube.ErrLeaseLost)

// A process that was frozen finds out by asking, before its contexts have ended.
func TestWithoutTheLeaseAPassSendsNothingThoughItsContextIsAlive(t *testing.T) {
	t.Parallel()
	id := func(o *thing) *string { return &o.Status.ID }
	claimed := func(o *thing) {
		o.Finalizers = []string{"example.com/thing"}
		o.Status.ID = "it"
	}
	deleted := func(o *thing) {
		claimed(o)
		o.DeletionTimestamp = now()
	}
	managed := func() *Controller {
		return Manage(NewInformer(things, InformerOptions{}), External[*thing](silent{t}), ManageOptions[*thing]{ID: id, Guarantee: UniqueReference})
	}
	unmanaged := func() *Controller {
		return New(NewInformer(things, InformerOptions{}), Reconciler[*thing](steps{done, done}), Options{})
	}
	for name, x := range map[string]struct {
		c   *Controller
		obj *thing
	}{
		"managed, new":                   {managed(), newThing(nil)},
		"managed, with something":        {managed(), newThing(claimed)},
		"managed, being deleted":         {managed(), newThing(deleted)},
		"a Reconciler, new":              {unmanaged(), newThing(nil)},
		"a Reconciler, seen":             {unmanaged(), newThing(claimed)},
		"a Reconciler, being deleted":    {unmanaged(), newThing(deleted)},
		"a Reconciler without Finalizer": {New(NewInformer(things, InformerOptions{}), Reconciler[*thing](onlyReconcile{done}), Options{}), newThing(nil)},
	} {
		s := alone(t, x.c, x.obj, refused(http.StatusInternalServerError, metav1.StatusReasonInternalError))
		s.c.env.held = func() error { return errTaken }
		s.pass(t)
		for _, r := range s.requests {
			if !strings.HasPrefix(r, http.MethodGet) {
				t.Errorf("%s: %s", name, r)
			}
		}
	}
}

func TestWithoutTheLeaseAClientWritesNothingThoughTheContextIsAlive(t *testing.T) {
	t.Parallel()
	var client *Client[*thing]
	writes := map[string]func(context.Context) error{
		"Create": func(ctx context.Context) error { _, err := client.Create(ctx, newThing(nil)); return err },
		"Apply":  func(ctx context.Context) error { _, err := client.Apply(ctx, newThing(nil)); return err },
		"Delete": func(ctx context.Context) error { return client.Delete(ctx, newThing(nil)) },
	}
	in := NewInformer(things, InformerOptions{})
	s := alone(t, New(in, Reconciler[*thing](onlyReconcile{func(ctx context.Context) (Result, error) {
		for name, write := range writes {
			if err := write(ctx); !errors.Is(err, kube.ErrLeaseLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		return Done, nil
	}}), Options{}), newThing(nil), refused(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	client = NewClient(in, ClientOptions{})
	s.c.env.held = func() error { return errTaken }
	s.pass(t)
	if len(s.requests) > 0 {
		t.Errorf("sent: %v", s.requests)
	}
}

func TestAStatusThatCannotBeWrittenLosesNeitherTheErrorNorTheRequeue(t *testing.T) {
	t.Parallel()
	sold := errors.New("none is left")
	for name, x := range map[string]struct {
		result Result
		err    error
		want   queue.Outcome
		log    []string // of one line
	}{
		"done":        {Done, nil, queue.Outcome{Kind: queue.Backoff}, []string{"pass failed", `"error"="write the status: `}},
		"after":       {After(time.Hour), nil, queue.Outcome{Kind: queue.Backoff}, []string{"pass failed", `"error"="write the status: `}},
		"error":       {Done, sold, queue.Outcome{Kind: queue.Backoff}, []string{"pass failed", `"error"="none is left"`, "statusNotWritten"}},
		"retry after": {Done, RetryAfter(sold, time.Hour), queue.Outcome{Kind: queue.Hold, Delay: time.Hour}, []string{"pass failed", `"error"="none is left"`, "statusNotWritten"}},
		"terminal":    {Done, Terminal(sold), queue.Outcome{Kind: queue.Stall, Restore: true}, []string{"status not written"}},
	} {
		s := alone(t, New(NewInformer(things, InformerOptions{}), Reconciler[*thing](onlyReconcile{func(context.Context) (Result, error) {
			return x.result, x.err
		}}), Options{}), newThing(nil), refused(http.StatusForbidden, metav1.StatusReasonForbidden))
		if d := cmp.Diff(x.want, s.pass(t)); d != "" {
			t.Errorf("%s: the outcome (-want +got):\n%s", name, d)
		}
		if len(s.log) != 1 {
			t.Errorf("%s: logged %d lines, want 1:\n%s", name, len(s.log), strings.Join(s.log, "\n"))
		}
		for _, want := range x.log {
			if all := strings.Join(s.log, "\n"); !strings.Contains(all, want) {
				t.Errorf("%s: no %s in\n%s", name, want, all)
			}
		}
	}
}

func TestATerminalErrorsStatusIsWrittenAtLastWithoutAskingTheAuthorAgain(t *testing.T) {
	t.Parallel()
	asked, refusals := 0, 2
	var written string
	s := alone(t, New(NewInformer(things, InformerOptions{}), &tagging{calls: &asked}, Options{}), newThing(nil), func(r *http.Request) (int, string) {
		body, _ := io.ReadAll(r.Body)
		if refusals--; refusals >= 0 {
			return refused(http.StatusInternalServerError, metav1.StatusReasonInternalError)(r)
		}
		written = string(body)
		return http.StatusOK, `{"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"2","generation":1}}`
	})
	item := queue.Item[Key]{Key: s.key()}
	for try, want := range []bool{true, true, false} {
		o := s.c.pass(logr.NewContext(t.Context(), s.c.env.log), item)
		if o.Kind != queue.Stall || o.Restore != want {
			t.Errorf("try %d: the outcome is %+v", try, o)
		}
		item.Cause, item.Stalled = queue.Restore, true
	}
	if asked != 1 {
		t.Errorf("the author was asked %d times, want 1", asked)
	}
	for _, want := range []string{`"id":"tagged"`, `"Stalled"`, "none is left"} {
		if !strings.Contains(written, want) {
			t.Errorf("no %s in what was written: %s", want, written)
		}
	}
}

// tagging is a Reconciler that writes status and gives up.
type tagging struct{ calls *int }

func (r *tagging) Reconcile(_ context.Context, o *thing) (Result, error) {
	*r.calls++
	o.Status.ID = "tagged"
	return Done, Terminal(errors.New("none is left"))
}

func TestWhatIsKnownOfAnObjectEndsWithIt(t *testing.T) {
	t.Parallel()
	deleted := newThing(func(o *thing) {
		o.DeletionTimestamp, o.Finalizers = now(), []string{"example.com/thing"}
	})
	gone := func(s *single) {
		s.c.live.store.Remove(newThing(func(o *thing) { o.ResourceVersion = "2" }))
	}
	for name, x := range map[string]struct {
		obj     *thing
		prepare func(*single)
		say     answer
	}{
		"released": {deleted, nil, func(*http.Request) (int, string) {
			return http.StatusOK, `{"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"1","deletionTimestamp":"2026-01-01T00:00:00Z"}}`
		}},
		"gone when it was to be released": {deleted, nil, refused(http.StatusNotFound, metav1.StatusReasonNotFound)},
		"gone before":                     {newThing(nil), gone, nil},
		"deleted, and none of ours": {newThing(func(o *thing) {
			o.DeletionTimestamp, o.Finalizers = now(), []string{"example.com/of-another"}
		}), nil, nil},
	} {
		s := alone(t, New(NewInformer(things, InformerOptions{}), Reconciler[*thing](steps{done, done}), Options{}), x.obj, x.say)
		s.c.remember(s.key(), "u")
		s.c.stalled[s.key()] = stalled[*thing]{obj: s.obj}
		if x.prepare != nil {
			x.prepare(s)
		}
		if o := s.pass(t); o.Kind != queue.Forget {
			t.Errorf("%s: the outcome is %+v", name, o)
		}
		if len(s.c.memory)+len(s.c.stalled) > 0 {
			t.Errorf("%s: left: %v, %v", name, s.c.memory, s.c.stalled)
		}
	}
}

func TestAConflictOfStatusKeepsWhatAnotherWrote(t *testing.T) {
	t.Parallel()
	const fresh = `{"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"2","generation":1},"status":{"tags":{"of":"another"}}}`
	var sent []string
	s := alone(t, New(NewInformer(things, InformerOptions{}), &noting{}, Options{}), newThing(nil), func(r *http.Request) (int, string) {
		if r.Method == http.MethodGet {
			return http.StatusOK, fresh
		}
		body, _ := io.ReadAll(r.Body)
		if sent = append(sent, string(body)); len(sent) == 1 {
			return refused(http.StatusConflict, metav1.StatusReasonConflict)(r)
		}
		return http.StatusOK, strings.Replace(fresh, `"resourceVersion":"2"`, `"resourceVersion":"3"`, 1)
	})
	if o := s.pass(t); o.Kind != queue.Stall {
		t.Errorf("the outcome is %+v", o)
	}
	if len(sent) != 2 || strings.Contains(sent[1], "tags") || !strings.Contains(sent[1], `"id":"noted"`) || !strings.Contains(sent[1], `"resourceVersion":"2"`) {
		t.Errorf("sent: %q", sent)
	}
	if len(s.c.stalled) > 0 {
		t.Errorf("what others may have wiped is kept to be put right: %v", s.c.stalled)
	}
}

// noting is a Reconciler that writes something down, and rejects the object.
type noting struct{}

func (*noting) Reconcile(_ context.Context, o *thing) (Result, error) {
	o.Status.ID = "noted"
	return Done, Terminal(errors.New("none is left"))
}

// Contract line 4: what the old leader had written counts, whatever list this
// process began with.
func TestAKeyIsReadConsistentlyUntilTheStoreHasGotToWhatWasThereWhenTheTermBegan(t *testing.T) {
	t.Parallel()
	var seen []string
	c := New(NewInformer(things, InformerOptions{}), Reconciler[*thing](sizes{&seen}), Options{})
	obj := &thing{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "u", ResourceVersion: "5", Generation: 1}, Spec: map[string]string{"size": "old"}}
	version := "9"
	s := alone(t, c, obj, func(r *http.Request) (int, string) {
		if strings.Contains(r.URL.RawQuery, "limit=1") {
			return http.StatusOK, fmt.Sprintf(`{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":%q},"items":[]}`, version)
		}
		return http.StatusOK, `{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"namespace":"ns","name":"one","uid":"u","resourceVersion":"9","generation":1},"spec":{"size":"new"}}`
	})
	(&listSink[*thing]{live: s.c.live}).Reached("5")
	if err := s.c.beginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads := func() (n int) {
		for _, q := range s.requests {
			if strings.HasPrefix(q, "GET") && strings.HasSuffix(q, "/one") {
				n++
			}
		}
		return n
	}
	s.pass(t)
	s.pass(t) // it was read in this term
	if got := reads(); got != 1 || seen[0] != "new" || seen[1] != "new" {
		t.Errorf("%d reads; passes saw %q", got, seen)
	}
	version = "20"
	if err := s.c.beginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	(&listSink[*thing]{live: s.c.live}).Reached("20") // a bookmark
	if s.pass(t); reads() != 1 {
		t.Errorf("read although the store had got there: %q", s.requests)
	}
}

// sizes notes the size that each pass sees.
type sizes struct{ seen *[]string }

func (s sizes) Reconcile(_ context.Context, o *thing) (Result, error) {
	*s.seen = append(*s.seen, o.Spec["size"])
	return Done, nil
}

// A first pass writes status for its conditions alone, and what the author has
// edited elsewhere is told then as well.
func TestAnEditOfSpecIsToldThoughTheAuthorLeftStatusAsItWas(t *testing.T) {
	t.Parallel()
	var written string
	s := alone(t, New(NewInformer(things, InformerOptions{}), &respelling{}, Options{}), newThing(nil), func(r *http.Request) (int, string) {
		body, _ := io.ReadAll(r.Body)
		written = string(body)
		return http.StatusOK, `{"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"2","generation":1}}`
	})
	if o := s.pass(t); o.Kind != queue.Stall || !strings.Contains(written, protocol.ReasonEdited) || !strings.Contains(written, "spec") {
		t.Errorf("the outcome is %+v, written is %s", o, written)
	}
}

// respelling is a Reconciler that edits what is not its own.
type respelling struct{}

func (*respelling) Reconcile(_ context.Context, o *thing) (Result, error) {
	o.Spec = map[string]string{"name": "another"}
	return Done, nil
}

// A new leader's store may lag behind the finalizer that the last leader took off.
func TestAnObjectThatAFreshReadShowsReleasedIsLeftAlone(t *testing.T) {
	t.Parallel()
	deleting := func(o *thing) {
		o.DeletionTimestamp, o.Finalizers = now(), []string{"example.com/thing", "of.another/one"}
	}
	for name, r := range map[string]Reconciler[*thing]{
		"with a Finalizer": steps{done, func(context.Context) (Result, error) { t.Error("Finalize was called"); return Done, nil }},
		"without one":      onlyReconcile{func(context.Context) (Result, error) { t.Error("Reconcile was called"); return Done, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := newThing(deleting)
			if name == "without one" {
				obj.DeletionTimestamp = nil
			}
			fresh := newThing(deleting)
			fresh.ResourceVersion, fresh.Finalizers = "9", fresh.Finalizers[1:]
			raw := jsonOf(t, fresh)
			s := alone(t, New(NewInformer(things, InformerOptions{}), r, Options{}), obj, func(*http.Request) (int, string) { return http.StatusOK, raw })
			s.c.caughtUp.Store(false)
			s.c.since, s.c.fresh = "9", map[Key]bool{}
			if o := s.pass(t); o.Kind != queue.Forget {
				t.Errorf("the pass ended in %+v", o)
			}
			if got := strings.Join(s.requests, ", "); got != "GET /apis/example.com/v1/namespaces/ns/things/n" {
				t.Errorf("sent %s", got)
			}
		})
	}
}
