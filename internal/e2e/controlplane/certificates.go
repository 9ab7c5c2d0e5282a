package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// The files that the API server reads, in the control plane's folder.
const (
	caFile            = "ca.crt"
	servingCertFile   = "serving.crt"
	servingKeyFile    = "serving.key"
	accountKeyFile    = "service-accounts.key"
	accountPublicFile = "service-accounts.pub"
)

// authority is a certificate authority of one control plane, which signs for
// servers on loopback and for clients alike. Its key is never written down.
type authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	caPEM []byte

	adminCert, adminKey []byte // PEM of a client that may do anything
}

// newAuthority makes an authority and leaves in dir what the API server reads.
// Its API server is known by the addresses too that are valid.
func newAuthority(dir string, addresses ...netip.Addr) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("control-plane")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, caPEM: encode("CERTIFICATE", der)}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if a.adminCert, a.adminKey, err = a.client("admin", "system:masters"); err != nil {
		return nil, err
	}
	servingCert, servingKey, err := a.serving(addresses...)
	if err != nil {
		return nil, err
	}
	accountKey, accountPublic, err := keyPair()
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		caFile: a.caPEM, servingCertFile: servingCert, servingKeyFile: servingKey,
		accountKeyFile: accountKey, accountPublicFile: accountPublic,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// ServingCertificate is a new certificate for a server on loopback, which every
// client of this control plane trusts: a proxy in front of it needs one.
func (c *ControlPlane) ServingCertificate() (tls.Certificate, error) {
	cert, key, err := c.authority.serving()
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// CAPool is what clients of this control plane trust.
func (c *ControlPlane) CAPool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.authority.cert)
	return pool
}

// client is for one user of some groups.
func (a *authority) client(user string, groups ...string) (cert, key []byte, err error) {
	t := certificate(user)
	t.Subject.Organization = groups
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(t)
}

// serving is for a server on loopback, and on those addresses that are valid.
func (a *authority) serving(addresses ...netip.Addr) (cert, key []byte, err error) {
	t := certificate("kube-apiserver")
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)} // the second is the Service `kubernetes`
	for _, address := range addresses {
		if address.IsValid() {
			t.IPAddresses = append(t.IPAddresses, address.AsSlice())
		}
	}
	t.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	return a.sign(t)
}

func (a *authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing for %s: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), nil
}

// certificate is what all of them have in common. Serial numbers are drawn, so
// that no two are equal. Validity begins in the past: clocks differ.
func certificate(name string) *x509.Certificate {
	var serial [12]byte
	rand.Read(serial[:]) // never fails: it would end the program
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// keyPair makes the key that signs ServiceAccount tokens.
func keyPair() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	privateDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return encode("EC PRIVATE KEY", privateDER), encode("PUBLIC KEY", publicDER), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
