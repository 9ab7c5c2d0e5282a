package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stages are a Dockerfile's first stage and the rest, without what is said beside it.
func stages(t *testing.T, name string) (first, rest string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deploy, "image", name))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "\nFROM ")
	first, rest, found := strings.Cut(text, "\nFROM ")
	if !found {
		t.Fatalf("%s has one stage", name)
	}
	return first, rest
}

func TestTheDockerfilesDifferInNothingButTheFirstStage(t *testing.T) {
	t.Parallel()
	outside, single := stages(t, "Dockerfile")
	inside, multi := stages(t, "Dockerfile.multistage")
	if single != multi {
		t.Errorf("after the first stage there is\n%s\nand\n%s", single, multi)
	}
	if outside == inside {
		t.Error("the first stages are the same")
	}
}
