package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
)

// Server is an API server that the suite runs against.
type Server struct {
	// Config may do anything. It is not changed.
	Config *rest.Config
	// User returns the configuration of the user with the name, who is known by a
	// token and in no group but system:authenticated. It is given "alice", "bob" and
	// "carol".
	User func(t *testing.T, name string) *rest.Config
	// Controllers says that what a controller manager does is done: garbage is
	// collected, and a namespace that is deleted is emptied. Without it, the suite
	// leaves out what is about that.
	Controllers bool
}

// patience is how long a test waits for what must come.
const patience = time.Minute

// behaviour is one subtest.
type behaviour struct {
	sentence string
	test     func(t *testing.T, e *env)
}

// groups are all that the suite tests of a server, by what it is about.
func (s Server) groups() map[string][]behaviour {
	all := map[string][]behaviour{
		"objects": objects, "status": status, "conflicts": conflicts, "deletion": deletion, "patches": patches,
		"apply": apply, "validation": validation, "lists": lists, "selectors": selectors, "watches": watches,
		"tables": tables, "errors": refusals, "discovery": discovery, "definitions": definitions, "namespaces": namespaces,
		"rights": rights, "built-in": builtIn, "server": server, "edges": edges, "scale": scale,
	}
	if s.Controllers {
		all["controllers"] = controllers
	}
	return all
}

// Run runs the suite. It makes definitions in an API group of its own, and takes
// them away when all tests have ended.
func Run(t *testing.T, s Server) {
	t.Helper()
	root := newEnv(t, s)
	t.Cleanup(func() { root.cleanUp(t) })
	root.define(t, root.widgets())
	root.define(t, root.gadgets())
	root.define(t, root.racks())
	t.Run("suite", func(t *testing.T) { // returns when all that is parallel in it has ended
		for name, group := range s.groups() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, b := range group {
					t.Run(b.sentence, func(t *testing.T) {
						t.Parallel()
						b.test(t, root.inNamespace(t))
					})
				}
			})
		}
	})
}

// env is what a test has for itself: a namespace on the server.
type env struct {
	server Server
	client *http.Client
	base   *url.URL
	group  string // of the suite's definitions
	ns     string
	serial *atomic.Int64
	run    string // what names of cluster-scoped objects begin with
}

func newEnv(t *testing.T, s Server) *env {
	t.Helper()
	client, base := connect(t, s.Config)
	run := "c" + rand.String(5)
	return &env{server: s, client: client, base: base, run: run, group: run + ".example.com", serial: &atomic.Int64{}}
}

func connect(t *testing.T, cfg *rest.Config) (*http.Client, *url.URL) {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion = &schema.GroupVersion{}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client, base
}

// unique is a name that nothing else has.
func (e *env) unique() string { return fmt.Sprintf("%s-%d", e.run, e.serial.Add(1)) }

// inNamespace makes a namespace for a test.
func (e *env) inNamespace(t *testing.T) *env {
	t.Helper()
	own := *e
	own.ns = own.unique()
	own.must(t, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"`+own.ns+`"}}`)
	return &own
}

// as is the same for a user.
func (e *env) as(t *testing.T, user string) *env {
	t.Helper()
	own := *e
	own.client, own.base = connect(t, e.server.User(t, user))
	return &own
}

// cleanUp takes the definitions away, and with them what was made of them.
func (e *env) cleanUp(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, plural := range []string{"widgets", "gadgets", "racks"} {
		if _, err := e.ask(ctx, request{method: http.MethodDelete, path: definitionsPath + "/" + plural + "." + e.group}); err != nil {
			t.Error(err)
		}
	}
}

// expand puts in the names that differ from one run to the next.
func (e *env) expand(text string) string {
	return strings.NewReplacer("$GROUP", e.group, "$NS", e.ns, "$RUN", e.run).Replace(text)
}
