package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	suite "github.com/tetherkube/tether/internal/conformance"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

// token is what the user of a name is known by.
func token(user string) string { return user + "-has-this-token" }

func TestTheRealServerConforms(t *testing.T) {
	t.Parallel()
	var tokens strings.Builder
	for i, user := range []string{"alice", "bob", "carol"} {
		fmt.Fprintf(&tokens, "%s,%s,%d\n", token(user), user, i)
	}
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, []byte(tokens.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// The first time, the programs are built.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{APIServerArgs: []string{"--token-auth-file=" + file}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	suite.Run(t, suite.Server{
		Config: cluster.RESTConfig(),
		User: func(_ *testing.T, name string) *rest.Config {
			cfg := cluster.RESTConfig()
			cfg.CertData, cfg.KeyData, cfg.BearerToken = nil, nil, token(name)
			return cfg
		},
	})
}
