package operator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// bundle is what the bundle of the version in install.yaml makes OLM do: the objects that it makes as
// they are, the Deployment of the ClusterServiceVersion, and that itself.
func bundle(t *testing.T) (made []*unstructured.Unstructured, csv *unstructured.Unstructured) {
	t.Helper()
	image := find[appsv1.Deployment](t, unit(t), "Deployment", "ticket-controller").Spec.Template.Spec.Containers[0].Image
	_, version, _ := strings.Cut(image, ":")
	files, err := filepath.Glob(filepath.Join(deploy, "olm", "bundles", version, "manifests", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, documents(t, string(raw))...)
	}
	i := slices.IndexFunc(made, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ClusterServiceVersion" })
	csv = made[i]
	made = slices.Delete(made, i, i+1)
	deployments, _, err := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "deployments")
	if err != nil || len(deployments) != 1 {
		t.Fatalf("deployments: %v, %v", deployments, err)
	}
	d := deployments[0].(map[string]any)
	return append(made, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": d["name"], "labels": d["label"]}, "spec": d["spec"],
	}}), csv
}

func TestWhatOLMMakesOfTheBundleIsAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	made, csv := bundle(t)
	accepted := func(what, text string) {
		t.Helper()
		if _, err := kubectl.Run(t.Context(), text, "apply", "--namespace", namespace, "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	kinds := map[string]int{}
	for _, obj := range made {
		raw, err := yaml.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		kinds[obj.GetKind()]++
		accepted(obj.GetKind()+" "+obj.GetName(), string(raw))
	}
	for kind, n := range map[string]int{"CustomResourceDefinition": 1, "Deployment": 1, "PodDisruptionBudget": 1, "PriorityClass": 1, "ClusterRole": 2} {
		if kinds[kind] != n {
			t.Errorf("there are %d of kind %s, want %d", kinds[kind], kind, n)
		}
	}
	accepted("the examples", `{"apiVersion":"v1","kind":"List","items":`+csv.GetAnnotations()["alm-examples"]+`}`)
}

// What is watched is what OLM writes to the pod, and the rest is as it is without OLM.
func TestTheBundlesPodIsInstallYAMLsWithTheNamespacesOfOLM(t *testing.T) {
	t.Parallel()
	made, _ := bundle(t)
	type deployment struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	of := func(all []*unstructured.Unstructured) (d deployment) {
		raw, err := yaml.Marshal(all[slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })].Object)
		if err == nil {
			err = yaml.Unmarshal(raw, &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	got, want := of(made), of(unit(t))
	c := &got.Spec.Template.Spec.Containers[0]
	if len(c.Env) != 1 || c.Env[0].Name != "TICKET_CONTROLLER_NAMESPACE" || !strings.Contains(c.Env[0].ValueFrom.FieldRef.FieldPath, "olm.targetNamespaces") {
		t.Errorf("its environment is %+v", c.Env)
	}
	c.Env = nil
	a, errA := yaml.Marshal(got)
	b, errB := yaml.Marshal(want)
	if string(a) != string(b) || errA != nil || errB != nil {
		t.Errorf("the pod is\n%s\nwant\n%s", a, b)
	}
}
