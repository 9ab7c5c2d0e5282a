package protocol

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata anew")

// facets are a state in words, each by itself, so that a transcript says only what
// changed.
func (m *model) facets(s *state) [][2]string {
	c, st, o := m.claims.at(s.api.claim), m.statuses.at(s.api.status), s.api
	object := fmt.Sprintf("wants date %d, passenger %d", o.want.date, o.want.passenger)
	switch {
	case !o.exists:
		object = "gone"
	case o.deleting:
		object += ", is being deleted"
	}
	claim := "none"
	if o.claim != 0 && o.exists {
		claim = fmt.Sprintf("incarnation %d, attempt %d", c.Incarnation, c.Attempt)
		if c.Next != 0 {
			claim += fmt.Sprintf(", to be replaced by %d, old id %s", c.Next, c.ID)
		}
		if c.Seen {
			claim += ", was outside"
		}
	}
	status := "empty"
	if st != (Status{}) && o.exists {
		status = fmt.Sprintf("id %q, generation %d observed", st.ID, st.ObservedGeneration)
		if st.Done {
			status += ", as wanted"
		}
		if st.Rejected != "" {
			status += ", rejected: " + st.Rejected
		}
	}
	var things, air, shut []string
	for i, t := range s.out.things {
		if t.state == Unknown || i == 0 && s.did&didAdopt == 0 {
			continue
		}
		ref := fmt.Sprintf("incarnation %d", t.ref.inc)
		if t.ref.inc == 0 {
			ref = "a reference of nobody's"
		}
		things = append(things, fmt.Sprintf("%s of %s is %s (date %d, passenger %d)", idOf(i), ref, t.state, t.content.date, t.content.passenger))
	}
	for _, a := range s.air {
		if a.do != Finish {
			air = append(air, fmt.Sprintf("%s of incarnation %d", a.do, a.ref.inc))
		}
	}
	for i, is := range s.out.shut {
		if is {
			shut = append(shut, fmt.Sprint(i))
		}
	}
	return [][2]string{
		{"object", object},
		{"claim", claim},
		{"status", status},
		{"outside", strings.Join(things, "; ")},
		{"closed", strings.Join(shut, ", ")},
		{"in the air", strings.Join(air, "; ")},
	}
}

// script is a history: what happens, step by step. "rest" goes on without a fault
// until all rests.
type script struct {
	name, about string
	setting     setting
	steps       []string
}

const rest = "rest"

// play carries a script out, and writes it down.
func (sc script) play(t *testing.T) string {
	t.Helper()
	sc.setting.name = sc.name
	x := &explorer{model: newModel(sc.setting), calmed: map[packed]bool{}}
	x.mostFaults, x.mostActs = 9, 9
	s := x.first()
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n#\n# %s\n# The outside: %s.\n\n", sc.name, sc.about, x.describeOutside())
	last := map[string]string{}
	tell := func(what string) {
		fmt.Fprintln(&out, what)
		for _, f := range x.facets(&s) {
			if last[f[0]] != f[1] {
				fmt.Fprintf(&out, "    %s: %s\n", f[0], f[1])
				last[f[0]] = f[1]
			}
		}
	}
	tell("the object is made")
	for _, step := range sc.steps {
		if step == rest {
			s = x.rest(t, s, func(what string, n state) { s = n; tell(what) })
			continue
		}
		before := s
		var offered []string
		found := false
		take := func(what string, n state) {
			offered = append(offered, what)
			if !found && what == step {
				s, found = n, true
			}
		}
		x.process(before, take)
		x.environment(before, take)
		if !found {
			t.Fatalf("%s: %q cannot happen here; what can is %q\n%s", sc.name, step, offered, out.String())
		}
		if broken := x.broken(before, step, s); broken != "" {
			t.Errorf("%s: %s: %s", sc.name, step, broken)
		}
		tell(step)
	}
	if bad := x.stuck(s); bad != "" {
		t.Errorf("%s: %s", sc.name, bad)
	}
	text := out.String()
	for strings.HasSuffix(text, "half a window passes\n") { // nothing came of it
		text = strings.TrimSuffix(text, "half a window passes\n")
	}
	return text
}

// rest plays what comes where nothing more goes wrong, until nothing does.
func (x *explorer) rest(t *testing.T, s state, tell emit) state {
	t.Helper()
	for range 200 {
		switch next, what, moved := x.quietly(s); {
		case !moved:
			return s
		default:
			if what != "" {
				tell(what, next)
			}
			s = next
		}
	}
	t.Fatal("it never comes to rest")
	return s
}

// quietly is one step of calm, with its name; "" where nothing is worth telling.
func (x *explorer) quietly(s state) (next state, what string, moved bool) {
	if s.cache != s.api && !s.pass.on {
		next = s
		next.cache, next.behind = s.api, false
		return next, toldByWatch, true
	}
	for i, t := range s.out.things {
		if t.state == Pending && !s.pass.on {
			next = s
			next.out.things[i].state = Present
			return next, confirmed, true
		}
	}
	after := s
	for range 100 {
		if after = x.step(after); !after.pass.on {
			break
		}
	}
	if s.pass.on || after != s {
		x.process(s, func(w string, n state) {
			if what == "" {
				what, next = w, n
			}
		})
		return next, what, true
	}
	if next = x.tick(s); next != s {
		return next, timePassed, true
	}
	return s, "", false
}

func (m *model) describeOutside() string {
	text := m.outside.Guarantee.String()
	if m.outside.Fence {
		text += ", with a fence"
	}
	if m.anytime {
		text += "; calls land whenever they like"
	}
	if m.lag {
		text += "; look-ups by reference show what is a window old"
	}
	if m.slow {
		text += "; a thing is Pending first"
	}
	return text
}

func scripts() []script {
	fenced := setting{outside: Outside{Guarantee: UniqueReference, Fence: true}, anytime: true, lag: true, acts: []act{
		actDate, actPassenger, actDelete, actUnclaim, actRestore, actBackup, actRollback, actCancel, actVanish, actOrphan, actNew, actAdopt,
	}}
	with := func(change func(*setting)) setting {
		s := fenced
		change(&s)
		return s
	}
	lookup := with(func(s *setting) { s.outside, s.anytime = Outside{Guarantee: LookupOnly}, false })
	none := with(func(s *setting) {
		s.outside, s.anytime, s.lag, s.acts = Outside{Guarantee: None}, false, false, []act{actHappened, actDidNot}
	})
	booked := []string{"claim", "create", "= as wanted"}
	after := func(steps ...string) []string { return append(append([]string{}, booked...), steps...) }
	return []script{
		{"a life", "Three writes, and three calls.", fenced, after("— it is deleted", rest)},
		{"an answer is lost", "The call took effect, and nobody was told: the same key is sent again only after a look.", fenced, []string{"claim", "create: the answer is lost", rest}},
		{"a crash before the answer", "Another process finds what the claim says may be there.", fenced, []string{"claim", "create: landed, and a crash", rest}},
		{"a call lands late", "A process died with a call in the air; it lands when its successor has made the thing already, and is refused.", fenced, []string{"claim", "create: in the air, and a crash", rest, "a call lands: create", rest}},
		{"a deletion while a create is in the air", "The fence closes the reference before the object is let go; the late call makes nothing.", fenced, []string{"claim", "create: in the air, and a crash", "— it is deleted", rest, "a call lands: create", rest}},
		{"without a fence a window is waited for", "The same, where nothing can be closed.", lookup, []string{"claim", "look", "create: in the air, and a crash", "— it is deleted", "the watch tells", "look", "= waiting: Settling", "a call lands: create", rest}},
		{"a replacement, and a crash in the middle", "Two are live, and the claim says so; the old one goes when the new one stands and status says so.", fenced, after("— the passenger is changed", "the watch tells", "look", "claim", "create: landed, and a crash", rest)},
		{"a replacement that does not come about", "The old one stays.", with(func(s *setting) { s.slow = true }), []string{"claim", "create", "= working: Pending", "it is confirmed", "look", "= as wanted", "— the passenger is changed", "the watch tells", "look", "claim", "create", "= working: Replacing", "it is not confirmed", rest}},
		{"somebody takes the claim off", "The process that knows it puts it back, and makes nothing meanwhile.", fenced, after("half a window passes", "half a window passes", "— the claim is taken off", rest)},
		{"a restore under a new UID", "A backup is applied again: what stands outside counts for the new object.", fenced, after("— it is restored under a new UID", rest)},
		{"an older etcd comes back", "The claim is behind what stands outside: the later incarnation is taken up.", fenced, after("— a backup of etcd", "— the passenger is changed", rest, "— etcd is restored from the backup", rest)},
		{"adopted, and deleted at once", "What came here by a new reference is this object's to end, though nothing was ever created.", with(func(s *setting) {
			s.outside, s.anytime = Outside{Guarantee: LookupOnly, Rebind: true, Adopt: true}, false
		}), []string{"— adopt is annotated", "the watch tells", "claim", "look", "rebind", "— it is deleted", rest}},
		{"lost, and made anew", "What was cancelled at the other side is replaced, where the policy says so: closed first.", with(func(s *setting) { s.policy.Recreate = true }), after("— it is cancelled by hand", rest)},
		{"nobody can tell but a person", "The outside can neither be asked nor told twice: the object is Stalled until somebody looks.", none, []string{"claim", "create: the answer is lost", "= working: OutcomeUnknown", rest, "— a person says that it happened", rest}},
	}
}

func TestTheTellingHistoriesAreAsTheirTranscriptsSay(t *testing.T) {
	t.Parallel()
	for _, sc := range scripts() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			got := sc.play(t)
			path := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(sc.name)+".txt")
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != got {
				t.Errorf("%s is not what happens (%v); see what changed, and run with -rewrite:\n%s", path, err, got)
			}
		})
	}
}

func TestTheHappyPathCostsThreeWritesAndThreeCalls(t *testing.T) {
	t.Parallel()
	writes, calls := 0, 0
	for line := range strings.Lines(scripts()[0].play(t)) {
		switch what := strings.TrimSpace(line); {
		case what == "claim", what == "release", what == "= as wanted":
			writes++
		case what == "look", what == "create", what == "delete", what == "fence", what == "update":
			calls++ // that one look is one call, decide_test.go shows
		}
	}
	if writes != 3 || calls != 3 {
		t.Errorf("%d writes and %d calls, want claim, status, release and create, look, cancel", writes, calls)
	}
}
