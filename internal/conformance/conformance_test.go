package conformance_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/conformance"
)

func TestTheFakeConforms(t *testing.T) {
	t.Parallel()
	s := fake.NewAPIServer(fake.APIOptions{
		RBAC: true,
		Users: map[string]fake.APIUser{
			"admin-token": {Name: "admin", Groups: []string{"system:masters"}},
			"alice-token": {Name: "alice"}, "bob-token": {Name: "bob"}, "carol-token": {Name: "carol"},
		},
	})
	t.Cleanup(s.Close)
	conformance.Run(t, conformance.Server{
		Config:      s.ConfigFor("admin-token"),
		User:        func(_ *testing.T, name string) *rest.Config { return s.ConfigFor(name + "-token") },
		Controllers: true,
	})
}
