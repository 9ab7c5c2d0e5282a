package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// step is one command, in a shell's words, and what it is given.
type step struct {
	args  string // of kubectl; $NS is the test's namespace
	input string
	env   string // one more variable, as "A=b"
	// differs says why the fake says something else, where that is known. It is an
	// error when it does not.
	differs string
}

// in is the step of a test, whose names nothing else has: two definitions of one
// name would make kubectl guess.
func (s step) in(ns string) step {
	names := strings.NewReplacer("$NS", ns, "$WS", ns+"widgets", "$W", ns+"widget", "$K", strings.ToUpper(ns[:1])+ns[1:]+"Widget", "$SHORT", "w"+ns)
	s.args, s.input = names.Replace(s.args), names.Replace(s.input)
	return s
}

// said is what a command said, and its status.
func (h host) said(ctx context.Context, dir string, s step) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, kubectl, words(s.args)...)
	cmd.Env, cmd.Dir, cmd.Stdin = h.env, dir, strings.NewReader(s.input)
	if s.env != "" {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], s.env)
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("%s%sstatus %d\n", out.String(), complaint.String(), status)
}

var word = regexp.MustCompile(`'[^']*'|\S+`)

// words splits a line as a shell does, as far as the steps need it.
func words(line string) (all []string) {
	for _, w := range word.FindAllString(line, -1) {
		all = append(all, strings.Trim(w, "'"))
	}
	return all
}

// differing is what differs from one server to the other, and one time to the next.
var differing = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`CreationTimestamp: .*`), "TIME"},
	{regexp.MustCompile(`(Creation Timestamp|Time|Deletion Timestamp): +\S+`), "$1: TIME"},
	{regexp.MustCompile(`(resourceVersion: |Resource Version: +)"?\d+"?`), "${1}RV"},
	{regexp.MustCompile(`(\W)(\d+m)?\d+s\b`), "${1}AGE"},
	{regexp.MustCompile(`<unknown>|<invalid>`), "AGE"},
	{regexp.MustCompile(`(?m)^[EWI]\d{4} .*\n`), ""}, // the log: when kubectl itself ends a watch, it says so or not
	{regexp.MustCompile(`"resourceVersion": "\d+"`), "RV"},
	{regexp.MustCompile(`/\S*/(LIVE|MERGED)-\d+`), "$1"},
	{regexp.MustCompile(`\t\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* [+-]\d{4}`), " TIME"},
	{regexp.MustCompile(`/\S*kubectl-edit-\S+`), "EDITED"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

func normal(text string) string {
	for _, d := range differing {
		text = d.what.ReplaceAllString(text, d.word)
	}
	return text
}

// play plays a script on both servers, and compares what is said at each step.
func play(t *testing.T, script []step) {
	t.Helper()
	ns := namespace(t)
	said := make([][]string, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		dir := t.TempDir()
		all.Go(func() {
			for _, s := range append([]step{{args: "create namespace $NS"}}, script...) {
				said[i] = append(said[i], h.said(t.Context(), dir, s.in(ns)))
			}
		})
	}
	all.Wait()
	for i, s := range append([]step{{args: "create namespace $NS"}}, script...) {
		diff := cmp.Diff(normal(said[0][i]), normal(said[1][i]))
		switch {
		case diff == "" && s.differs != "":
			t.Errorf("kubectl %s does not differ any more, although %s", s.args, s.differs)
		case diff != "" && s.differs == "":
			t.Errorf("kubectl %s (-%s +%s):\n%s", s.args, hosts[0].name, hosts[1].name, diff)
		}
		t.Logf("kubectl %s\n%s", s.args, said[0][i])
	}
}

// namespace is a namespace's name that belongs to the test alone.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(filepath.Base(strings.TrimPrefix(t.Name(), "Test")))
	return name[:min(len(name), 24)]
}
