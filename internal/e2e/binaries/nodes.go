package binaries

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ContainerdVersion is the release of containerd that runs the pods' containers.
const ContainerdVersion = "v2.4.2"

// pluginsVersion is the release of the CNI plugins, which give pods their network.
const pluginsVersion = "v1.10.0"

// nodeRecipe is this very file, and what is built besides.
//
//go:embed nodes.go
var nodeRecipe string

//go:embed pause/main.go
var pauseSource string

//go:embed sweep/main.go
var sweepSource string

// NodeSet is where the programs are that make a control plane a whole cluster.
// They stay there for other processes: a caller writes nothing into the folder.
type NodeSet struct{ Dir string }

// ControllerManager is the path of kube-controller-manager.
func (s NodeSet) ControllerManager() string { return filepath.Join(s.Dir, "kube-controller-manager") }

// Scheduler is the path of kube-scheduler.
func (s NodeSet) Scheduler() string { return filepath.Join(s.Dir, "kube-scheduler") }

// Kubelet is the path of kubelet.
func (s NodeSet) Kubelet() string { return filepath.Join(s.Dir, "kubelet") }

// Proxy is the path of kube-proxy.
func (s NodeSet) Proxy() string { return filepath.Join(s.Dir, "kube-proxy") }

// Containerd is the path of containerd, beside which its shim is.
func (s NodeSet) Containerd() string { return filepath.Join(s.Dir, "containerd") }

// Ctr is the path of containerd's own client.
func (s NodeSet) Ctr() string { return filepath.Join(s.Dir, "ctr") }

// Pause is the path of a program that holds namespaces; it is static.
func (s NodeSet) Pause() string { return filepath.Join(s.Dir, "pause") }

// Sweep is the path of a program that removes what another one leaves behind.
func (s NodeSet) Sweep() string { return filepath.Join(s.Dir, "sweep") }

// BuildNodes is as Build, for the programs of nodes and the controllers.
func BuildNodes(ctx context.Context, progress io.Writer) (NodeSet, error) {
	programs := names(nodePrograms())
	for _, m := range modules() {
		programs = append(programs, names(m.programs)...)
	}
	dir, err := collection{
		name: "nodes", recipe: recipe + nodeRecipe + pauseSource + sweepSource,
		programs: append(programs, "pause", "sweep"), compile: compileNodes,
	}.build(ctx, progress)
	return NodeSet{Dir: dir}, err
}

// nodePrograms are built in the module of the control plane's, with the same
// flags: what they have in common with kube-apiserver is compiled once.
func nodePrograms() []program {
	const commands = "k8s.io/kubernetes/cmd/"
	return []program{
		{"kube-controller-manager", commands + "kube-controller-manager"},
		{"kube-scheduler", commands + "kube-scheduler"},
		{"kubelet", commands + "kubelet"},
		{"kube-proxy", commands + "kube-proxy"},
	}
}

// A module is built as its authors publish it.
type module struct {
	path, version string
	flags         string // for the linker
	programs      []program
}

func modules() []module {
	const containerd, plugins = "github.com/containerd/containerd/v2", "github.com/containernetworking/plugins"
	return []module{
		{containerd, ContainerdVersion, "-X " + containerd + "/version.Version=" + ContainerdVersion, []program{
			{"containerd", containerd + "/cmd/containerd"},
			{"containerd-shim-runc-v2", containerd + "/cmd/containerd-shim-runc-v2"},
			{"ctr", containerd + "/cmd/ctr"},
		}},
		{plugins, pluginsVersion, "", []program{
			{"ptp", plugins + "/plugins/main/ptp"},
			{"loopback", plugins + "/plugins/main/loopback"},
			{"host-local", plugins + "/plugins/ipam/host-local"},
			{"portmap", plugins + "/plugins/meta/portmap"},
		}},
	}
}

func compileNodes(ctx context.Context, work, out string, progress io.Writer) error {
	fmt.Fprintf(progress, "building the nodes of a Kubernetes %s cluster from source, once: this takes some minutes\n", KubernetesVersion)
	if err := writeModule(ctx, work); err != nil {
		return err
	}
	if err := goBuild(ctx, work, out, linkerFlags(), progress, nodePrograms()...); err != nil {
		return err
	}
	static := []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOBIN=" + out}
	for _, m := range modules() {
		args := []string{"install", "-v", "-ldflags", "-s -w " + m.flags}
		for _, p := range m.programs {
			args = append(args, p.pkg+"@"+m.version)
		}
		if err := runGo(ctx, work, m.path, progress, static, args...); err != nil {
			return err
		}
	}
	for name, source := range map[string]string{"pause": pauseSource, "sweep": sweepSource} {
		file := filepath.Join(work, name+".go")
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			return err
		}
		if err := runGo(ctx, work, name, progress, static, "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(out, name), file); err != nil {
			return err
		}
	}
	return checkVersion(ctx, filepath.Join(out, "kubelet"))
}
