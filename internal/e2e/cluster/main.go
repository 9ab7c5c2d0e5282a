// Command cluster runs a real Kubernetes control plane on loopback: etcd and
// kube-apiserver, which it builds from source the first time.
//
//	go -C internal/e2e run ./cluster                      # until Ctrl-C
//	go -C internal/e2e run ./cluster -- COMMAND ARGS…     # while the command runs
//
// The command runs in the caller's folder, with KUBECONFIG set and a kubectl of
// the same version on PATH, and its status becomes this program's own. Either
// way everything is stopped and removed at the end, also when the program that
// started this one ends.
//
//	go -C internal/e2e run ./cluster --nodes 2            # with nodes that run pods
//
// With nodes it is a whole cluster: controllers, scheduler, and for each node a
// kubelet, containerd and kube-proxy on a machine made of namespaces, which wants
// Linux, root, runc, nft and ip.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tetherkube/tether/internal/e2e/binaries"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/realcluster"
)

const usage = `Usage: cluster [--nodes N [--image FILE]...] [--apply FILE]... [-- COMMAND ARGS...]

Runs etcd and kube-apiserver %s on loopback, until Ctrl-C or, with a
COMMAND, for as long as that one runs. The command finds them by KUBECONFIG, and a
kubectl on PATH; its exit status is passed on. With --nodes it is a whole cluster,
whose nodes run pods, and wants root.

`

func main() {
	var o options
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.Func("apply", "`FILE` or folder to apply with kubectl first; may be given more than once", func(file string) error {
		o.apply = append(o.apply, file)
		return nil
	})
	flags.IntVar(&o.nodes, "nodes", 0, "how many `nodes` run pods; 0 is a control plane alone")
	flags.Func("image", "`FILE` with images, as docker save writes it, to load on every node; may be given more than once", func(file string) error {
		o.images = append(o.images, file)
		return nil
	})
	flags.BoolVar(&o.short, "short-tolerations", false, "replace the pods of a silent node after some 15 s, instead of six minutes")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), usage, binaries.KubernetesVersion)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	}
	o.command = flags.Args()
	if o.nodes == 0 && (len(o.images) > 0 || o.short) || o.nodes < 0 {
		fmt.Fprintln(os.Stderr, "cluster: --image and --short-tolerations are about nodes: say how many there are by --nodes")
		os.Exit(2)
	}

	asked, again := watchForStop()
	code, err := run(asked, again, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
	}
	os.Exit(code)
}

type options struct {
	nodes   int
	images  []string
	short   bool
	apply   []string
	command []string
}

// A cluster is a control plane, alone or with nodes.
type cluster interface {
	Stop() error
	Ended(ctx context.Context) error
	URL() string
	BinDir() string
	AdminKubeconfig() (string, error)
	Kubectl(kubeconfig string) controlplane.Kubectl
	KubectlEnv(kubeconfig string) []string
}

func startCluster(ctx context.Context, o options) (cluster, error) {
	if o.nodes == 0 {
		return controlplane.Start(ctx, controlplane.Options{})
	}
	return realcluster.Start(ctx, realcluster.Options{Nodes: o.nodes, Images: o.images, ShortTolerations: o.short})
}

// run runs until asked ends, or the command does, and answers with the status to
// exit with.
func run(asked context.Context, again <-chan os.Signal, o options) (code int, err error) {
	if err := enterCallersFolder(); err != nil {
		return 1, err
	}
	c, err := startCluster(asked, o)
	if err != nil {
		if asked.Err() != nil { // asked to stop while it started: nothing runs, and nothing went wrong
			return codeOf(asked), nil
		}
		return 1, err
	}
	defer func() {
		if e := c.Stop(); e != nil {
			code, err = max(code, 1), errors.Join(err, e)
		}
	}()
	kubeconfig, err := c.AdminKubeconfig()
	if err != nil {
		return 1, err
	}
	kubectl := c.Kubectl(kubeconfig)
	for _, file := range o.apply {
		if _, err := kubectl.Run(asked, "", "apply", "-f", file); err != nil {
			return 1, fmt.Errorf("--apply: %w", err)
		}
	}

	ctx, cancel := context.WithCancelCause(asked)
	defer cancel(nil)
	go func() {
		if err := c.Ended(ctx); err != nil {
			cancel(err)
		}
	}()
	if len(o.command) > 0 {
		return runCommand(ctx, asked, again, o.command, c.BinDir(), c.KubectlEnv(kubeconfig))
	}
	explain(os.Stdout, c, o.nodes, kubeconfig)
	<-ctx.Done()
	if asked.Err() == nil {
		return 1, context.Cause(ctx)
	}
	return codeOf(asked), nil
}

func explain(w io.Writer, c cluster, nodes int, kubeconfig string) {
	what := "control plane runs at " + c.URL() + ": etcd and kube-apiserver, no nodes"
	if nodes > 0 {
		what = fmt.Sprintf("cluster runs at %s, with %d nodes", c.URL(), nodes)
	}
	fmt.Fprintf(w, `A Kubernetes %s %s.

  export KUBECONFIG=%s
  export PATH=%s:$PATH
  kubectl get namespaces

Ctrl-C stops it and leaves nothing behind.
`, binaries.KubernetesVersion, what, quote(kubeconfig), quote(c.BinDir()))
}

// quote makes s one word for a shell.
func quote(s string) string {
	if !strings.ContainsAny(s, " '\"\\$`&;|<>()*?[]#~!{}\t\n") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// enterCallersFolder goes to where the user stands, so that relative paths mean
// what they say. `go -C` changes the folder, and leaves in PWD where it was
// called.
func enterCallersFolder() error {
	pwd := os.Getenv("PWD")
	if !filepath.IsAbs(pwd) {
		return nil
	}
	if err := os.Chdir(pwd); err != nil {
		return fmt.Errorf("entering the folder that PWD names: %w", err)
	}
	return nil
}
