package protocol

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// history is what people do, one act after another; the world settles after each.
type history struct {
	name string
	acts []func(*world)
	want func(*world) string // "" where the end is right
}

func oneAsWanted(w *world) string {
	live := w.live()
	switch {
	case len(live) != 1:
		return fmt.Sprintf("%d are live", len(live))
	case live[0].spec != w.spec:
		return "it is not as spec says"
	case w.status.ID != live[0].id:
		return fmt.Sprintf("status names %q, %q stands", w.status.ID, live[0].id)
	case !w.status.Done || w.status.ObservedGeneration != w.generation:
		return "status does not say so"
	case w.claim.Next != 0:
		return "a replacement is left open"
	}
	return ""
}

func gone(w *world) string {
	if w.exists && (w.finalizer || w.claimed) || len(w.live()) > 0 { // without either it goes by itself
		return fmt.Sprintf("exists: %v, live: %v", w.exists, w.live())
	}
	return ""
}

func changeDate(w *world) { w.spec.date++; w.generation++; w.say("— the date is changed") }
func changePassenger(w *world) {
	w.spec.passenger++
	w.generation++
	w.say("— the passenger is changed")
}
func remove(w *world)  { w.deleting = true; w.generation++; w.say("— it is deleted") }
func sellOut(w *world) { w.soldOut = true }
func restock(w *world) {
	w.soldOut = false
	w.generation++
	w.spec.date++
	w.say("— seats again, another date")
}
func nothing(*world)      {}
func restart(w *world)    { w.memory, w.started = Memory{}, w.now; w.say("— restarted") }
func loseStatus(w *world) { w.status = Status{}; w.say("— status is removed") }

// atOnce carries out acts with one pass after each, so that the next comes while
// the one before is not settled.
func atOnce(acts ...func(*world)) func(*world) {
	return func(w *world) {
		for _, act := range acts {
			act(w)
			if w.exists {
				w.pass()
				w.check()
			}
			w.now = w.now.Add(time.Second)
		}
	}
}

// slow is an outside whose look-ups by reference lag and whose confirmations take
// their time.
func slow(w *world) { w.lag, w.confirms = 30*time.Second, 3*time.Second }

var histories = []history{
	{"slow: create", []func(*world){slow}, oneAsWanted},
	{"slow: replace", []func(*world){slow, changePassenger}, oneAsWanted},
	{"slow: replace, at once deleted", []func(*world){slow, atOnce(changePassenger, remove)}, gone},
	{"slow: replace, at once replaced", []func(*world){slow, atOnce(changePassenger, changePassenger)}, oneAsWanted},
	{"slow: replace, at once changed", []func(*world){slow, atOnce(changePassenger, changeDate)}, oneAsWanted},
	{"slow: all at once", []func(*world){atOnce(slow, changePassenger, changeDate, remove)}, gone},
	{"replace, at once deleted", []func(*world){nothing, atOnce(changePassenger, remove)}, gone},
	{"replace sold out, at once deleted", []func(*world){nothing, sellOut, atOnce(changePassenger, remove)}, gone},
	{"create, at once deleted", []func(*world){atOnce(nothing, remove)}, gone},
	{"create", []func(*world){nothing}, oneAsWanted},
	{"change in place", []func(*world){nothing, changeDate}, oneAsWanted},
	{"replace", []func(*world){nothing, changePassenger}, oneAsWanted},
	{"replace twice", []func(*world){nothing, changePassenger, changePassenger}, oneAsWanted},
	{"delete", []func(*world){nothing, remove}, gone},
	{"replace, delete", []func(*world){nothing, changePassenger, remove}, gone},
	{"sold out, then not", []func(*world){sellOut, nothing, restock}, oneAsWanted},
	{"sold out, delete", []func(*world){sellOut, nothing, remove}, gone},
	{"replace sold out, then not", []func(*world){nothing, sellOut, changePassenger, restock}, oneAsWanted},
	{"status lost", []func(*world){nothing, loseStatus, restart}, oneAsWanted},
	{"status lost, delete", []func(*world){nothing, loseStatus, remove}, gone},
}

func (h history) run(faults map[int]fault) (w *world, problem string) {
	w = newWorld(faults)
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			problem = f.text
		}
	}()
	for _, act := range h.acts {
		act(w)
		w.settle()
	}
	if p := h.want(w); p != "" {
		return w, p + "\n  " + strings.Join(w.transcript(), "\n  ")
	}
	return w, ""
}

// Every history, with every fault at every step, and every pair of faults.
func TestNoFaultOrPairOfFaultsBooksTwiceOrLosesAnything(t *testing.T) {
	t.Parallel()
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			w, problem := h.run(nil)
			if problem != "" {
				t.Fatal(problem)
			}
			runs := 0
			for i := 1; i <= w.step+2; i++ {
				for f := crashBefore; f < faultKinds; f++ {
					first, problem := h.run(map[int]fault{i: f})
					runs++
					if problem != "" {
						t.Fatalf("step %[2]d%[1]v: %[3]s", f, i, problem)
					}
					for j := i + 1; j <= first.step+1; j++ {
						for g := crashBefore; g < faultKinds; g++ {
							runs++
							if _, problem := h.run(map[int]fault{i: f, j: g}); problem != "" {
								t.Fatalf("step %[2]d%[1]v, step %[4]d%[3]v: %[5]s", f, i, g, j, problem)
							}
						}
					}
				}
			}
			t.Logf("%d steps without a fault, %d histories with", w.step, runs)
		})
	}
}

func TestTheHappyPathCostsThreeWritesAndThreeCalls(t *testing.T) {
	t.Parallel()
	w, problem := history{"life", []func(*world){nothing, remove}, gone}.run(nil)
	if problem != "" {
		t.Fatal(problem)
	}
	writes := 0
	for _, line := range w.transcript() {
		if strings.Contains(line, " claim ") || strings.HasSuffix(line, " status") || strings.HasSuffix(line, " release") {
			writes++
		}
	}
	if writes != 3 || w.calls != 3 {
		t.Fatalf("%d writes and %d calls, want claim, status, release and create, look, cancel:\n%s", writes, w.calls, strings.Join(w.transcript(), "\n"))
	}
}

func TestAClaimKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := Claim{V: 1, Controller: "d/c", Cluster: "x", Namespace: "ns", Name: "n", UID: "u", Owner: "u", Incarnation: 2, Attempt: 3, Next: 3, ID: "b1", Window: time.Minute, Time: 5}
	back, err := ParseClaim(c.String())
	if err != nil || back != c {
		t.Fatalf("got %+v, %v; want %+v", back, err, c)
	}
	raw := strings.TrimSuffix(c.String(), "}") + `,"later":{"a":1}}`
	back, err = ParseClaim(raw)
	if err != nil || back.String() != raw {
		t.Fatalf("got %s, %v; want %s", back, err, raw)
	}
}

func FuzzParseClaim(f *testing.F) {
	f.Add(`{"v":1,"controller":"d/c","cluster":"x","name":"n","uid":"u","owner":"u","incarnation":1,"attempt":1,"guarantee":"","window":"1m0s"}`)
	f.Add(`{"v":2}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := ParseClaim(raw)
		if err != nil {
			return
		}
		again, err := ParseClaim(c.String())
		if err != nil || again != c {
			t.Fatalf("%q reads as %+v, and then as %+v, %v", raw, c, again, err)
		}
	})
}

func TestReferencesAreShortAndDifferInEveryPart(t *testing.T) {
	t.Parallel()
	id := Identity{Controller: "d/c", Cluster: "x", Group: "g", Kind: "K"}
	base := Claim{Controller: "d/c", Cluster: "x", Namespace: "ns", Name: "n", UID: "u"}
	seen := map[string]string{}
	add := func(what, ref string) {
		t.Helper()
		if len(ref) > 63 || strings.Trim(ref, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%s: %q is not at most 63 of [a-z0-9-]", what, ref)
		}
		if other, ok := seen[ref]; ok {
			t.Errorf("%s has the reference of %s", what, other)
		}
		seen[ref] = what
	}
	add("base", id.Reference(base, 1))
	add("incarnation", id.Reference(base, 2))
	for what, change := range map[string]func(*Claim, *Identity){
		"controller": func(c *Claim, _ *Identity) { c.Controller = "d/other" },
		"cluster":    func(c *Claim, _ *Identity) { c.Cluster = "y" },
		"namespace":  func(c *Claim, _ *Identity) { c.Namespace = "nsn" },
		"name":       func(c *Claim, _ *Identity) { c.Name = "other" },
		"shifted":    func(c *Claim, _ *Identity) { c.Namespace, c.Name = "n", "sn" },
		"uid":        func(c *Claim, _ *Identity) { c.UID = "v" },
		"group":      func(_ *Claim, i *Identity) { i.Group = "h" },
		"kind":       func(_ *Claim, i *Identity) { i.Kind = "L" },
	} {
		c, i := base, id
		change(&c, &i)
		add(what, i.Reference(c, 1))
	}
}
