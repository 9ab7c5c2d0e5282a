// Command generate makes what is made from the Go types of the Ticket and from the
// operator's manifests: the deep copies beside the types, the
// CustomResourceDefinition, install.yaml, and what the Operator Lifecycle Manager reads.
//
//	go -C internal/tools run ./generate          # write them
//	go -C internal/tools run ./generate -check   # fail where one is stale
//
// The generators are the controller-gen and the kustomize that this module's go.mod
// pins.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// api is the package that the definition is generated from, deploy the folder of the
// manifests, and outputs are the files that come of them, by the names that the
// generators give them. Paths are relative to the repository's root.
const (
	api    = "examples/ticket-controller/api/v1"
	deploy = "examples/ticket-controller/deploy"
)

const madeDefinition, madeInstall = "flights.com_tickets.yaml", "install.yaml"

var outputs = map[string]string{
	"zz_generated.deepcopy.go": api + "/zz_generated.deepcopy.go",
	madeDefinition:             deploy + "/crd.yaml",
	madeInstall:                deploy + "/install.yaml",
}

func main() {
	check := flag.Bool("check", false, "write nothing; fail where a file is not what would be written")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	made, err := os.MkdirTemp("", "generate-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)

	if err := controllerGen(ctx, root, made); err != nil {
		return err
	}
	if err := install(root, made); err != nil {
		return err
	}
	all, err := bundle(root, made)
	if err != nil {
		return err
	}
	maps.Copy(all, outputs)
	return settle(root, made, all, check)
}

// settle writes what was made to where it belongs, or only compares.
func settle(root, made string, outputs map[string]string, check bool) error {
	var stale []string
	for name, path := range outputs {
		want, err := os.ReadFile(filepath.Join(made, name))
		if err != nil {
			return fmt.Errorf("the generator did not make %s: %w", name, err)
		}
		have, err := os.ReadFile(filepath.Join(root, path))
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return err
		case err == nil && bytes.Equal(have, want):
		case check:
			stale = append(stale, path)
		default:
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(root, path), want, 0o644); err != nil {
				return err
			}
		}
	}
	if len(stale) > 0 {
		slices.Sort(stale)
		return fmt.Errorf("stale: %s. Run `go generate ./%s` and commit the result", strings.Join(stale, ", "), api)
	}
	return nil
}

// repository finds the root from this module's own place in it.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(strings.TrimSpace(string(out)))))
	if _, err := os.Stat(filepath.Join(root, api)); err != nil {
		return "", fmt.Errorf("run this as `go -C internal/tools run ./generate`: %w", err)
	}
	return root, nil
}

// controllerGen leaves everything that it generates in the folder made. It runs
// at the root, since the types belong to the root's module.
func controllerGen(ctx context.Context, root, made string) error {
	path, err := exec.CommandContext(ctx, "go", "tool", "-n", "controller-gen").Output()
	if err != nil {
		return fmt.Errorf("building controller-gen: %w", err)
	}
	cmd := exec.CommandContext(ctx, strings.TrimSpace(string(path)),
		"object", "crd", "paths=./"+api, "output:dir="+made)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("controller-gen: %w", err)
	}
	return nil
}
