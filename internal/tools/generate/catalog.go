package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// catalog is a file-based catalog of all versions: the package, its channel with the
// edges of the upgrade, and the bundles. Each has its manifests in it, so that no image
// of a bundle must be unpacked.
func (r release) catalog(root string, current map[string][]byte) ([]byte, error) {
	icon, err := os.ReadFile(filepath.Join(root, olm, "icon.svg"))
	if err != nil {
		return nil, err
	}
	blobs := []object{{
		"schema": "olm.package", "name": pkg, "defaultChannel": channel, "description": "Books a flight for every Ticket.",
		"icon": object{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"},
	}}
	var entries []any
	versions := append(slices.Clone(r.before), r.version)
	for i, version := range versions {
		entry := object{"name": name(version)}
		if this := (release{version: version, before: versions[:i]}); i > 0 {
			entry["replaces"], entry["skipRange"] = this.replaces(), this.skipRange()
		}
		entries = append(entries, entry)
	}
	blobs = append(blobs, object{"schema": "olm.channel", "package": pkg, "name": channel, "entries": entries})
	for _, version := range versions {
		manifests := ofBundle(current)
		if version != r.version {
			if manifests, err = released(root, version); err != nil {
				return nil, err
			}
		}
		blob, err := bundleBlob(version, manifests)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", version, err)
		}
		blobs = append(blobs, blob)
	}
	var out bytes.Buffer
	out.WriteString("# Made by `go generate ./" + api + "`; do not edit.\n")
	for _, blob := range blobs {
		raw, err := yaml.Marshal(blob)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	return out.Bytes(), nil
}

// ofBundle are the manifests among the bundle's files.
func ofBundle(files map[string][]byte) map[string][]byte {
	manifests := map[string][]byte{}
	for name, content := range files {
		if path.Base(path.Dir(name)) == "manifests" {
			manifests[path.Base(name)] = content
		}
	}
	return manifests
}

// released are the manifests of a version that was released.
func released(root, version string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(root, olm, "bundles", version, "manifests", "*.yaml"))
	if err != nil {
		return nil, err
	}
	manifests := map[string][]byte{}
	for _, name := range names {
		if manifests[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return manifests, nil
}

func bundleBlob(version string, manifests map[string][]byte) (object, error) {
	properties := []any{object{"type": "olm.package", "value": object{"packageName": pkg, "version": version[1:]}}}
	var objects, images []any
	for _, file := range slices.Sorted(maps.Keys(manifests)) {
		var o object
		if err := yaml.Unmarshal(manifests[file], &o); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		raw, err := yaml.YAMLToJSON(manifests[file])
		if err != nil {
			return nil, err
		}
		objects = append(objects, object{"type": "olm.bundle.object", "value": object{"data": base64.StdEncoding.EncodeToString(raw)}})
		switch at[string](o, "kind") {
		case "CustomResourceDefinition":
			for _, v := range at[[]any](o, "spec", "versions") {
				properties = append(properties, object{"type": "olm.gvk", "value": object{
					"group": at[string](o, "spec", "group"), "kind": at[string](o, "spec", "names", "kind"), "version": at[string](v, "name"),
				}})
			}
		case "ClusterServiceVersion":
			images = at[[]any](o, "spec", "relatedImages")
		}
	}
	if len(images) == 0 || !strings.HasPrefix(version, "v") {
		return nil, fmt.Errorf("it names no image, or its version %s is none", version)
	}
	return object{
		"schema": "olm.bundle", "package": pkg, "name": name(version), "image": "",
		"properties": append(properties, objects...), "relatedImages": images,
	}, nil
}
