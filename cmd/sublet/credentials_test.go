package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// credentialsOf writes an authority, and a certificate of the operator and of
// 127.0.0.1 that it signed.
func credentialsOf(t *testing.T) (cert, key, ca string) {
	t.Helper()
	dir := t.TempDir()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "operator"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter}
	authorityKey, leafKey := newKey(t), newKey(t)
	encoded, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sign := func(c *x509.Certificate, of *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, authority, of.Public(), authorityKey)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	return write("cert.pem", "CERTIFICATE", sign(leaf, leafKey)), write("key.pem", "PRIVATE KEY", encoded), write("ca.pem", "CERTIFICATE", sign(authority, authorityKey))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
