package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tetherkube/tether/fake/internal/serving"
	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/endpoint"
	"github.com/tetherkube/tether/internal/apiserver/rbac"
	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// APIServer is a Kubernetes API whose objects live in memory, or with a [State] on
// the disk as well. It is an
// http.Handler; to be reached it is started with Start, or by Config over memory.
// It is safe for concurrent use.
type APIServer struct {
	options  APIOptions
	admin    string // the token that Config has
	store    *storage.Store
	registry *registry.Registry
	handler  *endpoint.Handler
	journal  *journal[APIEntry]
	faults   *apiFaults
	identity *identity // nil without TLS
	serving  *serving.Serving

	mu    sync.Mutex // guards what follows
	url   string     // of the last Start
	ahead time.Duration
}

// NewAPIServer makes a server and starts nothing. It panics where
// [APIOptions.Validate] says that the options are wrong, and where one of the
// objects in them is refused: that is a mistake in the test.
func NewAPIServer(o APIOptions) *APIServer {
	err := o.Validate()
	if err == nil {
		var s *APIServer
		if s, err = newAPIServer(o, nil); err == nil {
			return s
		}
	}
	panic(fmt.Sprintf("fake: NewAPIServer: %v", err))
}

// newAPIServer makes a server of valid options, with what was kept of another one;
// kept is nil for a new one.
func newAPIServer(o APIOptions, kept *registry.Kept) (*APIServer, error) {
	o = o.withDefaults()
	sum := sha256.Sum256(fmt.Appendf(nil, "admin %d", o.Seed))
	s := &APIServer{
		options: o,
		admin:   "admin-" + hex.EncodeToString(sum[:8]),
		store:   storage.New(o.HistoryLimit),
		journal: newJournal("API server", o.JournalLimit, o.Log),
		faults:  &apiFaults{seed: o.Seed, salt: "api fault"},
		ahead:   o.ClockAhead,
	}
	carry := serving.Options{Idle: idle}
	if o.TLS {
		s.identity = newIdentity()
		carry.TLS = s.identity.server
	}
	s.serving = serving.New(s, carry)
	resources, rights := catalog.New(), rbac.New(s.store)
	ro := registry.Options{
		Store: s.store, Catalog: resources, Now: s.now, Seed: o.Seed, Admit: s.admissions(), NoControllers: o.NoControllers,
		Changed: rights.Changed,
	}
	if kept == nil {
		s.registry = registry.New(ro)
	} else {
		var err error
		if s.registry, err = registry.Restore(ro, *kept); err != nil {
			return nil, err
		}
	}
	s.handler = &endpoint.Handler{
		Store: s.store, Catalog: resources, Registry: s.registry, Now: s.now, Authenticate: s.authenticate,
		Intercept: s.intercept, Tap: s.tap, Stir: s.faults.stir, Closing: s.serving.Closing(),
		BookmarkEvery: o.BookmarkInterval, WatchFor: 30 * time.Minute,
	}
	if o.RBAC {
		s.handler.Authorize = rights
	}
	if kept == nil {
		if err := s.plant(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// now is the server's clock.
func (s *APIServer) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// SetClockAhead sets how far the server's clock, which creation and deletion
// timestamps come from, is ahead of its clients'; less than 0 is behind.
func (s *APIServer) SetClockAhead(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = d
}

// Version is the resourceVersion of the last change.
func (s *APIServer) Version() uint64 { return s.store.Version() }

// Start listens on a TCP address, as 127.0.0.1:0, and serves until Close. It may
// be called for more than one address.
func (s *APIServer) Start(address string) error {
	got, err := s.serving.Listen(address)
	if err != nil {
		return fmt.Errorf("fake: API server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url = s.scheme() + "://" + got
	return nil
}

func (s *APIServer) scheme() string {
	if s.options.TLS {
		return "https"
	}
	return "http"
}

// memoryHost is the name by which the server is reached over memory.
const memoryHost = "kubernetes.memory"

// URL is the base URL: of the last Start, or before any one that only Config and
// Transport of this server reach.
func (s *APIServer) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url == "" {
		return s.scheme() + "://" + memoryHost
	}
	return s.url
}

// Transport is a new transport that reaches the server over memory, whatever the
// URL's host. The server closes it. It has no token.
func (s *APIServer) Transport() *http.Transport {
	t := s.serving.Transport()
	if s.identity != nil {
		t.TLSClientConfig = s.identity.client.Clone()
	}
	return t
}

// Config is a configuration for client-go whose user may do everything. It reaches
// the server over TCP once that is started, and over memory before.
func (s *APIServer) Config() *rest.Config { return s.config(s.admin) }

// ConfigFor is Config for the user with a token. It panics where APIOptions.Users
// has no such token: that is a mistake in the test.
func (s *APIServer) ConfigFor(token string) *rest.Config {
	if _, ok := s.options.Users[token]; !ok {
		panic("fake: ConfigFor: there is no user with that token in APIOptions.Users")
	}
	return s.config(token)
}

func (s *APIServer) config(token string) *rest.Config {
	c := &rest.Config{
		Host: s.URL(), BearerToken: token,
		// No client-side limit: it would only slow tests down.
		QPS: -1,
		// A proxy does not know the host, and without one client-go would keep the
		// transport for ever.
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	if s.identity != nil {
		c.CAData = s.identity.authority
	}
	if strings.HasSuffix(c.Host, "//"+memoryHost) {
		c.Dial = s.serving.Dialer()
	}
	return c
}

// Kubeconfig is a kubeconfig file for the user of Config. It wants a server that
// is started.
func (s *APIServer) Kubeconfig() ([]byte, error) {
	s.mu.Lock()
	address := s.url
	s.mu.Unlock()
	if address == "" {
		return nil, errors.New("fake: Kubeconfig: the server is not started: another process reaches it over TCP alone")
	}
	const name = "fake"
	cluster := &clientcmdapi.Cluster{Server: address}
	if s.identity != nil {
		cluster.CertificateAuthorityData = s.identity.authority
	}
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: s.admin}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

// Close cuts what runs, and returns when nothing of the server runs any more. It
// may be called more than once, and without a Start. The journal can be read
// afterwards.
func (s *APIServer) Close() { s.serving.Close() }

// ServeHTTP serves one request.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.serving.Enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.serving.Leave()
	s.handler.ServeHTTP(w, r)
}
