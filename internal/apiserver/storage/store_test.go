package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/internal/apiserver/storage"
)

const table = "things"

func encoded(key storage.Key, owners ...string) storage.Encode {
	return func(version uint64) (*storage.Object, error) {
		return &storage.Object{Key: key, UID: "uid of " + key.Namespace + "/" + key.Name, Version: version, Data: fmt.Appendf(nil, "v%d", version), Owners: owners}, nil
	}
}

func setup(limit int) *storage.Store {
	s := storage.New(limit)
	s.Make(table)
	return s
}

func write(t *testing.T, s *storage.Store, key storage.Key, owners ...string) *storage.Object {
	t.Helper()
	o, err := s.Write(table, key, s.Get(table, key), encoded(key, owners...))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func remove(t *testing.T, s *storage.Store, key storage.Key) {
	t.Helper()
	if _, err := s.Delete(table, s.Get(table, key), encoded(key)); err != nil {
		t.Fatal(err)
	}
}

// shown is a list as text: each object with the version it is of.
func shown(l storage.List) string {
	var b strings.Builder
	for _, o := range l.Objects {
		fmt.Fprintf(&b, "%s/%s@%s ", o.Namespace, o.Name, o.Data)
	}
	return b.String()
}

func TestEveryVersionInTheHistoryListsAsItWas(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // to be repeatable
	s := setup(1000)
	snapshots := map[uint64]string{}
	for range 300 {
		key := storage.Key{Namespace: string('a' + rune(random.IntN(3))), Name: fmt.Sprint(random.IntN(12))}
		if s.Get(table, key) != nil && random.IntN(3) == 0 {
			remove(t, s, key)
		} else {
			write(t, s, key)
		}
		l, err := s.List(table, storage.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		snapshots[l.Version] = shown(l)
	}
	for version, want := range snapshots {
		l, err := s.List(table, storage.Selection{At: version})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, shown(l)); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", version, diff)
		}
		// The same in chunks, and by namespace.
		var chunks strings.Builder
		for sel := (storage.Selection{At: version, Limit: 5}); ; {
			l, err := s.List(table, sel)
			if err != nil {
				t.Fatal(err)
			}
			chunks.WriteString(shown(l))
			if !l.More {
				break
			}
			sel.From = l.Next
		}
		var spaces strings.Builder
		for _, ns := range []string{"a", "b", "c"} {
			l, err := s.List(table, storage.Selection{At: version, Namespace: ns})
			if err != nil {
				t.Fatal(err)
			}
			spaces.WriteString(shown(l))
		}
		if chunks.String() != want || spaces.String() != want {
			t.Errorf("at %d: all %q\nchunks %q\nby namespace %q", version, want, chunks.String(), spaces.String())
		}
	}
}

func TestWhatIsNoLongerInTheHistoryIsExpiredAndWhatIsNotYetIsFuture(t *testing.T) {
	t.Parallel()
	s := setup(10)
	for range 100 {
		write(t, s, storage.Key{Name: "a"})
	}
	if _, err := s.List(table, storage.Selection{At: 2}); !errors.Is(err, storage.ErrExpired) {
		t.Errorf("a list of long ago: %v", err)
	}
	if _, err := s.Watch(table, 2); !errors.Is(err, storage.ErrExpired) {
		t.Errorf("a watch from long ago: %v", err)
	}
	if _, err := s.List(table, storage.Selection{At: s.Version() + 1}); !errors.Is(err, storage.ErrFuture) {
		t.Errorf("a list of what is to come: %v", err)
	}
	if _, err := s.List(table, storage.Selection{At: s.Version() - 9}); err != nil {
		t.Errorf("as far back as was promised: %v", err)
	}
}

func TestAWriterWhoHasSeenAnOldObjectIsRefused(t *testing.T) {
	t.Parallel()
	s, key := setup(10), storage.Key{Name: "a"}
	old := write(t, s, key)
	write(t, s, key)
	before := s.Version()
	if _, err := s.Write(table, key, old, encoded(key)); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a write over what was not seen: %v", err)
	}
	if _, err := s.Write(table, key, nil, encoded(key)); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a creation of what is there: %v", err)
	}
	if _, err := s.Delete(table, old, encoded(key)); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a deletion of what was not seen: %v", err)
	}
	failed := errors.New("no")
	if _, err := s.Write(table, key, s.Get(table, key), func(uint64) (*storage.Object, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("what cannot be encoded: %v", err)
	}
	if s.Version() != before {
		t.Error("a write that was refused took a version")
	}
}

func TestACursorSeesEveryChangeOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s := setup(10_000)
	c, err := s.Watch(table, s.Version())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const writes = 2000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range writes {
			write(t, s, storage.Key{Name: fmt.Sprint(i % 7)})
		}
	})
	var versions []uint64
	for len(versions) < writes {
		events, _, changed, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			<-changed
		}
		for _, e := range events {
			versions = append(versions, e.Version())
		}
	}
	wg.Wait()
	if !slices.IsSorted(versions) || len(slices.Compact(slices.Clone(versions))) != writes {
		t.Errorf("%d events, not each once in order", len(versions))
	}
}

func TestACursorThatFallsBehindIsDroppedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := setup(10)
	slow, err := s.Watch(table, s.Version())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	for range 100 {
		write(t, s, storage.Key{Name: "a"}) // would hang here if it waited for the cursor
	}
	if _, _, _, err := slow.Next(); !errors.Is(err, storage.ErrExpired) {
		t.Errorf("%v, want ErrExpired", err)
	}
}

func TestATableThatIsDroppedEndsItsCursorsAfterAllEvents(t *testing.T) {
	t.Parallel()
	s := setup(10)
	c, err := s.Watch(table, s.Version())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write(t, s, storage.Key{Name: "a"})
	s.Drop(table)
	if events, _, _, err := c.Next(); len(events) != 1 || err != nil {
		t.Errorf("%v, %v", events, err)
	}
	if _, _, _, err := c.Next(); !errors.Is(err, storage.ErrDropped) {
		t.Errorf("%v, want ErrDropped", err)
	}
	s.Make(table)
	if _, err := s.Watch(table, 1); !errors.Is(err, storage.ErrExpired) {
		t.Errorf("the history of a table that was made again began before it: %v", err)
	}
}

func TestAnEventIsEncodedOnceForAllWhoWatch(t *testing.T) {
	t.Parallel()
	s := setup(100)
	const watchers = 50
	var mu sync.Mutex
	encodings := map[uint64]int{}
	var ready, done sync.WaitGroup
	ready.Add(watchers)
	from := s.Version()
	for range watchers {
		done.Go(func() {
			c, err := s.Watch(table, from)
			ready.Done()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for seen := 0; seen < 20; {
				events, _, changed, err := c.Next()
				if err != nil {
					t.Error(err)
					return
				}
				if len(events) == 0 {
					<-changed
				}
				for _, e := range events {
					seen++
					e.Encoded("a form", func() []byte {
						mu.Lock()
						defer mu.Unlock()
						encodings[e.Version()]++
						return nil
					})
				}
			}
		})
	}
	ready.Wait()
	for range 20 {
		write(t, s, storage.Key{Name: "a"})
	}
	done.Wait()
	for version, n := range encodings {
		if n != 1 {
			t.Errorf("version %d was encoded %d times", version, n)
		}
	}
	if len(encodings) != 20 {
		t.Errorf("%d versions, want 20", len(encodings))
	}
}

func TestDependentsAreFoundByTheirOwnersUID(t *testing.T) {
	t.Parallel()
	s := setup(10)
	write(t, s, storage.Key{Name: "a"}, "owner")
	write(t, s, storage.Key{Name: "b"}, "owner", "other")
	write(t, s, storage.Key{Name: "b"}, "other")
	var names []string
	for _, ref := range s.Dependents("owner") {
		names = append(names, ref.Name)
	}
	if diff := cmp.Diff([]string{"a"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, o := s.ByUID("uid of /b"); o == nil {
		t.Error("b is not found by its UID")
	}
	remove(t, s, storage.Key{Name: "b"})
	if _, o := s.ByUID("uid of /b"); o != nil || len(s.Dependents("other")) != 0 {
		t.Error("b is still known after it has gone")
	}
}
