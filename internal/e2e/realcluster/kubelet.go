package realcluster

import (
	"fmt"
	"os"
)

// kubeletConfig has: the authority's file, the serving certificate's two, the
// control group, the node's folder, and how often the node says that it is there.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]q}}
authorization: {mode: Webhook}
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
containerRuntimeEndpoint: unix://` + containerdAt + `
cgroupDriver: cgroupfs
cgroupRoot: %[4]s
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
resolvConf: ""
podLogsDir: %[5]s/pod-logs
volumePluginDir: %[5]s/volume-plugins
evictionHard: {"memory.available": "50Mi"}
imageGCHighThresholdPercent: 100
shutdownGracePeriod: 0s
%[6]s`

// often has a silent node noticed early.
const often = `nodeLeaseDurationSeconds: 8
nodeStatusUpdateFrequency: 3s
`

func (n *Node) startKubelet() error {
	c := n.cluster
	cert, key, err := c.WriteServingCertificate(n.name, n.address)
	if err != nil {
		return err
	}
	beat := ""
	if c.options.ShortTolerations {
		beat = often
	}
	config := fmt.Appendf(nil, kubeletConfig, c.Files().CA, cert, key, n.group, n.dir, beat)
	if err := os.WriteFile(n.file("kubelet.yaml"), config, 0o600); err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOnMachines("system:node:"+n.name, "system:nodes")
	if err != nil {
		return err
	}
	_, err = n.start(c.nodeSet.Kubelet(),
		"--config="+n.file("kubelet.yaml"), "--kubeconfig="+kubeconfig,
		"--root-dir="+n.file("kubelet"), "--cert-dir="+n.file("kubelet-certs"),
		"--hostname-override="+n.name, "--node-ip="+n.address.String())
	return err
}
