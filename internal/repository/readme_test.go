package repository

import (
	"os"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// block is the n-th fenced block of a language in a Markdown text.
func block(text, language string, n int) string {
	for range n {
		_, after, found := strings.Cut(text, "```"+language+"\n")
		if !found {
			return ""
		}
		text = after
	}
	code, _, _ := strings.Cut(text, "```")
	return code
}

func TestTheControllerInTheReadmeIsTheOneThatIsTested(t *testing.T) {
	t.Parallel()
	program := read(t, "examples/quickstart/main.go")
	if got := block(read(t, "README.md"), "go", 1); got != program {
		t.Error("the first Go block of README.md is not examples/quickstart/main.go; copy it there")
	}
	lines := 0
	for line := range strings.Lines(program) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines > 60 {
		t.Errorf("examples/quickstart/main.go has %d lines that are not empty, want at most 60", lines)
	}
}

func TestTheReadmesTestCommandIsWhatIsChecked(t *testing.T) {
	t.Parallel()
	readme, ci := read(t, "README.md"), read(t, ".ci/run")
	command := strings.TrimSpace(block(readme, "sh", 2))
	if command != "go test -race ./..." {
		t.Fatalf("the second command of README.md is %q", command)
	}
	if !strings.Contains(ci, "go test -race -count=1 -timeout=15m ./...") {
		t.Error(".ci/run does not run it")
	}
	// What they do internal/e2e/readme tests.
	for n, want := range map[int]string{1: "go run ./examples/ticket-controller", 4: "go -C internal/e2e run ./cluster -- ./examples/ticket-controller/try.sh"} {
		if got := strings.TrimSpace(block(readme, "sh", n)); got != want {
			t.Errorf("block %d of shell in README.md is %q, want %q", n, got, want)
		}
	}
}

func TestABlockOfMarkdownIsFound(t *testing.T) {
	t.Parallel()
	text := "a\n```go\none\n```\nb\n```sh\nx\n```\n```go\ntwo\n```\n"
	for _, c := range []struct {
		language string
		n        int
		want     string
	}{{"go", 1, "one\n"}, {"go", 2, "two\n"}, {"sh", 1, "x\n"}, {"sh", 2, ""}} {
		if got := block(text, c.language, c.n); got != c.want {
			t.Errorf("%s %d: %q, want %q", c.language, c.n, got, c.want)
		}
	}
}
