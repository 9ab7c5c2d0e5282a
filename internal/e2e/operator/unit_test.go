package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// unit is what install.yaml has, in its order.
func unit(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deploy, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, string(raw))
}

// documents are the objects of a stream of YAML documents.
func documents(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if obj.Object != nil {
			all = append(all, obj)
		}
	}
	return all
}

// find returns the one of a kind and name, as a type.
func find[T any](t *testing.T, all []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, obj := range all {
		if obj.GetKind() == kind && obj.GetName() == name {
			into := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, into, true); err != nil {
				t.Fatalf("%s %s: %v", kind, name, err)
			}
			return into
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}
