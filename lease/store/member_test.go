package store

import (
	"context"
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
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Members that are no server's go, and those of servers that have none come.
func TestMembersOf(t *testing.T) {
	servers := []Server{{Name: "a", Member: "192.0.2.1:1"}, {Name: "b", Member: "192.0.2.2:1"}, {Name: "c", Member: "192.0.2.3:1"}}
	members := []*etcdserverpb.Member{
		{ID: 1, PeerURLs: []string{"https://192.0.2.1:1"}}, {ID: 2, PeerURLs: []string{"https://192.0.2.2:1"}, IsLearner: true},
		{ID: 4, PeerURLs: []string{"https://192.0.2.4:1"}}, {ID: 5}}
	missing, surplus := membersOf(servers, members)
	if !slices.Equal(missing, []string{"https://192.0.2.3:1"}) || !slices.Equal(surplus, []uint64{4, 5}) {
		t.Errorf("missing are %v, surplus %v", missing, surplus)
	}
	if missing, surplus := membersOf(servers[:2], members[:2]); len(missing)+len(surplus) > 0 {
		t.Errorf("of members that are the servers', missing are %v, surplus %v", missing, surplus)
	}
}

// Who was alone may found a cluster with what they have; who was to join another one
// keeps what they have, and is told so.
func TestAloneBefore(t *testing.T) {
	at := dir(t)
	alone, err := Open(t.Context(), Config{Dir: at, Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	certificate, key := certificateOf(t)
	config := Config{Dir: at, Name: "one", Address: "127.0.0.1:1", Member: freeAddress(t),
		CA: certificate, Cert: certificate, Key: key}
	joining := config
	joining.Members, joining.Member = noServers, freeAddress(t)
	if c, err := Join(t.Context(), joining); err == nil {
		c.Close()
		t.Error("a server with a store of its own joined another one")
	}
	c, err := Join(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.AddServer(t.Context(), Server{Name: "two", Address: "127.0.0.1:2", Member: "127.0.0.1:3"}, ""); err != nil {
		t.Fatal(err)
	}
	answer, err := c.client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, m := range answer.Members {
		urls = append(urls, m.PeerURLs...)
	}
	slices.Sort(urls)
	want := []string{"https://127.0.0.1:3", "https://" + config.Member}
	slices.Sort(want)
	if !slices.Equal(urls, want) {
		t.Errorf("the members are %v, want %v", urls, want)
	}
}

func noServers(context.Context) ([]Server, error) { return nil, nil }

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificateOf makes files of a certificate, which is its authority's too, and its key.
func certificateOf(t *testing.T) (certificate, keyOfIt string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, one, one, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	at := dir(t)
	for file, block := range map[string]*pem.Block{"one.pem": {Type: "CERTIFICATE", Bytes: der}, "one.key": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(at, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(at, "one.pem"), filepath.Join(at, "one.key")
}

// A server with a slow disk leaves leading to others for a while, and not again soon: a
// store without others keeps it.
func TestYieldsOnceAMinute(t *testing.T) {
	now := time.Now()
	c := &Cluster{}
	c.rest = now.Add(-slowAgain / 2)
	if c.mayYield(now) {
		t.Error("it yields twice within a minute")
	}
	if !c.mayYield(now.Add(slowAgain)) {
		t.Error("it yields no more after a minute")
	}
}
