package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/plan"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// authority signs certificates into a directory.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", nil, nil)
	return a
}

// file is the path of a certificate (crt) or key.
func (a *authority) file(name, kind string) string { return filepath.Join(a.dir, name+"."+kind) }

func (a *authority) sign(name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	return a.issue(name, pkix.Name{CommonName: name}, parent, parentKey)
}

// signAs makes a certificate of another subject than the file's name says.
func (a *authority) signAs(file string, subject pkix.Name) { a.issue(file, subject, a.cert, a.key) }

func (a *authority) issue(name string, subject pkix.Name, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := must[*ecdsa.PrivateKey](a.t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"agent.example"}, BasicConstraintsValid: true, IsCA: parent == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der := must[[]byte](a.t)(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey))
	secret := must[[]byte](a.t)(x509.MarshalPKCS8PrivateKey(key))
	a.write(a.file(name, "crt"), "CERTIFICATE", der)
	a.write(a.file(name, "key"), "PRIVATE KEY", secret)
	return must[*x509.Certificate](a.t)(x509.ParseCertificate(der)), key
}

func (a *authority) write(path, kind string, der []byte) {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// client has a certificate of some name, by default from this authority.
func (a *authority) client(address, name string, by *authority) *api.Client {
	by.sign(name, by.cert, by.key)
	c := must[*api.Client](a.t)(api.NewTLSClient(address, by.file(name, "crt"), by.file(name, "key"), a.file("ca", "crt")))
	a.t.Cleanup(c.Close)
	return c
}

// serveTLS serves a rig's store on a port of this machine, and returns its address.
func serveTLS(t *testing.T, r *rig, ours *authority) string {
	t.Helper()
	ours.sign("operator", ours.cert, ours.key)
	tokens := must[*trust.Tokens](t)(trust.OpenTokens(filepath.Join(r.dir, "tokens.json"), time.Now))
	l := must[net.Listener](t)(trust.ListenTLSFor(tokens.Any, "127.0.0.1:0", ours.file("operator", "crt"), ours.file("operator", "key"), ours.file("ca", "crt")))
	server := must[*Server](t)(New(t.Context(), Config{Store: r.store, Tokens: tokens, AgentTLS: must[*tls.Config](t)(trust.TLSConfig(ours.file("operator", "crt"), ours.file("operator", "key"), ours.file("ca", "crt")))}))
	serving, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(serving, l) }()
	t.Cleanup(func() { stop(); <-done })
	return l.Addr().String()
}

func TestRemoteCallers(t *testing.T) {
	r, ours, theirs := newRig(t), newAuthority(t), newAuthority(t)
	ctx, at := within(t), serveTLS(t, r, ours)
	operator, agent := ours.client(at, "operator", ours), ours.client(at, "h1", ours)
	req := pair("net", vnet.Mbit)
	req.Tenant = "bin"
	must[api.Admission](t)(operator.Admit(ctx, req, false))
	before := must[plan.Host](t)(operator.PlanNow(ctx, "h1")).Origin()
	for host, c := range map[vnet.HostID]*api.Client{"h2": operator, "h1": agent} {
		revision := must[plan.Host](t)(operator.PlanNow(ctx, host)).Revision
		if err := c.Report(ctx, report.Report{Host: host, Revision: revision, Agent: "https://127.0.0.1:1"}); err != nil {
			t.Error(err)
		}
	}
	if p, err := agent.Plan(ctx, "h1", before); err != nil || len(plan.Of[plan.VNode](p)) != 1 {
		t.Errorf("the agent's plan: %+v, %v", p, err)
	}
	_, err := agent.Plan(ctx, "h2", plan.Origin{})
	wantError(t, "another host's plan", err, api.ErrForbidden)
	wantError(t, "another host's report", agent.Report(ctx, reportOf("h2")), api.ErrForbidden)
	_, err = agent.Leases(ctx)
	wantError(t, "an agent lists leases", err, api.ErrForbidden)
	if _, err := ours.client(at, "operator", theirs).Leases(ctx); err == nil {
		t.Error("a certificate of a foreign authority was accepted")
	}
}

// TestAgentsAreReachedWhereTheyConnectFrom: a host's certificate must not make
// the server connect to any other address.
func TestAgentsAreReachedWhereTheyConnectFrom(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	at := serveTLS(t, r, ours)
	ctx, agent := within(t), ours.client(at, "h1", ours)
	_, port, _ := net.SplitHostPort(at)
	for _, address := range []string{
		"https://169.254.169.254", "https://169.254.169.254:80", "https://127.0.0.2:7444", "https://[::1]:7444",
		"https://127.0.0.1:" + port, "https://0.0.0.0:" + port, "https://:" + port, "http://127.0.0.1:7444", "/run/x.sock", "https://u@127.0.0.1:7444",
	} {
		var field *vnet.FieldError
		if err := agent.Report(ctx, report.Report{Host: "h1", Agent: address}); !errors.As(err, &field) || field.Path != "agent" {
			t.Errorf("%s: %v", address, err)
		}
	}
	ours.sign("h1", ours.cert, ours.key)
	l := must[net.Listener](t)(trust.ListenTLS("127.0.0.1:0", ours.file("h1", "crt"), ours.file("h1", "key"), ours.file("ca", "crt")))
	go http.Serve(l, trust.OnlyOperator(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "[]") })))
	t.Cleanup(func() { l.Close() })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	operator := ours.client(at, "operator", ours)
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "", "agent.example"} {
		if err := agent.Report(ctx, report.Report{Host: "h1", Agent: "https://" + host + ":" + port}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := operator.Overlay(ctx, "h1"); err != nil {
			t.Errorf("the server does not reach an agent at %q: %v", host, err)
		}
	}
}

// A certificate of several common names is nobody's, whichever comes last.
func TestSeveralCommonNames(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	ctx, at := within(t), serveTLS(t, r, ours)
	for _, names := range [][]string{{"h1", "operator"}, {"operator", "h1"}, {"operator", "operator"}} {
		key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		for _, name := range names {
			template.Subject.ExtraNames = append(template.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: []int{2, 5, 4, 3}, Value: name})
		}
		der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, ours.cert, &key.PublicKey, ours.key))
		ours.write(ours.file("two", "crt"), "CERTIFICATE", der)
		ours.write(ours.file("two", "key"), "PRIVATE KEY", must[[]byte](t)(x509.MarshalPKCS8PrivateKey(key)))
		c := must[*api.Client](t)(api.NewTLSClient(at, ours.file("two", "crt"), ours.file("two", "key"), ours.file("ca", "crt")))
		_, err := c.Leases(ctx)
		wantError(t, fmt.Sprint("leases as ", names), err, api.ErrForbidden)
		_, err = c.Plan(ctx, "h1", plan.Origin{})
		wantError(t, fmt.Sprint("a plan as ", names), err, api.ErrForbidden)
		c.Close()
	}
}

// Another authority holds for connections from then on, without a restart.
func TestCertificatesAreReadAgain(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	ctx, at := within(t), serveTLS(t, r, ours)
	must[[]api.Host](t)(ours.client(at, "operator", ours).Hosts(ctx))
	former := must[*api.Client](t)(api.NewTLSClient(at, ours.file("operator", "crt"), ours.file("operator", "key"), ours.file("ca", "crt")))
	t.Cleanup(former.Close)
	time.Sleep(1100 * time.Millisecond) // files are looked at once a second
	ours.cert, ours.key = ours.sign("ca", nil, nil)
	ours.sign("operator", ours.cert, ours.key)
	if _, err := former.Hosts(ctx); err == nil {
		t.Error("a certificate of the former authority is still good")
	}
	must[[]api.Host](t)(ours.client(at, "operator", ours).Hosts(ctx))
}
