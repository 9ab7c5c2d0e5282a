package olm

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

var deploy = filepath.Join("..", "..", "examples", "ticket-controller", "deploy")

// bundles are the folders of all versions, the oldest first.
func bundles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(deploy, "olm", "bundles", "v*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("bundles: %q, %v", all, err)
	}
	slices.SortFunc(all, func(a, b string) int { return versionOf(a).Compare(versionOf(b)) })
	return all
}

// versionOf is that of a bundle's folder.
func versionOf(folder string) semver.Version {
	return semver.MustParse(strings.TrimPrefix(filepath.Base(folder), "v"))
}

// newest is the folder of the version that the manifests have.
func newest(t *testing.T) string {
	t.Helper()
	all := bundles(t)
	return all[len(all)-1]
}

const csvFile = "ticket-controller.clusterserviceversion.yaml"

func read(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// complaints are what operator-framework's validators have against a bundle, warnings
// included.
func complaints(t *testing.T, folder string) (all []string) {
	t.Helper()
	b, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range validation.AllValidators.Validate(b.ObjectsToValidate()...) {
		for _, e := range result.Errors {
			all = append(all, e.Error())
		}
		for _, w := range result.Warnings {
			all = append(all, w.Error())
		}
	}
	return all
}

func TestTheValidatorsFindNothingInAnyBundle(t *testing.T) {
	for _, folder := range bundles(t) {
		for _, c := range complaints(t, folder) {
			t.Errorf("%s: %s", folder, c)
		}
	}
}

// What the validators are good for.
func TestTheValidatorsFindWhatIsMissing(t *testing.T) {
	for name, spoil := range map[string]func(spec map[string]any){
		"no icon":            func(s map[string]any) { delete(s, "icon") },
		"no Kubernetes":      func(s map[string]any) { delete(s, "minKubeVersion") },
		"no provider":        func(s map[string]any) { delete(s, "provider") },
		"no owned resource":  func(s map[string]any) { delete(s, "customresourcedefinitions") },
		"nowhere to install": func(s map[string]any) { delete(s, "installModes") },
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "v1")
			if err := os.CopyFS(folder, os.DirFS(newest(t))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, "manifests", csvFile)
			var csv map[string]any
			read(t, path, &csv)
			spoil(csv["spec"].(map[string]any))
			raw, err := yaml.Marshal(csv)
			if err == nil {
				err = os.WriteFile(path, raw, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(complaints(t, folder)) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

func TestTheAnnotationsAreThoseThatOLMReads(t *testing.T) {
	const prefix = "operators.operatorframework.io.bundle."
	want := map[string]string{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": "ticket-controller", prefix + "channels.v1": "stable", prefix + "channel.default.v1": "stable",
	}
	for _, folder := range bundles(t) {
		var file map[string]map[string]string
		read(t, filepath.Join(folder, "metadata", "annotations.yaml"), &file)
		if !maps.Equal(file["annotations"], want) || len(file) != 1 {
			t.Errorf("%s: %v", folder, file)
		}
	}
}

// The pods of a Deployment have fields that are younger than the types here; they are
// held against the API server where it is installed from.
func TestAClusterServiceVersionHasNoFieldThatOLMDoesNotKnow(t *testing.T) {
	for _, folder := range bundles(t) {
		var csv map[string]any
		read(t, filepath.Join(folder, "manifests", csvFile), &csv)
		strategy := csv["spec"].(map[string]any)["install"].(map[string]any)["spec"].(map[string]any)
		for _, d := range strategy["deployments"].([]any) {
			delete(d.(map[string]any), "spec")
		}
		known := func() error {
			raw, err := yaml.Marshal(csv)
			if err != nil {
				return err
			}
			return yaml.UnmarshalStrict(raw, &v1alpha1.ClusterServiceVersion{})
		}
		if err := known(); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
		strategy["permission"] = strategy["permissions"]
		if known() == nil {
			t.Error("a field that is misspelt is not found")
		}
	}
}

// OLM gives Roles in its own namespaces only: what is needed elsewhere is a cluster
// permission.
func TestThePermissionsAreTheRightsOfTheManifests(t *testing.T) {
	var csv v1alpha1.ClusterServiceVersion
	read(t, filepath.Join(newest(t), "manifests", csvFile), &csv)
	raw, err := os.ReadFile(filepath.Join(deploy, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(role.Name, "ticket-controller") {
			want[role.Kind] = append(want[role.Kind], role.Rules...)
		}
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for kind, given := range map[string][]v1alpha1.StrategyDeploymentPermissions{"ClusterRole": strategy.ClusterPermissions, "Role": strategy.Permissions} {
		var got []rbacv1.PolicyRule
		for _, p := range given {
			if p.ServiceAccountName != "ticket-controller" {
				t.Errorf("given to %q", p.ServiceAccountName)
			}
			got = append(got, p.Rules...)
		}
		if !reflect.DeepEqual(got, want[kind]) || len(got) == 0 {
			t.Errorf("as %s it is given %v, want %v", kind, got, want[kind])
		}
	}
}

func TestEveryFieldOfATicketIsDescribed(t *testing.T) {
	var csv v1alpha1.ClusterServiceVersion
	read(t, filepath.Join(newest(t), "manifests", csvFile), &csv)
	owned := csv.Spec.CustomResourceDefinitions.Owned[0]
	for name, paths := range map[string][]string{"spec": specPaths(owned), "status": statusPaths(owned)} {
		if !slices.Equal(paths, fields(t, name)) {
			t.Errorf("%s: described are %q, there are %q", name, paths, fields(t, name))
		}
	}
	var examples []map[string]any
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil || len(examples) != 3 {
		t.Errorf("examples: %v, %v", examples, err)
	}
}

func specPaths(d v1alpha1.CRDDescription) (all []string) {
	for _, s := range d.SpecDescriptors {
		if s.Description != "" && s.DisplayName != "" {
			all = append(all, s.Path)
		}
	}
	return all
}

func statusPaths(d v1alpha1.CRDDescription) (all []string) {
	for _, s := range d.StatusDescriptors {
		if s.Description != "" && s.DisplayName != "" {
			all = append(all, s.Path)
		}
	}
	return all
}

// fields are those of the Ticket's spec or status, by its definition.
func fields(t *testing.T, of string) []string {
	t.Helper()
	type schema struct {
		Properties map[string]struct {
			Properties map[string]any
		}
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	read(t, filepath.Join(deploy, "crd.yaml"), &definition)
	return slices.Sorted(maps.Keys(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[of].Properties))
}
