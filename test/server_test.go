package test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/trust"
	"sublet/vnet"
)

const oneHost = "hosts:\n  - {name: m1, cpu: 2, memory: 1GiB}\n"

// local is a server without a lab: this machine is its only host.
func local(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	return &lab{t: t, run: shortDir(t)}
}

// background runs the program until the test ends; it must end by itself then.
func (l *lab) background(args ...string) {
	l.t.Helper()
	cmd := exec.Command(program, append([]string{"--run", l.run}, args...)...)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		if err := cmd.Wait(); err != nil {
			l.t.Errorf("sublet %s: %v\n%s", strings.Join(args, " "), err, log.String())
		}
	})
}

func (l *lab) serving() {
	l.t.Helper()
	eventually(l.t, 20*time.Second, func() error {
		if r := l.sublet("hosts", "-o", "json"); r.code != 0 || !strings.Contains(r.out, `"agent": "up"`) {
			return errors.New(r.err + r.out)
		}
		return nil
	})
}

const onOneHost = `network: n
nodes: [{name: a}, {name: b}]
links: [{ends: [a, b], rate: 20Mbit}]
`

// A network that waits for a host without an agent says so while it waits, and
// the hosts say which one it is.
func TestUpSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	l := local(t)
	l.background("serve", "--data", filepath.Join(filepath.Dir(l.run), "data"), "--substrate", l.file("substrate.yaml", oneHost))
	eventually(t, 20*time.Second, func() error {
		if r := l.sublet("hosts"); r.code != 0 || !strings.Contains(r.out, "never heard of") {
			return errors.New(r.err + r.out)
		}
		return nil
	})
	if r := l.sublet("up", "--timeout", "7s", l.file("n.yaml", onOneHost)); r.code != 1 || !strings.Contains(r.err, "root/n: waiting for m1\n") {
		t.Errorf("up without an agent: exit code %d, %s", r.code, r.err)
	}
}

// One command makes a machine a server and a host; a restart keeps its leases.
func TestServeWithAgent(t *testing.T) {
	l := local(t)
	substrate := l.file("substrate.yaml", oneHost)
	data := filepath.Join(filepath.Dir(l.run), "data")
	t.Run("first life", func(t *testing.T) {
		l := &lab{t: t, run: l.run}
		l.background("serve", "--agent", "--data", data, "--substrate", substrate)
		l.serving()
		l.up(onOneHost)
		l.must("exec", "n/a", "--", "ping", "-c", "1", "b")
	})
	t.Run("second life", func(t *testing.T) {
		l := &lab{t: t, run: l.run}
		l.background("serve", "--agent", "--data", data)
		l.serving()
		l.must("exec", "n/a", "--", "ping", "-c", "1", "b")
		l.checked("n", broken, "--duration", "1s")
		l.must("down", "n")
		l.settled()
	})
}

// Server, agent and operator on different machines speak mutual TLS.
//
//	operator --TLS--> server <--TLS-- agent of m1, another run directory
//	stranger with the certificate of host m2 --TLS--> server: may not
func TestServerElsewhere(t *testing.T) {
	l := local(t)
	dir := filepath.Dir(l.run)
	ca := newAuthority(t, dir)
	serverPort, agentPort := freePort(t), freePort(t)
	far := &lab{t: t, run: filepath.Join(dir, "far")} // the agent's machine
	l.background(append(ca.flags("operator"), "serve", "--data", filepath.Join(dir, "data"), "--listen", serverPort,
		"--substrate", l.file("substrate.yaml", oneHost))...)
	far.background(append(ca.flags("m1"), "agent", "--host", "m1", "--server", serverPort, "--listen", agentPort)...)
	l.serving()
	l.up(onOneHost)
	remote := append(ca.flags("operator"), "--server", serverPort)
	far.must(append(remote, "exec", "n/a", "--", "ping", "-c", "1", "b")...)
	far.must(append(remote, "plan")...)
	stranger := append(ca.flags("m2"), "--server", serverPort)
	if r := far.sublet(append(stranger, "exec", "n/a", "--", "true")...); r.code == 0 {
		t.Error("a host's certificate may run commands in nodes")
	}
	if r := far.sublet(append(ca.flags("m2"), "--server", agentPort, "plan", "m1")...); r.code == 0 {
		t.Error("an agent takes orders from another host")
	}
	far.must(append(remote, "down", "n")...)
	l.settled()
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// authority signs certificates for 127.0.0.1.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, dir string) *authority {
	a := &authority{t: t, dir: dir}
	a.cert, a.key = a.sign("ca", true)
	return a
}

// flags makes a certificate for a name and names its files.
func (a *authority) flags(name string) []string {
	a.sign(name, false)
	path := func(file string) string { return filepath.Join(a.dir, file) }
	return []string{"--cert", path(name + ".pem"), "--key", path(name + ".key"), "--ca", path("ca.pem")}
}

func (a *authority) sign(name string, isCA bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	return a.signAs(name, pkix.Name{CommonName: name}, isCA, net.IPv4(127, 0, 0, 1))
}

// signServer makes a certificate for one of several servers.
func (a *authority) signServer(file string, address net.IP) {
	a.t.Helper()
	a.signAs(file, pkix.Name{CommonName: vnet.OperatorName, OrganizationalUnit: []string{trust.ServerUnit}}, false, address)
}

func (a *authority) signAs(name string, subject pkix.Name, isCA bool, address net.IP) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, IPAddresses: []net.IP{address},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if isCA {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "EC PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(a.dir, file), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}
