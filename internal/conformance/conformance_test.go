package conformance_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/internal/conformance"
)

// options are those of a fake with the users that the suite knows.
func options() fake.APIOptions {
	return fake.APIOptions{
		RBAC: true,
		Users: map[string]fake.APIUser{
			"admin-token": {Name: "admin", Groups: []string{"system:masters"}},
			"alice-token": {Name: "alice"}, "bob-token": {Name: "bob"}, "carol-token": {Name: "carol"},
		},
	}
}

func conforms(t *testing.T, s *fake.APIServer, controllers bool) {
	t.Helper()
	t.Cleanup(s.Close)
	conformance.Run(t, conformance.Server{
		Config:      s.ConfigFor("admin-token"),
		User:        func(_ *testing.T, name string) *rest.Config { return s.ConfigFor(name + "-token") },
		Controllers: controllers,
	})
}

func TestTheFakeConforms(t *testing.T) {
	t.Parallel()
	conforms(t, fake.NewAPIServer(options()), true)
}

func TestTheFakeConformsWithoutControllersOverTLS(t *testing.T) {
	t.Parallel()
	o := options()
	o.NoControllers, o.TLS = true, true
	s := fake.NewAPIServer(o)
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	conforms(t, s, false)
}
