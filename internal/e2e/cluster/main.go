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
)

const usage = `Usage: cluster [--apply FILE]... [-- COMMAND ARGS...]

Runs etcd and kube-apiserver %s on loopback, until Ctrl-C or, with a
COMMAND, for as long as that one runs. The command finds them by KUBECONFIG, and a
kubectl on PATH; its exit status is passed on.

`

func main() {
	var o options
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.Func("apply", "`FILE` or folder to apply with kubectl first; may be given more than once", func(file string) error {
		o.apply = append(o.apply, file)
		return nil
	})
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

	asked, again := watchForStop()
	code, err := run(asked, again, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
	}
	os.Exit(code)
}

type options struct {
	apply   []string
	command []string
}

// run runs until asked ends, or the command does, and answers with the status to
// exit with.
func run(asked context.Context, again <-chan os.Signal, o options) (code int, err error) {
	if err := enterCallersFolder(); err != nil {
		return 1, err
	}
	c, err := controlplane.Start(asked, controlplane.Options{})
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
	explain(os.Stdout, c, kubeconfig)
	<-ctx.Done()
	if asked.Err() == nil {
		return 1, context.Cause(ctx)
	}
	return codeOf(asked), nil
}

func explain(w io.Writer, c *controlplane.ControlPlane, kubeconfig string) {
	fmt.Fprintf(w, `A Kubernetes %s control plane runs at %s: etcd and kube-apiserver, no nodes.

  export KUBECONFIG=%s
  export PATH=%s:$PATH
  kubectl get namespaces

Ctrl-C stops it and leaves nothing behind.
`, binaries.KubernetesVersion, c.URL(), quote(kubeconfig), quote(c.BinDir()))
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
