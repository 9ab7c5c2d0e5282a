// Package controlplane runs a real Kubernetes control plane on loopback: etcd
// and kube-apiserver, as built by package binaries. It is ready in some three
// seconds, serves any number of clients, and leaves nothing behind.
//
// There is no controller manager: nothing collects garbage, makes default
// ServiceAccounts, empties a namespace that is being deleted, or fills the
// aggregated roles (view, edit, admin), which grant nothing. There is no
// node either. What a controller of custom resources sees is all there:
// admission, validation, RBAC, ServiceAccount tokens, watches, audit.
package controlplane
