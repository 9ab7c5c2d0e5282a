package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is how to reach the API server, and whether from within a pod.
type cluster struct {
	config *rest.Config
	inPod  bool
}

// getStarted is what to do where there is no cluster.
const getStarted = "to have a cluster to play with, run: go -C internal/e2e run ./cluster"

// errNoCluster says that none is configured at all, not even a broken one.
var errNoCluster = errors.New("no cluster is configured")

// choose finds the cluster, or says that the embedded one is to be used. It is
// never used in the place of what is configured and broken, unless it was asked for.
func choose(s settings, getenv func(string) string, home string) (k cluster, embedded bool, err error) {
	if s.embedded == always {
		return cluster{}, true, nil
	}
	k, err = findCluster(s, getenv, home)
	switch {
	case err == nil && s.dataDir != "":
		return k, false, errDataDir
	case err == nil && s.bookingURL == "":
		return k, false, errNoBookingURL
	case s.embedded != never && errors.Is(err, errNoCluster):
		return cluster{}, true, nil
	}
	return k, false, err
}

// findCluster takes the first of: --kubeconfig, $KUBECONFIG, ~/.kube/config, the
// pod's own. One that is named and broken is an error; nothing else is tried.
func findCluster(s settings, getenv func(string) string, home string) (cluster, error) {
	rules := &clientcmd.ClientConfigLoadingRules{}
	var said string // where it was looked for
	switch env := getenv("KUBECONFIG"); {
	case s.kubeconfig != "":
		rules.ExplicitPath, said = s.kubeconfig, "--kubeconfig "+s.kubeconfig
	case env != "":
		rules.Precedence, said = filepath.SplitList(env), "$KUBECONFIG, "+env
		if !slices.ContainsFunc(rules.Precedence, exists) {
			return cluster{}, fmt.Errorf("%s: there is no such file; correct or unset it; %s", said, getStarted)
		}
	default:
		path := filepath.Join(home, ".kube", "config")
		if home == "" || !exists(path) {
			return inPod(s, path)
		}
		rules.ExplicitPath, said = path, path
	}
	if rules.ExplicitPath != "" && !exists(rules.ExplicitPath) {
		return cluster{}, fmt.Errorf("%s: there is no such file; correct it; %s", said, getStarted)
	}
	raw, err := rules.Load()
	if err != nil {
		return cluster{}, fmt.Errorf("%s: it cannot be read as a kubeconfig: %w; correct it, or name another", said, err)
	}
	if s.context != "" && raw.Contexts[s.context] == nil {
		return cluster{}, fmt.Errorf("--context %s: %s has no such context; it has %s", s.context, said, orNone(keys(raw.Contexts)))
	}
	if s.context == "" && raw.CurrentContext == "" {
		if len(raw.Contexts) == 0 {
			return cluster{}, fmt.Errorf("%s: it has no context at all; give a kubeconfig that names a cluster", said)
		}
		return cluster{}, fmt.Errorf("%s: it has no current-context; name one of %s with --context", said, orNone(keys(raw.Contexts)))
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*raw, s.context, &clientcmd.ConfigOverrides{CurrentContext: s.context}, rules).ClientConfig()
	if err != nil {
		return cluster{}, fmt.Errorf("%s: %w", said, err)
	}
	return cluster{config: cfg}, nil
}

func inPod(s settings, looked string) (cluster, error) {
	cfg, err := rest.InClusterConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		if s.context != "" {
			return cluster{}, fmt.Errorf("--context %s: there is no kubeconfig that could have it: looked for --kubeconfig, $KUBECONFIG and %s; take it off, or give one", s.context, looked)
		}
		return cluster{}, fmt.Errorf("%w: looked for --kubeconfig, $KUBECONFIG, %s and a pod's own environment; %s", errNoCluster, looked, getStarted)
	case err != nil:
		return cluster{}, fmt.Errorf("the pod's own environment cannot be used: %w; give the pod a ServiceAccount token", err)
	case s.context != "":
		return cluster{}, fmt.Errorf("--context %s: there is no kubeconfig, and the pod's own environment has no contexts; take it off", s.context)
	}
	return cluster{config: cfg, inPod: true}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
