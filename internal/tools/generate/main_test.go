package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// setup is a repository without generated files, and a folder in which all of
// them have just been made.
func setup(t *testing.T) (root, made string) {
	t.Helper()
	root, made = t.TempDir(), t.TempDir()
	for name, path := range outputs {
		if err := os.WriteFile(filepath.Join(made, name), []byte("made: "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root, made
}

func TestWhatWasWrittenIsUpToDate(t *testing.T) {
	t.Parallel()
	root, made := setup(t)
	if err := settle(root, made, outputs, false); err != nil {
		t.Fatal(err)
	}
	if err := settle(root, made, outputs, true); err != nil {
		t.Error(err)
	}
}

func TestAStaleFileIsNamedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	root, made := setup(t)
	if err := settle(root, made, outputs, false); err != nil {
		t.Fatal(err)
	}
	crd := outputs["flights.com_tickets.yaml"]
	if err := os.WriteFile(filepath.Join(root, crd), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := settle(root, made, outputs, true)
	if err == nil || !strings.Contains(err.Error(), crd) || strings.Contains(err.Error(), "deepcopy") {
		t.Errorf("%v", err)
	}
	if content, err := os.ReadFile(filepath.Join(root, crd)); err != nil || string(content) != "old" {
		t.Errorf("%q, %v", content, err)
	}
}

func TestAMissingFileIsStale(t *testing.T) {
	t.Parallel()
	root, made := setup(t)
	if err := settle(root, made, outputs, true); err == nil || !strings.Contains(err.Error(), "deepcopy") {
		t.Errorf("%v", err)
	}
}

func TestTheGeneratorMustMakeEverything(t *testing.T) {
	t.Parallel()
	root, made := setup(t)
	if err := os.Remove(filepath.Join(made, "zz_generated.deepcopy.go")); err != nil {
		t.Fatal(err)
	}
	if err := settle(root, made, outputs, false); err == nil || !strings.Contains(err.Error(), "zz_generated.deepcopy.go") {
		t.Errorf("%v", err)
	}
}
