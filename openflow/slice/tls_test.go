package slice

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// selfSigned is of ends that all have one certificate, and believe it.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, public, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// The switch and a slice's controller are reached over TLS; a controller whose
// certificate nobody believes is not spoken to.
func TestSlicesOverTLS(t *testing.T) {
	conf := selfSigned(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	newBedAt(t, "ptls:"+address, conf)
	believed, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	defer believed.Close()
	stranger, err := tls.Listen("tcp", "127.0.0.1:0", selfSigned(t))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	target := func(text string) channel.Target {
		at, err := channel.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	p, err := New(Config{Switch: target("tls:" + address), TLS: conf, Log: func(err error) { t.Log(err) }, Slices: []Slice{
		{Name: "alice", Ports: []uint32{1}, Tables: 1, Entries: 1, Controllers: []channel.Target{target("tls:" + believed.Addr().String()), target("tls:" + stranger.Addr().String())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	greeted := func(l net.Listener) (*channel.Client, error) {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		return channel.NewClient(conn)
	}
	c, err := greeted(believed)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := c.Ask(&of13.Plain{Kind: of13.TypeFeaturesRequest})
	if err != nil || parts[0].(*of13.FeaturesReply).DatapathID != 0x51 {
		t.Errorf("%+v, %v", parts, err)
	}
	if _, err := greeted(stranger); err == nil {
		t.Error("a controller with a certificate of its own making is greeted")
	}
}
