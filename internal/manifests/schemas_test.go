package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// kubernetes is the release whose schemas count: the one that internal/e2e builds.
const kubernetes = "k8s.io/kubernetes@v1.37.2"

// location is where kubeconform looks for what writeSchemas writes.
const location = "/{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"

// writeSchemas writes a schema for every kind of a group into the folder: from the
// API server's own description, and the Ticket's from its definition.
func writeSchemas(t *testing.T, folder string) {
	t.Helper()
	var module struct{ Dir string }
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", kubernetes).Output()
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		t.Fatalf("the sources of Kubernetes: %v", err)
	}
	for _, group := range []string{
		"api__v1", "apis__apps__v1", "apis__policy__v1", "apis__networking.k8s.io__v1",
		"apis__rbac.authorization.k8s.io__v1", "apis__scheduling.k8s.io__v1", "apis__apiextensions.k8s.io__v1",
	} {
		raw, err := os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "v3", group+"_openapi.json"))
		if err != nil {
			t.Fatal(err)
		}
		var description struct {
			Components struct{ Schemas map[string]map[string]any }
		}
		// What is a component there is a definition in a JSON schema.
		moved := strings.ReplaceAll(string(raw), "#/components/schemas/", "#/definitions/")
		if err := json.Unmarshal([]byte(moved), &description); err != nil {
			t.Fatalf("%s: %v", group, err)
		}
		all := description.Components.Schemas
		for _, s := range all {
			strict(s)
		}
		for name, s := range all {
			kinds, _ := s["x-kubernetes-group-version-kind"].([]any)
			if len(kinds) != 1 { // those of every group, DeleteOptions above all, are no manifests
				continue
			}
			kind := kinds[0].(map[string]any)
			write(t, folder, kind["group"], kind["version"], kind["kind"], map[string]any{"$ref": "#/definitions/" + name, "definitions": all})
		}
	}
	definition := tree(t, filepath.Join(deploy, "crd.yaml"))
	spec := definition["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)
	s := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	delete(s["properties"].(map[string]any), "metadata") // any object's
	strict(s)
	s["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
	write(t, folder, spec["group"], version["name"], spec["names"].(map[string]any)["kind"], s)
}

func write(t *testing.T, folder string, group, version, kind any, schema map[string]any) {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if group == "" { // kubeconform's name of it
		group = version
	}
	name := fmt.Sprintf("%s-%s-%s.json", strings.ToLower(kind.(string)), group, version)
	if err := os.WriteFile(filepath.Join(folder, name), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// strict forbids, at every depth, fields that the schema does not have.
func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		_, has := s["properties"].(map[string]any)
		_, says := s["additionalProperties"]
		if has && !says && s["x-kubernetes-preserve-unknown-fields"] != true {
			s["additionalProperties"] = false
		}
		for _, below := range s {
			strict(below)
		}
	case []any:
		for _, below := range s {
			strict(below)
		}
	}
}

func tree(t *testing.T, path string) (content map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(raw, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}
