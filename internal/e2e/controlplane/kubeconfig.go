package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file for cfg, readable by this user alone,
// and returns its path. Its user and context have the name, and so has the file:
// a second one of that name takes the place of the first, at once for whoever
// reads it. It goes with the control plane.
func (c *ControlPlane) WriteKubeconfig(name string, cfg *rest.Config) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["control-plane"] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: "control-plane", AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, name+".kubeconfig")
	// Two may write the same name at once: each has a file of its own until then.
	draft, err := os.CreateTemp(c.dir, name+".*") // readable by this user alone
	if err != nil {
		return "", err
	}
	_, err = draft.Write(content)
	if err = errors.Join(err, draft.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(draft.Name(), path)
}

// AdminKubeconfig writes a kubeconfig file for RESTConfig.
func (c *ControlPlane) AdminKubeconfig() (string, error) {
	return c.WriteKubeconfig("admin", c.RESTConfig())
}

// ServiceAccount is a new configuration with a token, good for an hour, of a
// ServiceAccount that exists.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	hour := int64(3600)
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	cfg := c.RESTConfig()
	cfg.CertData, cfg.KeyData = nil, nil
	cfg.BearerToken = token.Status.Token
	return cfg, nil
}
