package fake_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/tetherkube/tether/fake"
)

// reply is an answer as it stood on the wire.
type reply struct {
	code, proto int
	kind        string // of body
	body        string
}

func (a api) wire(t *testing.T, transport *http.Transport, method, path, body string, header map[string]string) reply {
	t.Helper()
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return reply{response.StatusCode, response.ProtoMajor, response.Header.Get("Content-Type"), string(must[[]byte](t)(io.ReadAll(response.Body)))}
}

func (a api) wantCode(t *testing.T, code int, method, path, body string) {
	t.Helper()
	if got := a.wire(t, a.Transport(), method, path, body, nil); got.code != code {
		t.Errorf("%s %s: %d %s, want %d", method, path, got.code, got.body, code)
	}
}

// differences are those from the real server that the package's documentation lists,
// each with what is so here alone.
var differences = map[string]func(t *testing.T){
	"CEL is not evaluated": func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{Manifests: []string{strings.NewReplacer("boxes", "crates", "Box", "Crate", "type: object\n        properties",
			"type: object\n        x-kubernetes-validations: [{rule: \"self.spec.size > 5\"}]\n        properties").Replace(boxes)}})
		a.wantCode(t, http.StatusCreated, http.MethodPost, "/apis/example.com/v1/namespaces/default/crates",
			`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":"a"},"spec":{"size":1}}`)
		a.wantCode(t, http.StatusNotFound, http.MethodGet, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "")
	},
	"there are no webhooks": func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.wantCode(t, http.StatusNotFound, http.MethodGet, "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "")
		got := a.wire(t, a.Transport(), http.MethodPatch, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.example.com",
			`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://example.com"}}}}}`,
			map[string]string{"Content-Type": "application/merge-patch+json"})
		if got.code != http.StatusUnprocessableEntity || !strings.Contains(got.body, "spec.conversion.strategy") {
			t.Errorf("a conversion: %d %s", got.code, got.body)
		}
	},
	"built-in types have no scale, and pods no token": func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{Manifests: []string{"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}"}})
		a.wantCode(t, http.StatusNotFound, http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/a/scale", "")
		a.wantCode(t, http.StatusNotFound, http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/default/token", `{}`)
	},
	"nothing runs a pod, and a namespace has no account": func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := apiSetup(t, fake.APIOptions{Manifests: []string{
				"{apiVersion: v1, kind: Namespace, metadata: {name: own}}",
				"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: own}, spec: {containers: [{name: c, image: i}]}}",
			}})
			time.Sleep(time.Hour)
			if p := must[*corev1.Pod](t)(a.kube.CoreV1().Pods("own").Get(t.Context(), "p", metav1.GetOptions{})); p.Status.Phase != corev1.PodPending {
				t.Errorf("the pod is %s", p.Status.Phase)
			}
			if all := must[*corev1.ServiceAccountList](t)(a.kube.CoreV1().ServiceAccounts("own").List(t.Context(), metav1.ListOptions{})); len(all.Items) != 0 {
				t.Errorf("accounts: %v", all.Items)
			}
		})
	},
	"a version to come is refused at once": func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := apiSetup(t, fake.APIOptions{})
			begin := time.Now()
			got := a.wire(t, a.Transport(), http.MethodGet, "/api/v1/configmaps?resourceVersion=999999", "", nil)
			if took := time.Since(begin); got.code != http.StatusGatewayTimeout || !strings.Contains(got.body, "ResourceVersionTooLarge") || took != 0 {
				t.Errorf("after %v: %d %s", took, got.code, got.body)
			}
		})
	},
	"answers are JSON over HTTP/1.1": func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{TLS: true})
		transport := a.Transport()
		transport.ForceAttemptHTTP2 = true
		transport.TLSClientConfig.NextProtos = []string{"h2", "http/1.1"}
		got := a.wire(t, transport, http.MethodGet, "/api/v1/namespaces", "", map[string]string{"Accept": "application/vnd.kubernetes.protobuf,application/json"})
		if got.proto != 1 || got.kind != "application/json" {
			t.Errorf("HTTP/%d, %s", got.proto, got.kind)
		}
	},
	"Events stay": func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := apiSetup(t, fake.APIOptions{Manifests: []string{"{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, involvedObject: {namespace: default}}"}})
			time.Sleep(30 * 24 * time.Hour)
			must[*corev1.Event](t)(a.kube.CoreV1().Events("default").Get(t.Context(), "e", metav1.GetOptions{}))
		})
	},
	"users give rights that they do not have": func(t *testing.T) {
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}}
		a := apiSetup(t, fake.APIOptions{
			RBAC: true, Users: map[string]fake.APIUser{"token": {Name: "alice"}},
			Objects: []runtime.Object{
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "giver"}, Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "clusterrolebindings"}, Verbs: []string{"create"}},
				}},
				&rbacv1.ClusterRoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: "giver"}, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "giver"},
				},
			},
		})
		alice := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(a.ConfigFor("token"))).RbacV1()
		must[*rbacv1.ClusterRole](t)(alice.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "more"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
		}, metav1.CreateOptions{}))
		must[*rbacv1.ClusterRoleBinding](t)(alice.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "more"},
			Subjects:   subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}, metav1.CreateOptions{}))
	},
	"roles are not aggregated": func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := apiSetup(t, fake.APIOptions{Manifests: []string{
				"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {l: a}}]}}",
				"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: one, labels: {l: a}}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}",
			}})
			time.Sleep(time.Hour)
			if r := must[*rbacv1.ClusterRole](t)(a.kube.RbacV1().ClusterRoles().Get(t.Context(), "all", metav1.GetOptions{})); len(r.Rules) != 0 {
				t.Errorf("%v", r.Rules)
			}
		})
	},
	"four of the default roles are there": func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		var names []string
		for _, r := range must[*rbacv1.ClusterRoleList](t)(a.kube.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})).Items {
			names = append(names, r.Name)
		}
		if diff := cmp.Diff([]string{"cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer"}, names); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	},
	"/openapi/v2 is not served": func(t *testing.T) {
		a := apiSetup(t, fake.APIOptions{})
		a.wantCode(t, http.StatusNotFound, http.MethodGet, "/openapi/v2", "")
		a.wantCode(t, http.StatusOK, http.MethodGet, "/openapi/v3", "")
	},
}

// Where one of these fails, the documentation is to change with it.
func TestTheServerDiffersFromTheRealOneInWhatIsSaid(t *testing.T) {
	t.Parallel()
	for difference, test := range differences {
		t.Run(difference, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
