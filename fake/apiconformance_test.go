package fake_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/conformance"
)

func TestTheFakeBehavesAsTheRealServer(t *testing.T) {
	t.Parallel()
	users := map[string]fake.APIUser{"alice-token": {Name: "alice"}, "bob-token": {Name: "bob"}, "carol-token": {Name: "carol"}}
	s := fake.NewAPIServer(fake.APIOptions{Seed: 1, Users: users, RBAC: true, TLS: true})
	t.Cleanup(s.Close)
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Server{
		Config:      s.Config(),
		User:        func(_ *testing.T, name string) *rest.Config { return s.ConfigFor(name + "-token") },
		Controllers: true,
	})
}
