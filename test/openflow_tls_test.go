package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signedBy writes name.key and name.pem into a directory, the certificate signed by
// the pair of an authority that stands there; nil makes the authority.
func signedBy(t *testing.T, dir, name string, by *x509.Certificate, with *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	if by == nil {
		made.IsCA, made.BasicConstraintsValid = true, true
		by, with = made, key
	}
	der, err := x509.CreateCertificate(rand.Reader, made, by, &key.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// listenTLS makes the example's controller listen over TLS.
const listenTLS = `import ssl
t = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
t.load_cert_chain("/tls/cert", "/tls/key")
t.load_verify_locations("/tls/ca")
t.verify_mode = ssl.CERT_REQUIRED
srv = t.wrap_socket(socket.create_server(("", 6653)), server_side=True)
`

// A leased switch speaks to its tenant's controller over TLS, each with a
// certificate that the tenant's authority has signed; the key is in no list and no
// argument.
func TestOpenFlowOverTLS(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t, "demo"), t.TempDir()
	ca, key := signedBy(t, dir, "ca", nil, nil)
	signedBy(t, dir, "ctl", ca, key)
	signedBy(t, dir, "s1", ca, key)
	if err := os.WriteFile(filepath.Join(dir, "listen.py"), []byte(listenTLS), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"tcp:ctl:6653", "ssl:ctl:6653",
		"kind: openflow,", "kind: openflow, tls: {key: {from: s1.key}, certificate: {from: s1.pem}, ca: {from: ca.pem}},",
		"    memory: 128MiB\n", "    memory: 128MiB\n    files: [{path: /tls/key, from: ctl.key}, {path: /tls/cert, from: ctl.pem}, {path: /tls/ca, from: ca.pem}, {path: /tls/listen, from: listen.py}]\n",
		`srv = socket.create_server(("", 6653))`, `exec(open("/tls/listen").read())`,
	).Replace(learning(t))
	file := filepath.Join(dir, "learning.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must("up", file)
	eventually(t, 20*time.Second, func() error { return l.crosses("learning/a", "b") })
	secret, err := os.ReadFile(filepath.Join(dir, "s1.key"))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(string(secret), "\n")[1]
	for _, list := range [][]string{{"plan", "h1"}, {"leases", "learning"}, {"leases", "learning", "-o", "json"}} {
		if strings.Contains(l.must(list...), line) {
			t.Errorf("%v shows the key", list)
		}
	}
	for _, other := range matches(filepath.Join(l.run, "openflow", "h1", "*", "*")) {
		if info, err := os.Lstat(other); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s", other)
		}
	}
	l.isConfined(l.openFlowProcess("h1"))
	l.must("down", "learning")
}
