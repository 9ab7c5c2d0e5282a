// Package realcluster runs a whole Kubernetes cluster: the control plane of
// package controlplane, the controllers and the scheduler, and nodes that run
// pods, each with a kubelet, containerd and kube-proxy on a machine of its own
// (package machine). It wants Linux, root, and three programs of the system: runc,
// nft and ip.
//
// Pods reach each other and Services on every node, and the API server with the
// token of their ServiceAccount. What is not there: the world outside, a registry
// (images come by LoadImage), names (no DNS: a Service has an address, and
// environment variables tell it), volumes but those of the node, and anybody who
// enforces a NetworkPolicy.
//
// Everything ends with the program that started it, also where that one is
// killed, and nothing is left.
//
// To be read in this order: cluster.go (start to stop), requirements.go,
// layout.go (names and addresses), controllers.go, node.go, containerd.go,
// kubelet.go, kubeproxy.go, then what a test does: images.go, faults.go.
package realcluster
