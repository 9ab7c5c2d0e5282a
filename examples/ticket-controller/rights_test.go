package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

func TestTheRightsWantedAreThoseOfItsSettings(t *testing.T) {
	t.Parallel()
	lease := &tether.Lease{Namespace: "ops", Name: "ticket-controller"}
	for name, test := range map[string]struct {
		settings settings
		lease    *tether.Lease
		want     string
	}{
		"all namespaces": {
			settings{},
			lease,
			"get tickets.flights.com in all namespaces, list tickets.flights.com in all namespaces, watch tickets.flights.com in all namespaces, " +
				"patch tickets.flights.com in all namespaces, patch tickets/status.flights.com in all namespaces, " +
				"create events.events.k8s.io in all namespaces, patch events.events.k8s.io in all namespaces, get namespaces kube-system, " +
				"create leases.coordination.k8s.io in namespace ops, get leases.coordination.k8s.io ticket-controller in namespace ops, " +
				"update leases.coordination.k8s.io ticket-controller in namespace ops",
		},
		"one namespace, with an id, alone": {
			settings{namespaces: []string{"a"}, clusterID: "c"},
			nil,
			"get tickets.flights.com in namespace a, list tickets.flights.com in namespace a, watch tickets.flights.com in namespace a, " +
				"patch tickets.flights.com in namespace a, patch tickets/status.flights.com in namespace a, " +
				"create events.events.k8s.io in namespace a, patch events.events.k8s.io in namespace a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, r := range rightsWanted(test.settings, test.lease) {
				got = append(got, r.String())
			}
			if s := strings.Join(got, ", "); s != test.want {
				t.Errorf("got  %s\nwant %s", s, test.want)
			}
		})
	}
}

func TestAMissingRightIsToldInReadinessAndLogUntilItIsThere(t *testing.T) {
	t.Parallel()
	var log []string
	r := &rights{
		ready: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("[+]lease ok\n"))
		}),
		log: funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{}),
	}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	r.found([]string{"patch tickets"})
	r.found([]string{"patch tickets"})
	if code, body := ask("/readyz?verbose"); code != http.StatusServiceUnavailable || body != "[-]rights failed: missing: patch tickets\n[+]lease ok\n" {
		t.Errorf("%d, %q", code, body)
	}
	if code, body := ask("/livez"); code != http.StatusOK || body != "[+]lease ok\n" {
		t.Errorf("%d, %q", code, body)
	}
	r.found(nil)
	if code, body := ask("/readyz"); code != http.StatusOK || body != "[+]lease ok\n" {
		t.Errorf("%d, %q", code, body)
	}
	if len(log) != 2 || !strings.Contains(log[0], `"missing"="patch tickets"`) {
		t.Errorf("logged were %q", log)
	}
}

func TestTheRightsInManyNamespacesAreLookedAtWithoutWaiting(t *testing.T) {
	t.Parallel()
	faketest.Run(t, faketest.Options{}, func(_ context.Context, t *testing.T, w *faketest.World) {
		var s settings
		for i := range 60 {
			s.namespaces = append(s.namespaces, fmt.Sprint("flights", i))
		}
		wanted := rightsWanted(s, nil)
		w.Start(func(ctx context.Context, cluster *rest.Config, _ *http.Client) error {
			cluster = rest.CopyConfig(cluster)
			cluster.QPS = 0 // client-go's default, as a kubeconfig has it
			(&rights{log: logr.Discard()}).watch(ctx, cluster, wanted)
			return nil
		})
		time.Sleep(time.Second)
		asked := 0
		for _, e := range w.API.Journal() {
			if e.Resource == "selfsubjectaccessreviews" {
				asked++
			}
		}
		if asked != len(wanted) {
			t.Errorf("%d of %d rights were asked for within a second", asked, len(wanted))
		}
	})
}

func TestAnAccountWithoutRightsLacksThemAll(t *testing.T) {
	t.Parallel()
	server := fake.NewAPIServer(fake.APIOptions{RBAC: true, Users: map[string]fake.APIUser{"secret": {Name: "nobody"}}})
	defer server.Close()
	wanted := rightsWanted(settings{}, nil)
	for name, test := range map[string]struct {
		config *rest.Config
		lacks  int
	}{"nobody": {server.ConfigFor("secret"), len(wanted)}, "anybody": {server.Config(), 0}} {
		transport, err := rest.HTTPClientFor(test.config)
		if err != nil {
			t.Fatal(err)
		}
		reviews, err := client.NewForConfigAndClient(test.config, transport)
		if err != nil {
			t.Fatal(err)
		}
		if missing, err := lacking(t.Context(), reviews.SelfSubjectAccessReviews(), wanted); err != nil || len(missing) != test.lacks {
			t.Errorf("%s lacks %q, %v", name, missing, err)
		}
		transport.CloseIdleConnections()
	}
}
