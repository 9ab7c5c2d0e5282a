package clients

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are what a command that goes on says, one by one.
func (h host) lines(t *testing.T, args string) func() string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, kubectl, words(args)...)
	cmd.Env = h.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	scanner := bufio.NewScanner(out)
	return func() string {
		if !scanner.Scan() {
			return "the end"
		}
		return scanner.Text()
	}
}

func TestAWatchShowsTheSame(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	said := make([][]string, len(hosts))
	for i, h := range hosts {
		do := func(args, input string) {
			if said := h.said(t.Context(), t.TempDir(), step{args: args, input: input}.in(ns)); !strings.HasSuffix(said, "status 0\n") {
				t.Fatalf("%s: kubectl %s: %s", h.name, args, said)
			}
		}
		do("create namespace $NS", "")
		for _, s := range established {
			do(s.args, s.input)
		}
		do("-n $NS apply -f -", widget("a", "{size: 1}"))
		next := h.lines(t, step{args: "-n $NS get $WS -w --output-watch-events -o wide"}.in(ns).args)
		hear := func(n int) {
			for range n {
				said[i] = append(said[i], normal(next()))
			}
		}
		hear(2)
		do("-n $NS apply -f -", widget("b", "{}"))
		hear(1)
		do(`-n $NS patch $W b --type=merge -p '{"spec":{"size":3}}'`, "")
		hear(1)
		do(`-n $NS patch $W b --subresource=status --type=merge -p '{"status":{"phase":"Up"}}'`, "")
		hear(1)
		do("-n $NS delete $W a", "")
		hear(1)
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("(-%s +%s):\n%s", hosts[0].name, hosts[1].name, diff)
	}
	t.Log(strings.Join(said[0], "\n"))
}
