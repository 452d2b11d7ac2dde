package vnet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// pair is a key and a certificate of it, in PEM.
func pair(t *testing.T) (key, certificate string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, made, made, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
}

// Keys and certificates that cannot work are refused before anything is booked, and
// no word of a key is in what is said.
func TestSwitchTLS(t *testing.T) {
	key, certificate := pair(t)
	stranger, _ := pair(t)
	r := openFlowRequest()
	r.Switches[0].Controllers[0] = "ssl:ctl:6653"
	good := SwitchTLS{Key: key, Certificate: certificate, CA: certificate}
	r.Switches[0].TLS = &good
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	for want, bad := range map[string]SwitchTLS{
		"tls.key: holds no private key":           {certificate, certificate, certificate},
		"tls.key: is encrypted":                   {strings.ReplaceAll(key, "EC PRIVATE", "ENCRYPTED PRIVATE"), certificate, certificate},
		"tls.key: is a key of an unknown form":    {strings.Replace(key, "MH", "AA", 1), certificate, certificate},
		"tls.certificate: is not that of the key": {stranger, certificate, certificate},
		"tls.certificate: holds no certificate":   {key, "", certificate},
		"tls.ca: holds no certificate":            {key, certificate, key},
		"tls.ca: has 70000 bytes":                 {key, certificate, strings.Repeat("x", 70000)},
	} {
		r.Switches[0].TLS = &bad
		err := r.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
		if lines := strings.Split(key, "\n"); err != nil && strings.Contains(err.Error(), lines[1][:20]) {
			t.Errorf("%v tells the key", err)
		}
	}
	r.Switches[0].Controllers[0], r.Switches[0].TLS = "tcp:ctl:6653", &good
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "of which there is none") {
		t.Errorf("%v", err)
	}
	if text := fmt.Sprintf("%v %+v", &good, r); strings.Contains(text, "PRIVATE") {
		t.Error("the key is printed")
	}
}
