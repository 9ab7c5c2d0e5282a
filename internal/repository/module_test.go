package repository

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the repository's root, from this package.
var root = filepath.Join("..", "..")

// goMod is what `go mod edit -json` tells about a go.mod.
type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []struct{ Old struct{ Path string } }
	Exclude []struct{ Path string }
	Tool    []struct{ Path string }
}

// unfit finds what a go.mod must not have that others depend on: what is said
// there by replace or exclude does not hold for them, and every requirement
// becomes theirs.
func unfit(m goMod) (wrong []string) {
	for _, r := range m.Replace {
		wrong = append(wrong, "go.mod replaces "+r.Old.Path)
	}
	for _, r := range m.Exclude {
		wrong = append(wrong, "go.mod excludes "+r.Path)
	}
	for _, r := range m.Tool {
		wrong = append(wrong, fmt.Sprintf("go.mod has the tool %s: tools belong into internal/tools", r.Path))
	}
	may := slices.Concat(allowed, allowedInTests, allowedInMetrics)
	for _, r := range m.Require {
		if !r.Indirect && !belowAny(r.Path, may) {
			wrong = append(wrong, "go.mod requires "+r.Path)
		}
	}
	return wrong
}

func TestTheModuleRequiresNothingThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Require) == 0 {
		t.Fatalf("no requirements were read: %s", out)
	}
	for _, w := range unfit(m) {
		t.Error(w)
	}
}

func TestAnUnfitModuleIsFound(t *testing.T) {
	t.Parallel()
	const text = `{
		"Require": [
			{"Path": "k8s.io/client-go"}, {"Path": "github.com/prometheus/client_golang"}, {"Path": "go.uber.org/goleak"},
			{"Path": "k8s.io/apiserver"}, {"Path": "golang.org/x/net", "Indirect": true}
		],
		"Replace": [{"Old": {"Path": "k8s.io/api"}}], "Exclude": [{"Path": "k8s.io/utils"}], "Tool": [{"Path": "x.org/y"}]
	}`
	var m goMod
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"go.mod replaces k8s.io/api",
		"go.mod excludes k8s.io/utils",
		"go.mod has the tool x.org/y: tools belong into internal/tools",
		"go.mod requires k8s.io/apiserver",
	}
	if diff := cmp.Diff(want, unfit(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
