package binaries

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// KubernetesVersion is the release that kube-apiserver and kubectl are built
// from. Etcd is the release that this Kubernetes release names.
const KubernetesVersion = "v1.37.2"

const (
	// stagingVersion is under which version the modules that Kubernetes
	// develops in its own repository are published for KubernetesVersion.
	stagingVersion = "v0.37.2"
	major, minor   = "1", "37"
)

// recipe is this very file: whatever changes here makes another build.
//
//go:embed recipe.go
var recipe string

// A program is one executable and the package of its main function.
type program struct{ name, pkg string }

func programs() []program {
	return []program{
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
		{"etcd", "go.etcd.io/etcd/server/v3"},
	}
}

func names(programs []program) []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// linkerFlags leave debugging symbols out and tell the programs their version,
// which they would otherwise give as v0.0.0.
func linkerFlags() string {
	const version = " -X k8s.io/component-base/version."
	return "-s -w" + version + "gitVersion=" + KubernetesVersion + version + "gitMajor=" + major +
		version + "gitMinor=" + minor + version + "gitTreeState=clean"
}

// environment is that of every go command here. The recipe's module is nobody's
// workspace, and its go.sum is completed while it builds: Kubernetes' own has
// everything but the published staging modules.
func environment() []string {
	return append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
}

// writeModule makes dir a module in which the programs can be built. It is
// Kubernetes' own go.mod and go.sum, so that every dependency has the version
// that the release was made with, but for the modules that stand in
// Kubernetes' repository: the published ones take their place.
func writeModule(ctx context.Context, dir string) error {
	var kubernetes struct{ Dir string }
	if err := goJSON(ctx, dir, &kubernetes, "mod", "download", "-json", "k8s.io/kubernetes@"+KubernetesVersion); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(kubernetes.Dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	var mod struct {
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := goJSON(ctx, dir, &mod, "mod", "edit", "-json"); err != nil {
		return err
	}
	edit := []string{"mod", "edit", "-module=controlplane.local", "-require=k8s.io/kubernetes@" + KubernetesVersion}
	for _, r := range mod.Replace {
		if !strings.HasPrefix(r.New.Path, "./staging/") {
			return fmt.Errorf("go.mod of k8s.io/kubernetes@%s replaces %s by %s, which this recipe does not know", KubernetesVersion, r.Old.Path, r.New.Path)
		}
		edit = append(edit, "-replace="+r.Old.Path+"="+r.Old.Path+"@"+stagingVersion)
	}
	_, err := goOutput(ctx, dir, edit...)
	return err
}

func goJSON(ctx context.Context, dir string, into any, args ...string) error {
	out, err := goOutput(ctx, dir, args...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("reading the answer of go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, environment()
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s%s", strings.Join(args, " "), err, complaint.String(), out)
	}
	return out, nil
}
