package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// KubectlEnv is the environment for a kubectl, or for a program that runs one:
// it finds this control plane, a kubectl of the server's version, and nothing of
// the user's own; what kubectl caches goes with the control plane.
func (c *ControlPlane) KubectlEnv(kubeconfig string) []string {
	return append(os.Environ(),
		"KUBECONFIG="+kubeconfig,
		"KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"),
		"KUBERC=off",
		"PATH="+c.BinDir()+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
}

// Kubectl is the kubectl of the server's version for one user.
type Kubectl struct {
	path string
	env  []string
}

// Kubectl is one that uses the kubeconfig file.
func (c *ControlPlane) Kubectl(kubeconfig string) Kubectl {
	return Kubectl{path: c.programs.Kubectl(), env: c.KubectlEnv(kubeconfig)}
}

// Run runs kubectl with input as standard input, and returns its standard
// output. Where it fails, the error has the command and what it said.
func (k Kubectl) Run(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Env, cmd.Stdin = k.env, strings.NewReader(input)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
