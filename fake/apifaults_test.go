package fake_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tetherkube/tether/fake"
)

// resize is a write that asks for the version that it has seen.
func (a api) resize(ctx context.Context, name string) error {
	_, err := a.boxes.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"size":7}}`), metav1.PatchOptions{})
	return err
}

func (a api) size(t *testing.T, name string) int64 {
	t.Helper()
	u := must[*unstructured.Unstructured](t)(a.boxes.Get(t.Context(), name, metav1.GetOptions{}))
	size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
	return size
}

func TestAFaultBeforeTheCommitChangesNothingAndOneAfterItDoes(t *testing.T) {
	t.Parallel()
	cut := func(err error) bool { return errors.Is(err, io.EOF) || strings.Contains(err.Error(), "EOF") }
	for _, c := range []struct {
		kind    fake.APIFaultKind
		is      func(error) bool
		commits bool
	}{
		{fake.APITooManyRequests, apierrors.IsTooManyRequests, false},
		{fake.APIInternal, apierrors.IsInternalError, false},
		{fake.APIUnavailable, apierrors.IsServiceUnavailable, false},
		{fake.APITimeout, apierrors.IsTimeout, false},
		{fake.APIConflict, apierrors.IsConflict, false},
		{fake.APIForbidden, apierrors.IsForbidden, false},
		{fake.APIUnauthorized, apierrors.IsUnauthorized, false},
		{fake.APINotServed, apierrors.IsNotFound, false},
		{fake.APIGone, apierrors.IsResourceExpired, false},
		{fake.APICutBefore, cut, false},
		{fake.APICutAfter, cut, true},
		{fake.APIInternalAfter, apierrors.IsInternalError, true},
		{fake.APITimeoutAfter, apierrors.IsTimeout, true},
		{fake.APITruncated, func(err error) bool { return strings.Contains(err.Error(), "EOF") }, true},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := apiSetup(t, fake.APIOptions{})
				a.create(t, box("a"))
				injected := a.Inject(fake.APIFault{Kind: c.kind, Verb: "patch", Resource: "boxes", Name: "a", Times: 11})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := a.resize(ctx, "a") // client-go tries some kinds again
				if err == nil || !c.is(err) {
					t.Errorf("%v", err)
				}
				if got := a.size(t, "a") == 7; got != c.commits {
					t.Errorf("committed: %v, want %v\n%s", got, c.commits, a.Transcript())
				}
				if injected.Met() == 0 {
					t.Error("the fault met nothing")
				}
				injected.Remove()
				if err := a.resize(t.Context(), "a"); err != nil {
					t.Errorf("once it is removed: %v", err)
				}
			})
		})
	}
}

func TestAForbiddenFaultSaysWhatTheRealServerSays(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	a.Inject(fake.APIFault{Kind: fake.APIForbidden, Verb: "get"})
	_, err := a.boxes.Get(t.Context(), "x", metav1.GetOptions{})
	want := `boxes.example.com "x" is forbidden: User "kubernetes-admin" cannot get resource "boxes" in API group "example.com" in the namespace "default"`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestRetryAfterIsInTheAnswer(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	a.Inject(fake.APIFault{Kind: fake.APITooManyRequests, RetryAfter: 1500 * time.Millisecond})
	request := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"/api/v1/namespaces", nil))
	response, err := (&http.Client{Transport: a.Transport()}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "2" {
		t.Errorf("%d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
}

func TestLatencyIsBeforeTheCommitAndALateAnswerAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.create(t, box("slow"))
		a.create(t, box("late"))
		a.Inject(fake.APIFault{Kind: fake.APILatency, Verb: "patch", Name: "slow", Delay: time.Minute})
		a.Inject(fake.APIFault{Kind: fake.APILateAnswer, Verb: "patch", Name: "late", Delay: time.Minute})
		begin, done := time.Now(), make(chan error, 2)
		for _, name := range []string{"slow", "late"} {
			go func() { done <- a.resize(t.Context(), name) }()
		}
		time.Sleep(time.Second)
		if slow, late := a.size(t, "slow"), a.size(t, "late"); slow == 7 || late != 7 {
			t.Errorf("after a second slow is of size %d and late of %d", slow, late)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("answered after %v", took)
		}
	})
}

func TestAFaultMeetsThoseThatItsMatcherSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.create(t, box("a"))
		a.create(t, box("b"))
		status := func() error {
			_, err := a.boxes.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"phase":"Up"}}`), metav1.PatchOptions{}, "status")
			return err
		}
		a.Inject(fake.APIFault{Kind: fake.APIConflict, Resource: "boxes/status"})
		if err := status(); !apierrors.IsConflict(err) {
			t.Errorf("the subresource: %v", err)
		}
		if err := a.resize(t.Context(), "a"); err != nil {
			t.Errorf("the resource itself: %v", err)
		}
		a.ClearFaults()

		a.Inject(fake.APIFault{Kind: fake.APIConflict, Verb: "patch", Nth: 2})
		var met []bool
		for range 4 {
			met = append(met, a.resize(t.Context(), "a") != nil)
		}
		if diff := cmp.Diff([]bool{false, true, false, false}, met); diff != "" {
			t.Errorf("the second (-want +got):\n%s", diff)
		}
		a.ClearFaults()

		a.Inject(fake.APIFault{Kind: fake.APIConflict, Verb: "patch", Name: "b", After: time.Minute, For: time.Minute})
		met = nil
		for range 4 {
			met = append(met, a.resize(t.Context(), "b") != nil)
			time.Sleep(40 * time.Second)
		}
		if diff := cmp.Diff([]bool{false, false, true, false}, met); diff != "" {
			t.Errorf("for a minute (-want +got):\n%s", diff)
		}
		if err := a.resize(t.Context(), "a"); err != nil {
			t.Errorf("another name: %v", err)
		}
		a.Inject(fake.APIFault{Kind: fake.APIInternal, Verb: "create", Name: "c"})
		if _, err := a.boxes.Create(t.Context(), box("c"), metav1.CreateOptions{}); !apierrors.IsInternalError(err) {
			t.Errorf("the name of what is to be created: %v", err)
		}
	})
}

func TestASeedFixesWhichRequestsAProbabilityMeets(t *testing.T) {
	t.Parallel()
	meets := func(seed uint64) (met []bool) {
		a := apiSetup(t, fake.APIOptions{Seed: seed})
		a.create(t, box("a"))
		a.Inject(fake.APIFault{Kind: fake.APIConflict, Verb: "patch", Probability: 0.5})
		for range 40 {
			met = append(met, a.resize(t.Context(), "a") != nil)
		}
		return met
	}
	one, again, other := meets(1), meets(1), meets(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds drew the same")
	}
}

func TestAStaleReplicaShowsThePastToWhoAllowsIt(t *testing.T) {
	t.Parallel()
	a := apiSetup(t, fake.APIOptions{})
	ctx := t.Context()
	old := a.create(t, box("a"))
	a.Inject(fake.APIFault{Kind: fake.APIStale})
	if err := a.resize(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	made := a.create(t, box("b"))
	listed := func(o metav1.ListOptions) (names []string) {
		t.Helper()
		for _, u := range must[*unstructured.UnstructuredList](t)(a.boxes.List(ctx, o)).Items {
			size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
			names = append(names, u.GetName()+strings.Repeat("+", int(size)))
		}
		return names
	}
	then, now := []string{"a++"}, []string{"a+++++++", "b++"}
	for _, c := range []struct {
		what string
		o    metav1.ListOptions
		want []string
	}{
		{"any version", metav1.ListOptions{ResourceVersion: "0"}, then},
		{"not older than it", metav1.ListOptions{ResourceVersion: old.GetResourceVersion()}, then},
		{"not older than what it has not seen", metav1.ListOptions{ResourceVersion: made.GetResourceVersion()}, now},
		{"the most recent", metav1.ListOptions{}, now},
	} {
		if diff := cmp.Diff(c.want, listed(c.o)); diff != "" {
			t.Errorf("a list of %s (-want +got):\n%s", c.what, diff)
		}
	}
	got := must[*unstructured.Unstructured](t)(a.boxes.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "0"}))
	if got.GetResourceVersion() != old.GetResourceVersion() {
		t.Errorf("a get of any version is of %s, want %s", got.GetResourceVersion(), old.GetResourceVersion())
	}
}

// events takes what a watch has until its end, or until n have come.
func events(w watch.Interface, n int) (seen []string) {
	for e := range w.ResultChan() {
		name := string(e.Type)
		switch o := e.Object.(type) {
		case *unstructured.Unstructured:
			name += " " + o.GetName()
		case *metav1.Status:
			name += " " + string(o.Reason)
		}
		if seen = append(seen, name); len(seen) == n {
			break
		}
	}
	return seen
}

// Where many watch one resource, each waits for more events to come together.
func TestAWatchThatWasCutBeforeItBeganSlowsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		fault := a.Inject(fake.APIFault{Kind: fake.APICutAfter, Verb: "watch"})
		for range 20 {
			if w, err := a.boxes.Watch(t.Context(), metav1.ListOptions{}); err == nil && len(events(w, 1)) > 0 { // client-go makes an empty one of the cut
				t.Error("a watch began")
			}
		}
		if fault.Met() < 20 {
			t.Errorf("the fault met %d watches", fault.Met())
		}
		fault.Remove()
		w := must[watch.Interface](t)(a.boxes.Watch(t.Context(), metav1.ListOptions{}))
		defer w.Stop()
		begin := time.Now()
		for _, name := range []string{"a", "b", "c"} {
			a.create(t, box(name))
			if e := <-w.ResultChan(); e.Type != watch.Added {
				t.Errorf("%v", e)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("three events took %v", took)
		}
	})
}

func TestAWatchGoesWrongAsTheFaultSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault fake.APIFault
		want  []string
	}{
		{fake.APIFault{Kind: fake.APIWatchCut, Nth: 2}, []string{"ADDED a"}},
		{fake.APIFault{Kind: fake.APIWatchExpired, Nth: 2}, []string{"ADDED a", "ERROR Expired"}},
		{fake.APIFault{Kind: fake.APIWatchDuplicate, Name: "b"}, []string{"ADDED a", "ADDED b", "ADDED b", "ADDED c"}},
		{fake.APIFault{Kind: fake.APIWatchDrop, Name: "b"}, []string{"ADDED a", "ADDED c"}},
		{fake.APIFault{Kind: fake.APIWatchStall, Name: "b"}, []string{"ADDED a"}},
	} {
		t.Run(string(c.fault.Kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := apiSetup(t, fake.APIOptions{})
				a.Inject(c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				seconds := int64(5)
				w := must[watch.Interface](t)(a.boxes.Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds}))
				for _, name := range []string{"a", "b", "c"} {
					a.create(t, box(name))
				}
				begin := time.Now()
				if diff := cmp.Diff(c.want, events(w, 0)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if stalled := time.Since(begin) == time.Minute; stalled != (c.fault.Kind == fake.APIWatchStall) {
					t.Errorf("it ended after %v", time.Since(begin))
				}
			})
		})
	}
}

func TestADelayedWatchIsBehindByTheDelayAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.Inject(fake.APIFault{Kind: fake.APIWatchDelay, Delay: 10 * time.Second})
		w := must[watch.Interface](t)(a.boxes.Watch(t.Context(), metav1.ListOptions{}))
		defer w.Stop()
		begin := time.Now()
		for _, name := range []string{"a", "b", "c"} {
			a.create(t, box(name))
			time.Sleep(time.Second)
		}
		for i, name := range []string{"a", "b", "c"} {
			if diff := cmp.Diff([]string{"ADDED " + name}, events(w, 1)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if at, want := time.Since(begin), 10*time.Second+time.Duration(i)*time.Second; at != want {
				t.Errorf("%s came after %v, want %v", name, at, want)
			}
		}
	})
}

func TestAQuietWatchIsCutAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		w := must[watch.Interface](t)(a.boxes.Watch(t.Context(), metav1.ListOptions{}))
		time.Sleep(time.Minute)
		begin := time.Now()
		a.Inject(fake.APIFault{Kind: fake.APIWatchCut, Times: 1})
		if seen := events(w, 0); len(seen) > 0 || time.Since(begin) != 0 {
			t.Errorf("%v after %v", seen, time.Since(begin))
		}
	})
}

func TestWrongFaultsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault fake.APIFault
		want  string
	}{
		{fake.APIFault{}, "kind"},
		{fake.APIFault{Kind: "odd"}, "odd"},
		{fake.APIFault{Kind: fake.APILatency}, "delay"},
		{fake.APIFault{Kind: fake.APIWatchDelay}, "delay"},
		{fake.APIFault{Kind: fake.APIWatchCut, Verb: "get"}, "verb"},
		{fake.APIFault{Kind: fake.APIInternal, Nth: -1}, "nth"},
		{fake.APIFault{Kind: fake.APIInternal, Probability: 2}, "probability"},
		{fake.APIFault{Kind: fake.APIInternal, After: -1}, "after"},
	} {
		if err := c.fault.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want one that names %s", c.fault, err, c.want)
		}
	}
	for _, kind := range fake.APIFaultKinds() {
		if err := (fake.APIFault{Kind: kind, Delay: 1}).Validate(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
