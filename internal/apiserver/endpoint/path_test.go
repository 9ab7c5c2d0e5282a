package endpoint

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/internal/apiserver/storage"
)

func TestAPathIsReadAsTheRealServerDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, url string
		want        Target
	}{
		{"GET", "/version", Target{Verb: "get"}},
		{"GET", "/api/v1", Target{Verb: "get"}},
		{"GET", "/apis/apps/v1", Target{Verb: "get"}},
		{"GET", "/api/v1/pods", Target{Verb: "list", IsResource: true, Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=1", Target{Verb: "watch", IsResource: true, Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/watch/pods", Target{Verb: "watch", IsResource: true, Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/namespaces/n/pods/p/log", Target{Verb: "get", IsResource: true, Version: "v1", Resource: "pods", Namespace: "n", Name: "p", Subresource: "log"}},
		{"GET", "/api/v1/namespaces/n", Target{Verb: "get", IsResource: true, Version: "v1", Resource: "namespaces", Namespace: "n", Name: "n"}},
		{"PUT", "/api/v1/namespaces/n/finalize", Target{Verb: "update", IsResource: true, Version: "v1", Resource: "namespaces", Namespace: "n", Name: "n", Subresource: "finalize"}},
		{"DELETE", "/apis/g/v2/namespaces/n/rs", Target{Verb: "deletecollection", IsResource: true, Group: "g", Version: "v2", Resource: "rs", Namespace: "n"}},
		{"PATCH", "/apis/g/v2/rs/x/status", Target{Verb: "patch", IsResource: true, Group: "g", Version: "v2", Resource: "rs", Name: "x", Subresource: "status"}},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Dp", Target{Verb: "list", IsResource: true, Version: "v1", Resource: "pods", Name: "p"}},
	} {
		got := parse(httptest.NewRequestWithContext(t.Context(), c.method, c.url, nil))
		got.Path = ""
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.url, diff)
		}
	}
}

func TestTheFirstClauseThatCanBeServedIs(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]accepted{
		"":                 {},
		"*/*":              {},
		"application/json": {},
		protobuf + ", */*": {},
		"application/yaml": {yaml: true},
		"application/json;as=Odd;g=meta.k8s.io;v=v1, application/yaml":                                                                                  {yaml: true},
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json":                               {shape: tabular},
		protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json": {shape: metadata},
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList":                                                                          {discovery: true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("Accept", header)
		if got, err := negotiate(r); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", header, got, err, want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.Header.Set("Accept", protobuf)
	if _, err := negotiate(r); err == nil || StatusOf(err).Code != 406 {
		t.Errorf("protobuf alone: %v", err)
	}
}

func TestAContinueTokenLeadsBackToItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key        storage.Key
		namespace  string
		namespaced bool
	}{
		{storage.Key{Name: "a"}, "", false},
		{storage.Key{Namespace: "n", Name: "a"}, "n", true},
		{storage.Key{Namespace: "n", Name: "a"}, "", true},
	} {
		key, at, err := decodeContinue(encodeContinue(c.key, c.namespace, 7), c.namespace, c.namespaced)
		if err != nil || at != 7 || key != c.key {
			t.Errorf("%+v: %+v at %d, %v", c, key, at, err)
		}
	}
	for _, token := range []string{"", "x", "!", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi94In0"} {
		if _, _, err := decodeContinue(token, "", true); err == nil {
			t.Errorf("%q is a token", token)
		}
	}
}
