package fake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/fake"
)

// FuzzRequests sends anything at all. A server that panics, or that answers an
// error which is none, has failed.
func FuzzRequests(f *testing.F) {
	const boxesPath = "/apis/example.com/v1/namespaces/default/boxes"
	for _, seed := range [][5]string{
		{"POST", boxesPath, "application/json", "", `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"generateName":"a"}}`},
		{"PUT", boxesPath + "/a", "application/yaml", "", "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a, resourceVersion: '1'}\n"},
		{"PATCH", boxesPath + "/a", "application/json-patch+json", "", `[{"op":"remove","path":"/metadata"}]`},
		{"PATCH", boxesPath + "/a", "application/merge-patch+json", "", `{"metadata":{"ownerReferences":[{}],"finalizers":null},"spec":1}`},
		{"PATCH", boxesPath + "/a?fieldManager=m&force=true", "application/apply-patch+yaml", "", "apiVersion: example.com/v1\nkind: Box\nspec: {size: 3}\n"},
		{"PATCH", "/api/v1/namespaces/default/pods/a", "application/strategic-merge-patch+json", "", `{"spec":{"containers":[{"name":"x","$patch":"delete"}]}}`},
		{"PATCH", "/api/v1/namespaces/default", "application/merge-patch+json", "", `{"spec":{"finalizers":[]},"metadata":{"deletionTimestamp":"x"}}`},
		{"DELETE", boxesPath + "/a?propagationPolicy=Foreground", "application/json", "", `{"preconditions":{"uid":"x"}}`},
		{"GET", boxesPath + "?limit=1&continue=e30&resourceVersion=1&resourceVersionMatch=Exact", "", "application/json;as=Table;g=meta.k8s.io;v=v1", ""},
		{"GET", boxesPath + "?fieldSelector=spec.size%3D1&labelSelector=a+in+(b)", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ""},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x.y"},"spec":{"names":1,"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":1}}}]}}`},
		{"POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "application/json", "", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"b"},"subjects":[{}]}`},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", "", `{"spec":{"resourceAttributes":{"verb":"get"}}}`},
		{"PUT", "/api/v1/namespaces/default/finalize", "application/json", "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"},"spec":3}`},
		{"GET", "/openapi/v3/apis/example.com/v1?hash=x", "", "", ""},
		{"GET", "/apis", "", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, method, path, contentType, accept, body string) {
		u, err := url.Parse(path)
		if err != nil || !strings.HasPrefix(u.Path, "/") || strings.Contains(path, "watch") {
			return
		}
		request, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, strings.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Accept", accept)
		s := fake.NewAPIServer(fake.APIOptions{Manifests: []string{boxes, "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\n"}})
		defer s.Close()
		w := httptest.NewRecorder()
		defer func() {
			if r := recover(); r != nil && !errors.Is(asError(r), http.ErrAbortHandler) {
				panic(r)
			}
		}()
		s.ServeHTTP(w, request)
		if w.Code < 400 || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			return
		}
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Kind != "Status" || int(status.Code) != w.Code {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func asError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return fmt.Errorf("%v", r)
}
