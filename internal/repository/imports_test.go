package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/tetherkube/tether"

// pkg is what `go list` tells about a package of the root's module.
type pkg struct {
	ImportPath   string
	Imports      []string // by code that is not a test
	TestImports  []string
	XTestImports []string
	Deps         []string // all that Imports lead to, one after another
}

// arrow is a dependency that must not be: however long the way, unless direct.
type arrow struct {
	from   string   // a package, or all packages below it where it ends in /...
	to     []string // packages, each with all below it
	but    []string // what is allowed of it nevertheless
	direct bool     // an import alone is meant, and not what it leads to
	why    string
}

// prometheus is where its client and all that belongs to it lives.
const prometheus = "github.com/prometheus"

var arrows = []arrow{
	{
		from: module,
		to:   []string{module + "/booking", module + "/fake", module + "/metrics", module + "/examples", prometheus},
		why:  "the library knows of no example, no fake and no metrics system",
	},
	{from: module + "/fake/...", to: []string{module + "."}, why: "a fake that used the library could not judge it"},
	{from: module + "/internal/apiserver/...", to: []string{module + ".", module + "/fake", module + "/booking"}, why: "what is below a fake knows neither it nor the library"},
	{
		from: module + "/booking/...", to: []string{module, "k8s.io", "sigs.k8s.io"}, but: []string{module + "/booking"},
		why: "the client of the booking API knows nothing of Kubernetes",
	},
	{from: module + "/metrics/...", to: []string{module + "/fake", module + "/booking"}, why: "metrics are for every controller"},
	{
		from: module + "/examples/ticket-controller/api/...", to: []string{module, "k8s.io/client-go"},
		but: []string{module + "/examples/ticket-controller/api"},
		why: "whoever reads and writes Tickets takes no controller with them",
	},
	{from: module + "/internal/queue/...", to: []string{"k8s.io", "sigs.k8s.io"}, why: "the queue has no Kubernetes types"},
	{
		from: module + "/internal/protocol/...", to: []string{"k8s.io", "sigs.k8s.io", "net/http"},
		why: "decisions are over plain values",
	},
	{
		from: module + "/internal/protocol/...", to: []string{"os", "log", "net", "context", "sync"}, direct: true,
		why: "decisions are pure: no I/O, no log, nothing that waits",
	},
}

// below says whether path is the package or lies below it. A package that ends
// in a full stop means itself alone.
func below(path, pkg string) bool {
	if alone, ok := strings.CutSuffix(pkg, "."); ok {
		return path == alone
	}
	return path == pkg || strings.HasPrefix(path, pkg+"/")
}

func belowAny(path string, pkgs []string) bool {
	return slices.ContainsFunc(pkgs, func(p string) bool { return below(path, p) })
}

// matches says whether the arrow begins at path.
func (a arrow) matches(path string) bool {
	if parent, ok := strings.CutSuffix(a.from, "/..."); ok {
		return below(path, parent)
	}
	return path == a.from
}

// forbidden finds every dependency that an arrow forbids.
func forbidden(pkgs []pkg, arrows []arrow) (wrong []string) {
	for _, p := range pkgs {
		for _, a := range arrows {
			if !a.matches(p.ImportPath) {
				continue
			}
			deps := p.Deps
			if a.direct {
				deps = p.Imports
			}
			for _, dep := range deps {
				if belowAny(dep, a.to) && !belowAny(dep, a.but) {
					wrong = append(wrong, fmt.Sprintf("%s depends on %s: %s", p.ImportPath, dep, a.why))
				}
			}
		}
	}
	return wrong
}

// The direct imports that are allowed beside the standard library and the
// module's own packages.
var (
	allowed = []string{
		"k8s.io/client-go", "k8s.io/apimachinery", "k8s.io/api", "k8s.io/utils",
		// These come with client-go, whether they are imported or not.
		"github.com/go-logr/logr", "k8s.io/klog/v2", "golang.org/x/time", "sigs.k8s.io/yaml",
		"sigs.k8s.io/structured-merge-diff/v6", "gopkg.in/evanphx/json-patch.v4", "k8s.io/kube-openapi",
	}
	allowedInTests   = []string{"github.com/google/go-cmp", "go.uber.org/goleak"}
	allowedInMetrics = []string{prometheus}
	// Packages that are for tests of others, and take a *testing.T.
	mayImportTesting = []string{module + "/internal/conformance", module + "/fake/faketest"}
)

// strangers finds direct imports that are not allowed.
func strangers(pkgs []pkg) (wrong []string) {
	complain := func(p pkg, imported, where string) {
		wrong = append(wrong, fmt.Sprintf("%s imports %s%s", p.ImportPath, imported, where))
	}
	for _, p := range pkgs {
		ok := func(path string) bool {
			return standard(path) || below(path, module) || belowAny(path, allowed) ||
				below(p.ImportPath, module+"/metrics") && belowAny(path, allowedInMetrics)
		}
		forTests := belowAny(p.ImportPath, mayImportTesting)
		for _, path := range p.Imports {
			switch {
			case below(path, "testing") && !forTests:
				complain(p, path, " outside of tests")
			case !ok(path) && (!forTests || !belowAny(path, allowedInTests)):
				complain(p, path, "")
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if !ok(path) && !belowAny(path, allowedInTests) {
				complain(p, path, " in its tests")
			}
		}
	}
	return wrong
}

// standard says whether a path is of the standard library: those have no dot in
// their first element.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestNoForbiddenArrow(t *testing.T) {
	t.Parallel()
	for _, w := range forbidden(list(t), arrows) {
		t.Error(w)
	}
}

func TestNoImportThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	for _, w := range strangers(list(t)) {
		t.Error(w)
	}
}

func TestForbiddenArrowsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from, dep string
		wrong     bool
	}{
		"the library uses the booking client":     {module, module + "/booking", true},
		"the library uses Prometheus":             {module, prometheus + "/client_golang/prometheus", true},
		"the library uses its queue":              {module, module + "/internal/queue", false},
		"a package beside it uses the fake":       {module + "/internal/conformance", module + "/fake", false},
		"the fake uses the library":               {module + "/fake", module, true},
		"helpers of the fake use the library":     {module + "/fake/faketest", module, true},
		"the fake uses the booking contract":      {module + "/fake", module + "/booking", false},
		"the booking client uses the fake":        {module + "/booking", module + "/fake", true},
		"the booking client uses apimachinery":    {module + "/booking", "k8s.io/apimachinery/pkg/types", true},
		"the booking client has a part":           {module + "/booking", module + "/booking/wire", false},
		"metrics use the fake":                    {module + "/metrics", module + "/fake", true},
		"the Ticket's types use client-go":        {module + "/examples/ticket-controller/api/v1", "k8s.io/client-go/rest", true},
		"the Ticket's types use the library":      {module + "/examples/ticket-controller/api/v1", module, true},
		"the Ticket's types use apimachinery":     {module + "/examples/ticket-controller/api/v1", "k8s.io/apimachinery/pkg/types", false},
		"the queue uses Kubernetes types":         {module + "/internal/queue", "k8s.io/apimachinery/pkg/types", true},
		"decisions use the network":               {module + "/internal/protocol", "net/http", true},
		"decisions read files":                    {module + "/internal/protocol", "os", true},
		"decisions lead to os":                    {module + "/internal/protocol", "strings", false},
		"decisions use a package of similar name": {module + "/internal/protocol", "network/http", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := forbidden([]pkg{{ImportPath: test.from, Imports: []string{"fmt", test.dep}, Deps: []string{"fmt", test.dep, "os"}}}, arrows)
			if (len(got) > 0) != test.wrong {
				t.Errorf("found %v", got)
			}
		})
	}
}

func TestImportsThatAreNotAllowedAreFound(t *testing.T) {
	t.Parallel()
	got := strangers([]pkg{
		{
			ImportPath:   module,
			Imports:      []string{"fmt", "testing", "k8s.io/client-go/rest", "k8s.io/apiextensions-apiserver/x", "github.com/google/go-cmp/cmp", prometheus + "/client_golang/prometheus"},
			TestImports:  []string{"testing/synctest", "github.com/google/go-cmp/cmp", "go.uber.org/goleak"},
			XTestImports: []string{"pgregory.net/rapid"},
		},
		{ImportPath: module + "/metrics", Imports: []string{prometheus + "/client_golang/prometheus", "golang.org/x/sync/errgroup"}},
		{ImportPath: module + "/fake/faketest", Imports: []string{"testing", "github.com/google/go-cmp/cmp"}},
		{ImportPath: module + "/fake", Imports: []string{"testing/fstest"}},
	})
	want := []string{
		module + " imports testing outside of tests",
		module + " imports k8s.io/apiextensions-apiserver/x",
		module + " imports github.com/google/go-cmp/cmp",
		module + " imports " + prometheus + "/client_golang/prometheus",
		module + " imports pgregory.net/rapid in its tests",
		module + "/metrics imports golang.org/x/sync/errgroup",
		module + "/fake imports testing/fstest outside of tests",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
