package operator

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is one as the Deployment makes it.
func pod(t *testing.T) *corev1.Pod {
	t.Helper()
	template := find[appsv1.Deployment](t, unit(t), "Deployment", "ticket-controller").Spec.Template
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.Name = "one"
	return p
}

// admit asks the API server, with all of its admission, and stores nothing.
func admit(t *testing.T, p *corev1.Pod) error {
	t.Helper()
	_, err := core.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

func TestThePodsKeepToTheRestrictedStandardAndALooserOneIsRefused(t *testing.T) {
	t.Parallel()
	if err := admit(t, pod(t)); err != nil {
		t.Fatal(err)
	}
	unconfined := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	for name, test := range map[string]struct {
		loosen func(*corev1.PodSpec, *corev1.SecurityContext)
		words  string
	}{
		"may be root":           {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.SecurityContext.RunAsNonRoot = nil }, "runAsNonRoot != true"},
		"is root":               {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.SecurityContext.RunAsUser = new(int64(0)) }, "runAsUser=0"},
		"container may be root": {func(_ *corev1.PodSpec, c *corev1.SecurityContext) { c.RunAsNonRoot = new(false) }, "runAsNonRoot != true"},
		"no seccomp profile":    {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.SecurityContext.SeccompProfile = nil }, "seccompProfile"},
		"seccomp unconfined":    {func(_ *corev1.PodSpec, c *corev1.SecurityContext) { c.SeccompProfile = unconfined }, "seccompProfile"},
		"may gain privileges":   {func(_ *corev1.PodSpec, c *corev1.SecurityContext) { c.AllowPrivilegeEscalation = nil }, "allowPrivilegeEscalation != false"},
		"keeps capabilities":    {func(_ *corev1.PodSpec, c *corev1.SecurityContext) { c.Capabilities = nil }, "unrestricted capabilities"},
		"has a capability more": {func(_ *corev1.PodSpec, c *corev1.SecurityContext) {
			c.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		}, "unrestricted capabilities"},
		"privileged": {func(_ *corev1.PodSpec, c *corev1.SecurityContext) {
			c.Privileged, c.AllowPrivilegeEscalation = new(true), nil
		}, "privileged"},
		"in the node's network":         {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.HostNetwork = true }, "hostNetwork=true"},
		"among the node's processes":    {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.HostPID = true }, "hostPID=true"},
		"with the node's shared memory": {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.HostIPC = true }, "hostIPC=true"},
		"at a port of the node":         {func(s *corev1.PodSpec, _ *corev1.SecurityContext) { s.Containers[0].Ports[0].HostPort = 8081 }, "hostPort"},
		"with the node's files": {func(s *corev1.PodSpec, _ *corev1.SecurityContext) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}
		}, "hostPath"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pod(t)
			test.loosen(&p.Spec, p.Spec.Containers[0].SecurityContext)
			err := admit(t, p)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The pod has the one token of its volume, which lives for ten minutes, and the API
// server adds none.
func TestThePodHasOneTokenOfShortLife(t *testing.T) {
	t.Parallel()
	made, err := core.CoreV1().Pods(namespace).Create(t.Context(), pod(t), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	var lives []int64
	for _, v := range made.Spec.Volumes {
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.ServiceAccountToken != nil {
					lives = append(lives, *s.ServiceAccountToken.ExpirationSeconds)
				}
			}
		}
	}
	if len(lives) != 1 || lives[0] != 600 {
		t.Errorf("tokens live for %v seconds", lives)
	}
	if *made.Spec.Priority != 100_000 {
		t.Errorf("its priority is %d", *made.Spec.Priority)
	}
}

func TestEveryInstallationIsAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	if _, err := kubectl.Run(t.Context(), "", "create", "namespace", "flights"); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{".", "base", "overlays/single-namespace", "overlays/prometheus"} {
		if _, err := kubectl.Run(t.Context(), "", "apply", "--server-side", "--dry-run=server", "--validate=strict", "-k", filepath.Join(deploy, folder)); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if _, err := kubectl.Run(t.Context(), "", "apply", "--dry-run=server", "--validate=strict", "-f", filepath.Join(deploy, "samples")); err != nil {
		t.Error(err)
	}
}

func TestTheInstallationInOneNamespaceHasNothingOfTheClusters(t *testing.T) {
	t.Parallel()
	made, err := kubectl.Run(t.Context(), "", "kustomize", filepath.Join(deploy, "overlays", "single-namespace"))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range documents(t, made) {
		if obj.GetNamespace() != "flights" {
			t.Errorf("%s %s is in namespace %q", obj.GetKind(), obj.GetName(), obj.GetNamespace())
		}
	}
	if strings.Contains(made, "namespace: ticket-controller") {
		t.Error("something there means namespace ticket-controller")
	}
}

func TestInstallYAMLIsWhatKubectlMakes(t *testing.T) {
	t.Parallel()
	made, err := kubectl.Run(t.Context(), "", "kustomize", deploy)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documents(t, made), unit(t)); diff != "" {
		t.Errorf("(-kubectl +install.yaml):\n%s", diff)
	}
}

// Whoever adds a role to view or edit by its labels is kube-controller-manager, which
// does not run here.
func TestWhoMayEditANamespaceMayEditItsTicketsAndWhoMayViewItSeesThem(t *testing.T) {
	t.Parallel()
	ns := tickets(t)
	for role, label := range map[string]string{"ticket-viewer": "view", "ticket-editor": "edit"} {
		added, err := kubectl.Run(t.Context(), "", "get", "clusterroles", "-l", "rbac.authorization.k8s.io/aggregate-to-"+label+"=true", "-o", "name")
		if err != nil || !strings.Contains(added, role) {
			t.Errorf("to %s is added %s, %v", label, added, err)
		}
		if _, err := kubectl.Run(t.Context(), "", "create", "rolebinding", role, "-n", ns, "--clusterrole="+role, "--user="+role); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		user, verb string
		may        bool
	}{
		{"ticket-viewer", "list", true},
		{"ticket-viewer", "create", false},
		{"ticket-viewer", "delete", false},
		{"ticket-editor", "watch", true},
		{"ticket-editor", "create", true},
		{"ticket-editor", "deletecollection", true},
	} {
		out, err := kubectl.Run(t.Context(), "", "auth", "can-i", test.verb, "tickets.flights.com", "-n", ns, "--as="+test.user)
		if may := strings.TrimSpace(out) == "yes"; may != test.may {
			t.Errorf("%s may %s: %v, %v", test.user, test.verb, may, err)
		}
	}
}
