package realcluster

// startProxy starts kube-proxy, which keeps its rules in the machine's own
// packet filter.
func (n *Node) startProxy() error {
	kubeconfig, err := n.cluster.kubeconfigOnMachines("system:kube-proxy")
	if err != nil {
		return err
	}
	_, err = n.start(n.cluster.nodeSet.Proxy(),
		"--kubeconfig="+kubeconfig, "--hostname-override="+n.name,
		"--proxy-mode=nftables", "--cluster-cidr="+podNetwork,
		// The table of connections has a size for the whole machine outside.
		"--conntrack-max-per-core=0", "--oom-score-adj=0")
	return err
}
