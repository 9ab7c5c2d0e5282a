package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const installHeader = "# The Ticket operator for a whole cluster. Made from kustomization.yaml beside this\n" +
	"# file by `go generate ./" + api + "`; do not edit.\n"

// install leaves install.yaml in the folder made, which has the definition already.
func install(root, made string) error {
	unit, err := build(root, made, ".")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(made, madeInstall), append([]byte(installHeader), unit...), 0o600)
}

// build is what `kubectl kustomize` prints of a folder of the manifests, with the
// definition that has just been made in place of the one that is there.
func build(root, made, folder string) ([]byte, error) {
	tree := filesys.MakeFsInMemory()
	source := os.DirFS(filepath.Join(root, deploy))
	err := fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(source, path)
		if err != nil {
			return err
		}
		return tree.WriteFile(filepath.Join("/deploy", path), content)
	})
	if err != nil {
		return nil, err
	}
	definition, err := os.ReadFile(filepath.Join(made, madeDefinition))
	if err != nil {
		return nil, fmt.Errorf("the generator did not make the definition: %w", err)
	}
	if err := tree.WriteFile("/deploy/crd.yaml", definition); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // kubectl's: what others need comes first
	resources, err := krusty.MakeKustomizer(options).Run(tree, filepath.Join("/deploy", folder))
	if err != nil {
		return nil, fmt.Errorf("kustomize of %s: %w", filepath.Join(deploy, folder), err)
	}
	return resources.AsYaml()
}
