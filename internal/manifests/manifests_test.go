package manifests

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var deploy = filepath.Join("..", "..", "examples", "ticket-controller", "deploy")

// installations are what one may install, by name: a stream of YAML documents each.
func installations(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, folder := range []string{".", "base", "overlays/single-namespace", "overlays/prometheus"} {
		made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(deploy, folder))
		if err != nil {
			t.Fatal(err)
		}
		if all[folder], err = made.AsYaml(); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(deploy, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all["install.yaml"] = raw
	return all
}

func TestAllFitsTheSchemas(t *testing.T) {
	t.Parallel()
	all := installations(t)
	samples, err := filepath.Glob(filepath.Join(deploy, "samples", "*.yaml"))
	if err != nil || len(samples) == 0 {
		t.Fatalf("samples: %q, %v", samples, err)
	}
	for _, path := range samples {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	v := schemas(t)
	for name, stream := range all {
		for _, wrong := range unfit(v, stream) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// What the schemas are good for: each of these is a mistake that one makes.
func TestWhatDoesNotFitTheSchemasIsFound(t *testing.T) {
	t.Parallel()
	v := schemas(t)
	unit := string(installations(t)["."])
	sample, err := os.ReadFile(filepath.Join(deploy, "samples", "to-new-york.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ from, change, to string }{
		"a field that is not there": {unit, "replicas: 2", "replica: 2"},
		"a word for a number":       {unit, "replicas: 2", "replicas: two"},
		"a field too deep":          {unit, "readOnlyRootFilesystem: true", "readOnlyRootFileSystem: true"},
		"a kind that is not there":  {unit, "kind: PodDisruptionBudget", "kind: PodBudget"},
		"a Ticket's field":          {string(sample), "departureDate:", "departure:"},
		"a Ticket's airport":        {string(sample), "from: ICN", "from: Incheon"},
	} {
		if !strings.Contains(test.from, test.change) {
			t.Errorf("%s: there is no %q", name, test.change)
		}
		if wrong := unfit(v, []byte(strings.Replace(test.from, test.change, test.to, 1))); len(wrong) != 1 {
			t.Errorf("%s: found %q", name, wrong)
		}
	}
}

func schemas(t *testing.T) validator.Validator {
	t.Helper()
	folder := t.TempDir()
	writeSchemas(t, folder)
	v, err := validator.New([]string{folder + location}, validator.Opts{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func unfit(v validator.Validator, stream []byte) (wrong []string) {
	for _, r := range v.Validate("", io.NopCloser(bytes.NewReader(stream))) {
		if r.Status != validator.Valid && r.Status != validator.Empty {
			wrong = append(wrong, fmt.Sprint(r.Err))
		}
	}
	return wrong
}

// The exceptions stand where they are made: beside what they are about, but for the
// one of the next line.
func TestKubeScoreFindsNothing(t *testing.T) {
	t.Parallel()
	for name, stream := range installations(t) {
		if out, err := kubeScore(t, stream); err != nil {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
	worse := bytes.Replace(installations(t)["."], []byte("readOnlyRootFilesystem: true"), []byte("readOnlyRootFilesystem: false"), 1)
	if out, err := kubeScore(t, worse); err == nil {
		t.Errorf("a pod that may write to its own files passes:\n%s", out)
	}
}

func kubeScore(t *testing.T, stream []byte) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "kube-score", "score", "-", "-o", "ci", "--exit-one-on-warning",
		"--kubernetes-version", "v1.37",
		// A leader that is throttled renews its Lease late: CPU has a request and no limit.
		"--ignore-container-cpu-limit",
	)
	cmd.Stdin = bytes.NewReader(stream)
	return cmd.CombinedOutput()
}
