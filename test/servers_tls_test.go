package test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// secureEtcd is an etcd in a process of its own that speaks TLS with those who have a
// certificate of its authority, and with nobody else.
type secureEtcd struct {
	t         testing.TB
	ca        *authority
	dir, port string
	cmd       *exec.Cmd
}

// etcdOf is set in the environment of a process that is to be such an etcd: its directory
// and its port.
const etcdOf = "SUBLET_TEST_ETCD"

func newSecureEtcd(t testing.TB, dir, address string) *secureEtcd {
	t.Helper()
	e := &secureEtcd{t: t, dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e.ca = newAuthority(t, dir)
	e.ca.signServer("etcd", net.ParseIP(address))
	e.ca.signServer("client", net.ParseIP(address))
	var err error
	if _, e.port, err = net.SplitHostPort(freePort(t)); err != nil {
		t.Fatal(err)
	}
	e.start()
	return e
}

func (e *secureEtcd) start() {
	e.t.Helper()
	e.cmd = exec.Command(os.Args[0], "-test.run=^TestEtcdOfItsOwn$")
	e.cmd.Env = append(os.Environ(), etcdOf+"="+e.dir+" "+e.port, "SUBLET_BIN="+program)
	said := new(bytes.Buffer)
	e.cmd.Stdout, e.cmd.Stderr = said, said
	if _, err := e.cmd.StdinPipe(); err != nil { // ends with this process, and the etcd with it
		e.t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	cmd := e.cmd
	e.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); e.t.Failed() {
			e.t.Logf("etcd says:\n%s", said)
		}
	})
}

func (e *secureEtcd) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

// flags say where a server finds it, and with which certificates.
func (e *secureEtcd) flags(host string) []string {
	file := func(name string) string { return filepath.Join(e.dir, name) }
	return []string{"--etcd", "https://" + host + ":" + e.port, "--etcd-cert", file("client.pem"), "--etcd-key", file("client.key"), "--etcd-ca", file("ca.pem")}
}

// TestEtcdOfItsOwn is the process of such an etcd until it is killed.
func TestEtcdOfItsOwn(t *testing.T) {
	t.Parallel()
	dir, port, told := strings.Cut(os.Getenv(etcdOf), " ")
	if !told {
		t.Skip("runs for TestServersOnEtcdWithTLS only")
	}
	config := etcdConfig(filepath.Join(dir, "data"), "https", port)
	tls := &config.ClientTLSInfo
	tls.CertFile, tls.KeyFile, tls.TrustedCAFile = filepath.Join(dir, "etcd.pem"), filepath.Join(dir, "etcd.key"), filepath.Join(dir, "ca.pem")
	tls.ClientCertAuth = true
	e, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		e.Close()
	}()
	if err, failed := <-e.Err(); failed {
		t.Fatal(err)
	}
}

// etcdConfig is that of an etcd of one member on a port of all addresses.
func etcdConfig(dir, scheme, port string) *embed.Config {
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.EnableGRPCGateway = dir, "panic", false
	at := func(scheme, p string) []url.URL { return []url.URL{{Scheme: scheme, Host: p}} }
	config.ListenClientUrls, config.AdvertiseClientUrls = at(scheme, "0.0.0.0:"+port), at(scheme, "127.0.0.1:"+port)
	config.ListenPeerUrls, config.AdvertisePeerUrls = at("http", "127.0.0.1:0"), at("http", "127.0.0.1:1")
	config.InitialCluster = "default=http://127.0.0.1:1"
	return config
}

// Servers share an etcd over TLS with certificates of both sides. While it is gone
// nothing is answered; when it is back they lead and follow again by themselves, with what
// was leased before. Who shows it no certificate, or the wrong one, or does not know its
// authority, ends with one line that says so.
func TestServersOnEtcdWithTLS(t *testing.T) {
	t.Parallel()
	if !secluded(t) {
		return
	}
	c := newControlOn(t, &control{t: t, secure: true}, 2, twoHosts)
	l := &lab{t: t, run: filepath.Join(c.dir, "operator")}
	c.must(t, c.addresses(), "up", "--no-wait", l.file("n.yaml", "network: n\ntenant: bin\nnodes: [{name: a, cpu: 0.01, memory: 16MiB}]\n"))
	c.strangers(t)
	c.etcdSecure.kill()
	eventually(t, 20*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.client(c.addresses()...).Servers(ctx); err == nil {
			return errors.New("servers answer without their store")
		}
		return nil
	})
	c.etcdSecure.start()
	c.leader()
	c.silence(0, func() {})
	for _, m := range c.members {
		if !alive(m) {
			t.Errorf("%s has ended:\n%s", m.name, m.log)
		}
		eventually(t, 20*time.Second, func() error {
			if r := c.operator(t, []string{m.address}, "leases", "bin/n"); r.code != 0 {
				return errors.New(m.name + ": " + r.out + r.err)
			}
			return nil
		})
	}
	c.must(t, c.addresses(), "down", "--no-wait", "bin/n")
}

// strangers are servers that the etcd and they do not trust each other.
func (c *control) strangers(t *testing.T) {
	t.Helper()
	e := c.etcdSecure
	own := func(name string) string { return filepath.Join(e.dir, name) }
	other := func(name string) string { return filepath.Join(c.dir, name) }
	at := "--etcd=" + c.host(1) + ":" + e.port
	for _, one := range []struct {
		flags []string
		words string
	}{
		{[]string{at, "--etcd-cert", own("client.pem"), "--etcd-key", own("client.key"), "--etcd-ca", other("ca.pem")}, "its certificate is not signed by the authority of --etcd-ca"},
		{[]string{at, "--etcd-ca", own("ca.pem")}, "it asks for a certificate: state --etcd-cert"},
		{[]string{at, "--etcd-cert", other("s1.pem"), "--etcd-key", other("s1.key"), "--etcd-ca", own("ca.pem")}, "does not take the certificate of --etcd-cert"},
		{[]string{at, "--etcd-cert", own("client.pem"), "--etcd-key", own("etcd.key"), "--etcd-ca", own("ca.pem")}, "read the certificates"},
		{[]string{"--etcd=http://" + c.host(1) + ":" + e.port, "--etcd-ca", own("ca.pem")}, "write https://HOST:PORT"},
	} {
		l := &lab{t: t, run: filepath.Join(c.dir, "stranger")}
		r := l.sublet(append([]string{"serve", "--name", "s9", "--data", filepath.Join(c.dir, "stranger-data")}, one.flags...)...)
		if r.code != 2 || !strings.Contains(r.err, one.words) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("serve %v: exit code %d\n%s\nwant one line with %q", one.flags, r.code, r.err, one.words)
		}
	}
}
