package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type cm = *corev1.ConfigMap

func at(name string, version int) cm {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(version),
	}}
}

func setup() (*Store[cm], *[]string) {
	s := New[cm]()
	var heard []string
	s.Subscribe(func(c Change[cm]) {
		line := ""
		if c.HasOld {
			line += c.Old.Name + "@" + c.Old.ResourceVersion
		}
		line += "→"
		if c.HasNew {
			line += c.New.Name + "@" + c.New.ResourceVersion
		}
		if c.By != nil {
			line += " by " + fmt.Sprint(c.By.Owner)
		}
		if c.Only != nil {
			line += " for " + fmt.Sprint(c.Only)
		}
		heard = append(heard, line)
	})
	return s, &heard
}

func version(s *Store[cm], name string) string {
	obj, ok := s.Get(Key{Namespace: "ns", Name: name})
	if !ok {
		return ""
	}
	return obj.ResourceVersion
}

func wants(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func heardIs(t *testing.T, heard *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*heard, want) {
		t.Fatalf("heard %q, want %q", *heard, want)
	}
}

var key, me = Key{Namespace: "ns", Name: "a"}, Origin{Owner: "me", Key: Key{Name: "k"}}

func TestALateEventDoesNotHideAnOwnWrite(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	s.Apply(at("a", 1))
	s.BeginWrite(key, me).Answered(at("a", 3))
	s.Apply(at("a", 2))
	s.Apply(at("a", 3))
	wants(t, version(s, "a"), "3")
	heardIs(t, heard, "→a@1", "a@1→a@3 by me")
}

func TestAnOwnWriteSeenByEventBeforeItsAnswerIsHeardOnceAsItsOwn(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	s.Apply(at("a", 1))
	w := s.BeginWrite(key, me)
	s.Apply(at("a", 2))
	w.Answered(at("a", 2))
	heardIs(t, heard, "→a@1", "a@1→a@2 by me")
}

func TestAForeignChangeDuringAnOwnWriteIsHeardByTheWriterToo(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	s.Apply(at("a", 1))
	w := s.BeginWrite(key, me)
	s.Apply(at("a", 2)) // somebody else's
	s.Apply(at("a", 3)) // this write's
	w.Answered(at("a", 3))
	heardIs(t, heard, "→a@1", "a@1→a@2 by me", "a@2→a@3 by me", "a@1→a@3 for me")
	*heard = nil
	w = s.BeginWrite(key, me)
	s.Apply(at("a", 4))
	w.Failed()
	heardIs(t, heard, "a@3→a@4 by me", "a@3→a@4 for me")
}

func TestTheAnswerToAReleaseDoesNotBringTheObjectBack(t *testing.T) {
	t.Parallel()
	s, _ := setup()
	released := at("a", 2)
	released.DeletionTimestamp = &metav1.Time{}
	s.Apply(at("a", 1))
	w := s.BeginWrite(key, me)
	s.Remove(at("a", 3))
	w.Answered(released)
	wants(t, version(s, "a"), "")

	for v := 4; v < 6; v++ { // the API server answers with the version of before
		s.Apply(at("a", 4))
		gone := at("a", v)
		gone.DeletionTimestamp = &metav1.Time{}
		s.BeginWrite(key, me).Answered(gone)
		wants(t, version(s, "a"), "")
		s.Remove(at("a", 6))
	}
}

func TestALateEventDoesNotBringBackWhatAnOwnWriteRemoved(t *testing.T) {
	t.Parallel()
	gone := at("a", 3)
	gone.DeletionTimestamp = &metav1.Time{}
	another := at("a", 6)
	another.UID = "another"
	for _, remove := range []func(*Write[cm]){func(w *Write[cm]) { w.Answered(gone) }, (*Write[cm]).Removed} {
		s, heard := setup()
		s.Apply(at("a", 1))
		remove(s.BeginWrite(key, me))
		s.Apply(at("a", 2)) // somebody else's, of before
		s.Replace("", []cm{at("a", 2)}, "2", s.StartList(false))
		heardIs(t, heard, "→a@1", "a@1→ by me")
		s.Remove(at("a", 3))
		s.Apply(another)
		wants(t, version(s, "a"), "6")
		if len(s.tombstones) > 0 {
			t.Errorf("what the watch has told is still remembered: %v", s.tombstones)
		}
	}
}

func TestAListTellsThatARemovalIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		namespace, version string
		listed             []cm
		authoritative      bool
		shown              string
		left               int
	}{
		"older":                           {"", "2", nil, false, "", 1},
		"newer, without the object":       {"", "9", nil, false, "", 0},
		"newer, of another namespace":     {"other", "9", nil, false, "", 1},
		"before the removal":              {"", "4", []cm{at("a", 3)}, false, "", 1},
		"authoritative, of a restored db": {"", "1", []cm{at("a", 1)}, true, "1", 0},
	} {
		s, _ := setup()
		s.Apply(at("a", 3))
		s.BeginWrite(key, me).Removed()
		s.Replace(c.namespace, c.listed, c.version, s.StartList(c.authoritative))
		if got := version(s, "a"); got != c.shown || len(s.tombstones) != c.left {
			t.Errorf("a list that is %s: shown %q, %d removals remembered", name, got, len(s.tombstones))
		}
	}
}

func TestOnlyAnAuthoritativeListTurnsAnObjectBack(t *testing.T) {
	t.Parallel()
	s, _ := setup()
	s.Apply(at("a", 10))
	l := s.StartList(false)
	s.Replace("", []cm{at("a", 5)}, "5", l)
	wants(t, version(s, "a"), "10")
	s.Replace("", nil, "5", l) // older than the object: it may have been made since
	wants(t, version(s, "a"), "10")
	l = s.StartList(true)
	s.Replace("", []cm{at("a", 5)}, "5", l)
	wants(t, version(s, "a"), "5")
	s.Replace("", nil, "4", s.StartList(true))
	wants(t, version(s, "a"), "")
}

func TestWhatWasWrittenAfterAListWasAskedForStays(t *testing.T) {
	t.Parallel()
	s, _ := setup()
	s.Apply(at("a", 10))
	l := s.StartList(true)
	s.BeginWrite(key, me).Answered(at("a", 12))
	s.BeginWrite(Key{Namespace: "ns", Name: "b"}, me).Answered(at("b", 13))
	s.Replace("", []cm{at("a", 10)}, "11", l)
	wants(t, version(s, "a"), "12")
	wants(t, version(s, "b"), "13")
}

func TestAListReplacesOneNamespaceAndTellsWhatIsGone(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	other := at("x", 1)
	other.Namespace = "other"
	s.Apply(other)
	s.Apply(at("a", 1))
	*heard = nil
	s.Replace("ns", []cm{at("b", 2)}, "2", s.StartList(true))
	if s.Len() != 2 || len(s.List("other")) != 1 || len(s.List("ns")) != 1 || len(s.List("")) != 2 {
		t.Fatalf("left: %v", s.List(""))
	}
	heardIs(t, heard, "→b@2", "a@1→")
}

func TestVersionsThatDoNotCompareAreTakenAsTheyCome(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	odd := func(v string) cm { o := at("a", 0); o.ResourceVersion = v; return o }
	s.Apply(odd("f-9"))
	s.Apply(odd("f-9"))
	s.Apply(odd("f-1"))
	wants(t, version(s, "a"), "f-1")
	heardIs(t, heard, "→a@f-9", "a@f-9→a@f-1")
}

func TestAnIndexFollowsWhatTheStoreShows(t *testing.T) {
	t.Parallel()
	s, _ := setup()
	x := s.NewIndex(func(o cm) []string { return []string{o.Labels["l"]} })
	a := at("a", 1)
	a.Labels = map[string]string{"l": "red"}
	s.Apply(a)
	if got := x.Lookup("red"); len(got) != 1 {
		t.Fatalf("red: %v", got)
	}
	b := at("a", 2)
	b.Labels = map[string]string{"l": "blue"}
	s.BeginWrite(key, me).Answered(b)
	if r, b := x.Lookup("red"), x.Lookup("blue"); len(r) != 0 || len(b) != 1 {
		t.Fatalf("red %v, blue %v", r, b)
	}
	s.Remove(at("a", 3))
	if len(x.Lookup("blue")) != 0 || len(x.byKey) != 0 || len(x.byValue) != 0 {
		t.Fatal("the index keeps what is gone")
	}
}

// The server's history is a list of versions per object; events are replayed late
// and cut by lists, while writes answer at once. Whoever wrote must never read
// less, and in the end all is as the server has it.
func TestRandomHistoriesNeverShowLessThanWasWritten(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		s, _ := setup()
		var events []cm // all of the server's
		sent, now := 0, 0
		server, written := map[string]int{}, map[string]int{}
		for range 80 {
			name := string(rune('a' + r.IntN(3)))
			k := Key{Namespace: "ns", Name: name}
			switch r.IntN(4) {
			case 0: // somebody else writes
				now++
				server[name] = now
				events = append(events, at(name, now))
			case 1: // this process writes; events may overtake the answer
				now++
				w := s.BeginWrite(k, me)
				server[name] = now
				events = append(events, at(name, now))
				for range r.IntN(3) {
					if sent < len(events) {
						s.Apply(events[sent])
						sent++
					}
				}
				w.Answered(at(name, server[name]))
				written[name] = server[name]
			case 2:
				if sent < len(events) {
					s.Apply(events[sent])
					sent++
				}
			case 3: // a relist, not the newest
				if sent == 0 {
					continue
				}
				seen := map[string]cm{}
				for _, e := range events[:sent] {
					seen[e.Name] = e
				}
				var items []cm
				for _, e := range seen {
					items = append(items, e)
				}
				s.Replace("", items, events[sent-1].ResourceVersion, s.StartList(false))
			}
			for n, v := range written {
				if got, _ := strconv.Atoi(version(s, n)); got < v {
					t.Fatalf("seed %d: %s is shown at %d, written at %d", seed, n, got, v)
				}
			}
		}
		for ; sent < len(events); sent++ {
			s.Apply(events[sent])
		}
		for n, v := range server {
			wants(t, version(s, n), strconv.Itoa(v))
		}
	}
}

func TestReadersAndWritersDoNotRace(t *testing.T) {
	t.Parallel()
	s := New[cm]()
	x := s.NewIndex(func(o cm) []string { return []string{o.Name} })
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 500 {
				s.Apply(at(fmt.Sprint(i%7), w*1000+i))
				s.BeginWrite(key, me).Answered(at("a", i))
				s.Get(key)
				s.List("")
				x.Lookup("a")
			}
		})
	}
	wg.Wait()
}

func TestWhatIsGoneLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s, _ := setup()
	s.NewIndex(func(o cm) []string { return []string{o.Name} })
	for i := range 100 {
		obj := at("a", 2*i+1)
		obj.Namespace = fmt.Sprint("ns-", i)
		gone := obj.DeepCopy()
		gone.ResourceVersion = strconv.Itoa(2*i + 2)
		key := KeyOf(obj)
		s.Apply(obj)
		s.BeginWrite(key, me).Failed()
		switch i % 3 {
		case 0:
			s.Remove(gone)
		case 1:
			s.BeginWrite(key, me).Removed()
			s.Remove(gone)
		case 2:
			s.Replace(obj.Namespace, nil, gone.ResourceVersion, s.StartList(false))
		}
	}
	x := s.indexes[0]
	left := []int{len(s.objects), len(s.writes), len(s.tombstones), len(x.byKey), len(x.byValue), s.size}
	if slices.Max(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestADeletionThatOvertookTheAnswerToAWriteStands(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	s.Apply(at("a", 1))
	w := s.BeginWrite(key, me)
	s.Remove(at("a", 3))
	w.Answered(at("a", 2)) // which was sent before it
	wants(t, version(s, "a"), "")
	w = s.BeginWrite(key, me)
	s.Remove(at("a", 3))
	w.Answered(at("a", 4)) // of one that was made after it
	wants(t, version(s, "a"), "4")
	heardIs(t, heard, "→a@1", "a@1→", "→a@4 by me")
}

func TestADeletionThatComesLateDoesNotRemoveWhatWasMadeSince(t *testing.T) {
	t.Parallel()
	s, _ := setup()
	s.Apply(at("a", 1))
	another := at("a", 6)
	another.UID = "another"
	s.BeginWrite(key, me).Answered(another)
	s.Remove(at("a", 3))
	wants(t, version(s, "a"), "6")
	s.Remove(at("a", 7))
	wants(t, version(s, "a"), "")
}

// One that left the informer's selector is told as deleted, and lives on.
func TestWhatWasTakenOutIsNotBroughtBackByAWriteOrAReadOfWhatWasStored(t *testing.T) {
	t.Parallel()
	key := Key{Namespace: "ns", Name: "a"}
	me := Origin{Owner: "me", Key: key}
	for name, after := range map[string]func(s *Store[cm], w *Write[cm]){
		"a write": func(_ *Store[cm], w *Write[cm]) { w.Answered(at("a", 4)) },
		"a read":  func(s *Store[cm], w *Write[cm]) { w.Failed(); s.Refresh(at("a", 4)) },
	} {
		s, _ := setup()
		s.Apply(at("a", 1))
		s.Refresh(at("a", 2))
		wants(t, version(s, "a"), "2")
		w := s.BeginWrite(key, me).OfStored()
		s.Remove(at("a", 3))
		after(s, w)
		if got := version(s, "a"); got != "" {
			t.Errorf("%s brought version %s back", name, got)
		}
		s.Apply(at("a", 5)) // it is among what is watched again
		wants(t, version(s, "a"), "5")
	}
}

func TestAnObjectThatTheServerNamedIsKeptUnderItsName(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	w := s.BeginWrite(Key{Namespace: "ns"}, me)
	s.Apply(at("a-x7", 2)) // its event comes before its answer
	s.Apply(at("b", 3))    // … and somebody else's
	w.Answered(at("a-x7", 2))
	heardIs(t, heard, "→a-x7@2 by me", "→b@3 by me", "→b@3 for me")
	if n := s.Len(); n != 2 || version(s, "") != "" || version(s, "a-x7") != "2" {
		t.Errorf("%d objects are stored: %v", n, s.List(""))
	}
	s.Remove(at("a-x7", 4))
	if n := s.Len(); n != 1 {
		t.Errorf("%d objects are stored after it was deleted", n)
	}

	w = s.BeginWrite(Key{Namespace: "ns"}, me)
	s.Apply(at("a-y8", 5))
	s.Remove(at("a-y8", 6)) // by somebody else, before the answer
	w.Answered(at("a-y8", 5))
	if version(s, "a-y8") != "" {
		t.Error("the answer brought it back")
	}
}

func TestAReadDoesNotBringBackWhatWasDeletedMeanwhileAndIsNobodysWrite(t *testing.T) {
	t.Parallel()
	s, heard := setup()
	r := s.BeginRead(key)
	s.Apply(at("a", 2))
	s.Remove(at("a", 3))
	r.Answered(at("a", 2))
	wants(t, version(s, "a"), "")
	heardIs(t, heard, "→a@2", "a@2→")

	*heard = nil
	s.BeginRead(key).Answered(at("a", 4)) // not heard of yet
	wants(t, version(s, "a"), "4")
	s.BeginRead(key).Answered(at("a", 3)) // by a replica that lags
	wants(t, version(s, "a"), "4")
	r = s.BeginRead(key)
	s.BeginWrite(key, me).Removed()
	r.Answered(at("a", 4))
	wants(t, version(s, "a"), "")
	heardIs(t, heard, "→a@4", "a@4→ by me")
}
