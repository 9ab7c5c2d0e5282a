package fake

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mark is an entry of a journal that says how often it was changed.
type mark struct{ Seq, Changes int }

func (m mark) String() string                                     { return "" }
func (m mark) arrived(seq int, _ time.Time, _ time.Duration) mark { return mark{Seq: seq} }
func (m mark) finished() bool                                     { return false }
func (m mark) clone() mark                                        { return m }

func TestAwaitLooksAtAnEntryOnceAndAgainWhenItHasChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal[mark]("test", 100, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var looks []mark
		done := make(chan error)
		go func() {
			_, err := j.await(ctx, func(m mark) bool { looks = append(looks, m); return false })
			done <- err
		}()
		first := j.add(mark{})
		synctest.Wait()
		j.add(mark{})
		j.add(mark{})
		synctest.Wait()
		j.update(first, func(m *mark) { m.Changes++ })
		synctest.Wait()
		cancel()
		if err := <-done; err == nil {
			t.Error("no error")
		}
		if diff := cmp.Diff([]mark{{1, 0}, {2, 0}, {3, 0}, {1, 1}}, looks); diff != "" {
			t.Errorf("looked at (-want +got):\n%s", diff)
		}
	})
}

func TestWhatHasChangedSinceIsWhatAWalkOverAllWouldFind(t *testing.T) {
	t.Parallel()
	const limit, rounds = 7, 2000
	random := rand.New(rand.NewPCG(1, 2))
	j := newJournal[mark]("test", limit, nil)
	var notes []*note[mark] // all that ever were
	var seen uint64
	dirty := map[int]bool{} // by number, since the last look
	for range rounds {
		switch random.IntN(3) {
		case 0:
			notes = append(notes, j.add(mark{}))
			dirty[len(notes)] = true
		case 1:
			if len(notes) > 0 {
				n := notes[max(0, len(notes)-1-random.IntN(2*limit))]
				j.update(n, func(m *mark) { m.Changes++ })
				dirty[n.seq] = true
			}
		case 2:
			var want []mark
			for _, m := range j.snapshot() {
				if dirty[m.Seq] {
					want = append(want, m)
				}
			}
			got, at, _ := j.since(seen)
			if diff := cmp.Diff(want, append([]mark(nil), got...)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			seen = at
			clear(dirty)
		}
	}
	if kept := len(j.snapshot()); kept != limit || len(notes) < 10*limit {
		t.Errorf("%d of %d entries are kept, want %d", kept, len(notes), limit)
	}
}
