package controller_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sublet/openflow/controller"
	"sublet/openflow/of13"
	"sublet/openflow/secure"
)

// authority signs certificates, and keeps files in a directory.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	a.files("ca")
	return a
}

// files has a pair of a name made, signed by the authority; the first is its own.
func (a *authority) files(name string) secure.Files {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	if a.key == nil {
		made, a.key = a.cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, made, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	f := secure.Files{Certificate: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key"), CA: filepath.Join(a.dir, "ca.pem")}
	for file, block := range map[string]*pem.Block{f.Certificate: {Type: "CERTIFICATE", Bytes: der}, f.Key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return f
}

// greeted says whether the other end says something in OpenFlow.
func greeted(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	var head [of13.HeaderLen]byte
	n, err := conn.Read(head[:])
	return err == nil && n > 0 && head[0] == of13.Version
}

// overTLS serves over TLS until the test ends.
func overTLS(t *testing.T, files secure.Files, connect ...netip.AddrPort) (*controller.Forwarding, netip.AddrPort) {
	t.Helper()
	f := controller.NewForwarding(slog.New(slog.DiscardHandler))
	f.Serve(1)
	at, _ := serve(t, controller.Config{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), Connect: connect, TLS: &files, App: f.App, Tick: f.Tick, Log: slog.New(slog.DiscardHandler),
	})
	return f, at
}

// Only whose certificate the authority has signed is greeted, whoever connects to whom,
// and there is no way around TLS.
func TestOnlySignedSwitchesAreGreeted(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	good, err := a.files("switch").AnyNameConfig()
	if err != nil {
		t.Fatal(err)
	}
	bad := good.Clone()
	other, err := stranger.files("switch").AnyNameConfig()
	if err != nil {
		t.Fatal(err)
	}
	bad.Certificates = other.Certificates
	for _, c := range []struct {
		config *tls.Config
		want   bool
	}{{good, true}, {bad, false}} {
		waits, err := tls.Listen("tcp", "127.0.0.1:0", c.config)
		if err != nil {
			t.Fatal(err)
		}
		defer waits.Close()
		_, at := overTLS(t, a.files("controller"), waits.Addr().(*net.TCPAddr).AddrPort())
		connected, err := waits.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer connected.Close()
		if got := greeted(connected); got != c.want {
			t.Errorf("a switch that is connected to is greeted: %v instead of %v", got, c.want)
		}
		connects, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		defer connects.Close()
		if got := greeted(tls.Client(connects, c.config)); got != c.want {
			t.Errorf("a switch that connects is greeted: %v instead of %v", got, c.want)
		}
	}
	_, at := overTLS(t, a.files("controller"))
	plain, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte{of13.Version, 0, 0, 8, 0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if greeted(plain) {
		t.Error("a switch without TLS is greeted")
	}
}

// Open vSwitch takes passages over TLS, and loses none when its connection ends.
func TestForwardingOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	f, at := overTLS(t, a.files("controller"))
	f.Rest(1, 50000)
	r := newRing(t, "OpenFlow13", "ssl:"+at.String())
	mine := a.files("switch")
	r.run("ovs-vsctl", r.db(), "set-ssl", mine.Key, mine.Certificate, mine.CA)
	connected(t, f)
	if err := f.Put(t.Context(), 1, passage(1, 1000, 2)); err != nil {
		t.Fatal(err)
	}
	if err := r.passages(",output:2"); err != nil {
		t.Error(err)
	}
	r.restart()
	r.appears("br1.mgmt")
	eventually(t, func() error { return r.passages(",output:2") })
}
