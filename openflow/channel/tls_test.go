package channel

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"sublet/openflow/of13"
	"sublet/openflow/secure"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}, key}
	a.cert, err = x509.ParseCertificate(a.sign(a.cert, key))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	b, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

// config is that of an end whose certificate a has signed, and that trusts those
// which other has signed.
func (a *authority) config(other *authority) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key)
	pool := x509.NewCertPool()
	pool.AddCert(other.cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// connectsTo runs a hub that connects to a listener over TLS.
func connectsTo(t *testing.T, l net.Listener, conf *tls.Config) (why chan error) {
	h := NewHub(func() {})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error)
	why = make(chan error, 10)
	go func() {
		ran <- h.Run(ctx, Target{Secure: true, Address: l.Addr().String()}, conf, func(err error) {
			select {
			case why <- err:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		h.Close()
		<-ran
	})
	return why
}

func TestControllersOverTLS(t *testing.T) {
	a := newAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", a.config(a))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connectsTo(t, l, a.config(a))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &controller{t: t, Conn: conn}
	c.want(of13.TypeHello, 0)
	c.send(1, &of13.Hello{Bitmap: 1 << of13.Version})
	c.send(2, &of13.Echo{Data: []byte("x")})
	c.want(of13.TypeEchoReply, 2)
}

// A controller whose certificate the switch's authority has not signed gets no
// word of OpenFlow.
func TestUnknownControllersAreRefused(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", stranger.config(a))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	why := connectsTo(t, l, a.config(a))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if n, err := conn.Read(make([]byte, 8)); err == nil {
		t.Errorf("a stranger read %d bytes", n)
	}
	if err := <-why; err == nil {
		t.Error("the refusal is not told")
	}
}

// Whoever the authority has signed is believed, whatever the name; a stranger is
// not, be it that the switch connects or listens.
func TestAnyName(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	for _, c := range []struct {
		controller *tls.Config
		good       bool
	}{{a.config(a), true}, {stranger.config(a), false}} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", c.controller)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conf := a.config(a)
		conf.ServerName = "another.example"
		secure.AnyName(conf)
		connectsTo(t, l, conf)
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := conn.Read(make([]byte, 8)); (err == nil) != c.good {
			t.Errorf("signed %v: %v", c.good, err)
		}
	}
}
