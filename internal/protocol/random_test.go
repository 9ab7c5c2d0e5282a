package protocol

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "the one seed whose history is played")
	seedsFlag = flag.Int("seeds", raceless(3000, 300), "histories with chance that are played")
)

// chance plays one long history, with many more faults and acts of people than an
// exploration reaches. A seed fixes all of it.
func chance(seed uint64, tell emit) (states int, bad string) {
	r := rand.New(rand.NewPCG(seed, 7))
	all := settings()
	s := all[r.IntN(len(all))]
	x := &explorer{model: newModel(s), calmed: map[packed]bool{}}
	x.mostFaults, x.mostActs = 4, 4
	if s.blind {
		x.mostFaults = 1
	}
	now := x.first()
	type option struct {
		what string
		next state
	}
	for range 150 {
		var process, rest []option
		x.process(now, func(what string, n state) { process = append(process, option{what, n}) })
		x.environment(now, func(what string, n state) { rest = append(rest, option{what, n}) })
		from := process
		switch {
		case len(process) == 0 && len(rest) == 0:
			return states, x.stuck(now)
		case len(process) == 0, len(rest) > 0 && r.IntN(5) == 0:
			from = rest
		}
		pick := from[0]
		if r.IntN(3) == 0 {
			pick = from[r.IntN(len(from))]
		}
		if tell != nil {
			tell(pick.what+"\n    "+x.describe(&pick.next), pick.next)
		}
		states++
		if bad := x.broken(now, pick.what, pick.next); bad != "" {
			return states, s.name + ": " + bad
		}
		now = pick.next
		if x.beyond(&now) {
			return states, ""
		}
	}
	if bad := x.stuck(now); bad != "" {
		if tell != nil {
			tell("and from here on, without a fault:"+x.calmly(now), now)
		}
		return states, s.name + ": " + bad
	}
	return states, ""
}

// beyond tells whether a history has used up what the model keeps room for.
func (x *explorer) beyond(s *state) bool {
	c := x.claims.at(s.api.claim)
	return max(c.Incarnation, c.Next) > mostIncs-4 || c.Attempt > mostTries-3 || s.out.things[mostThings-2].state != Unknown
}

// Histories that were wrong once are played again, each time.
func oldSeeds(t *testing.T) []uint64 {
	t.Helper()
	f, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var seeds []uint64
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, n)
	}
	return seeds
}

func TestHistoriesWithChanceKeepEveryPromise(t *testing.T) {
	t.Parallel()
	if *seedFlag != 0 {
		_, bad := chance(*seedFlag, func(what string, _ state) { fmt.Println("  " + what) })
		if bad != "" {
			t.Fatal(bad)
		}
		return
	}
	seeds := oldSeeds(t)
	for n := range *seedsFlag {
		seeds = append(seeds, uint64(n)+1)
	}
	steps, wrong := 0, 0
	for _, seed := range seeds {
		n, bad := chance(seed, nil)
		steps += n
		if bad != "" {
			t.Errorf("seed %d: %s; to see it: go test ./internal/protocol -run TestHistoriesWithChance -seed=%d", seed, bad, seed)
			if wrong++; wrong == 5 {
				break
			}
		}
	}
	t.Logf("%d histories, %d steps", len(seeds), steps)
}
