package realcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetherkube/tether/internal/e2e/image"
)

// containerdConfig has: the node's folder, its sandbox image, the CNI plugins'
// folder.
const containerdConfig = `version = 3
root = "%[1]s/containerd"
state = "/run/containerd"
temp = "%[1]s/tmp"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "` + containerdAt + `"
[plugins.'io.containerd.internal.v1.opt']
  path = "%[1]s/opt"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "%[2]s"
[plugins.'io.containerd.cri.v1.runtime']
  # A root whose rights are cut may not make itself less likely to be killed.
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["%[3]s"]
  conf_dir = "%[1]s/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = false
`

// podNetworkConfig has: the node's folder, its pods' addresses. Every pod has a
// link of its own to the node, and no bridge: packets between two pods of a node
// pass the node's rules as all others do, so that a Service leads to a pod on the
// same node without the kernel's br_netfilter.
const podNetworkConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "%[1]s/addresses",
    "ranges": [[{"subnet": "%[2]s"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": true}}
]}
`

// startRuntime starts containerd and loads the images.
func (n *Node) startRuntime(ctx context.Context) error {
	plugins := n.cluster.nodeSet.Dir
	if err := errors.Join(
		os.Mkdir(n.file("cni"), 0o755),
		os.Mkdir(n.file("tmp"), 0o700),
		os.WriteFile(n.file("cni/pods.conflist"), fmt.Appendf(nil, podNetworkConfig, n.dir, n.pods), 0o644),
		os.WriteFile(n.file("containerd.toml"), fmt.Appendf(nil, containerdConfig, n.dir, pauseImage, plugins), 0o600),
	); err != nil {
		return err
	}
	containerd, err := n.start(n.cluster.nodeSet.Containerd(), "--config="+n.file("containerd.toml"))
	if err != nil {
		return err
	}
	if _, _, err := containerd.WaitForLine(ctx, 0, "containerd successfully booted"); err != nil {
		return err
	}
	pause := n.file("pause.tar")
	if err := image.Write(pause, image.Options{Name: pauseImage, Program: n.cluster.nodeSet.Pause()}); err != nil {
		return err
	}
	for _, file := range append([]string{pause}, n.cluster.options.Images...) {
		if err := n.loadImage(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// environment has the shim on PATH, beside containerd, and nothing that would
// have containerd look elsewhere.
func (n *Node) environment() []string {
	return []string{
		"PATH=" + n.cluster.nodeSet.Dir + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + n.dir, "TMPDIR=" + n.file("tmp"),
	}
}
