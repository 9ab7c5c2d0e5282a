package fake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// identity is a certificate for loopback and memory, and the authority that
// signed it.
type identity struct {
	server, client *tls.Config
	authority      []byte // PEM
}

func newIdentity() *identity {
	must := func(err error) {
		if err != nil {
			panic("fake: a certificate: " + err.Error()) // of keys and names that are fixed here
		}
	}
	now := time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fake-ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	must(err)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{memoryHost, "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, ca, own.Public(), key)
	must(err)
	parsed, err := x509.ParseCertificate(signed)
	must(err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &identity{
		server: &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: own}},
		},
		client:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: memoryHost},
		authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
	}
}
