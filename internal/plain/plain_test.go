package plain

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// gos are words of Go's that nobody else may read.
var gos = []string{"strconv.", "time: ", "dial ", "x509:", "tls:", "invalid argument", "parsing time", "json:", "yaml:", "into Go", "Parse", "lookup ", "context ", "EOF", "exec:", "i/o", "encoding/", "looking for", "listen tcp", "bind:", "Get \""}

func only(_ any, err error) error { return err }

// TestWordsOfLibraries takes the errors from where they come, so that others of a
// later Go are noticed.
func TestWordsOfLibraries(t *testing.T) {
	var number struct{ A int }
	var y map[string]int
	unclosed := "[x" // as an address
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken, closed := free.Addr().String(), ""
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		closed = l.Addr().String()
		l.Close()
	}
	defer free.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{only(time.ParseDuration("1x")), `"1x" is not a duration`},
		{only(time.ParseDuration("5")), `"5" is not a duration`},
		{only(time.ParseDuration("")), `"" is not a duration`},
		{only(time.Parse(time.RFC3339, "noon")), `"noon" is no time such as`},
		{only(time.Parse(time.RFC3339, "2027-02-31T08:00:00Z")), `is no time such as`},
		{only(strconv.Atoi("x")), `"x" is no number`},
		{only(strconv.ParseUint("-1", 10, 64)), `"-1" is no number`},
		{only(strconv.Atoi("99999999999999999999")), `is out of range`},
		{only(strconv.ParseBool("maybe")), `neither true nor false`},
		{only(netip.ParseAddr("10.0.0")), `"10.0.0" is no address`},
		{only(netip.ParsePrefix("10.0.0.0")), `"10.0.0.0" is no prefix`},
		{only(netip.ParsePrefix("10.0.0.0/x")), `"10.0.0.0/x" is no prefix`},
		{only(net.ParseMAC("zz")), `zz is no hardware address`},
		{only(hex.DecodeString("zz")), `hexadecimal digits`},
		{only(hex.DecodeString("abc")), `hexadecimal digits`},
		{only(csv.NewReader(strings.NewReader(`a"b`)).Read()), `quotation mark`},
		{only(url.Parse("http://" + unclosed)), `is no address such as`},
		{json.Unmarshal([]byte("{"), &number), `ends early`},
		{json.Unmarshal([]byte("{x"), &number), `it is no JSON, because of 'x'`},
		{json.Unmarshal([]byte(`{"A":"x"}`), &number), `A cannot be a JSON string`},
		{json.Unmarshal([]byte(`[]`), &number), `it cannot be a JSON array`},
		{yaml.Unmarshal([]byte("a: ["), &y), `it is no YAML`},
		{yaml.Unmarshal([]byte("a: x"), &y), `line 1 cannot be a str`},
		{only(net.Dial("tcp", closed)), "nothing answers at " + closed},
		{only(net.Dial("tcp", "127.0.0.1")), `127.0.0.1 has no port: write HOST:PORT`},
		{only(net.Dial("tcp", "127.0.0.1:nonsense")), `nonsense is no port`},
		{only(net.Dial("tcp", "::1:2:3")), `too many colons`},
		{only(net.Dial("unix", "/nonexistent/socket")), `nothing listens at /nonexistent/socket`},
		{only(net.Listen("tcp", taken)), taken + ` is in use by another program`},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "elsewhere", Server: "192.0.2.1:53"}}, `no machine is called elsewhere`},
		{only(http.Get("http://" + closed + "/v1/leases")), `nothing answers at`},
		{exec.Command("no-such-program").Run(), `"no-such-program" is not installed`},
		{syscall.EINVAL, `takes no such value`},
		{over.Err(), `interrupted`},
		{io.ErrUnexpectedEOF, `ended early`},
		{io.EOF, `ended early`},
	} {
		if c.err == nil {
			t.Fatalf("no error for %q", c.want)
		}
		hold(t, c.err, c.want)
	}
}

func hold(t *testing.T, err error, want string) {
	t.Helper()
	got := Text(err.Error())
	if !strings.Contains(got, want) {
		t.Errorf("%q became %q, wanted %q", err, got, want)
	}
	for _, word := range gos {
		if strings.Contains(got, word) {
			t.Errorf("%q became %q, which has %q", err, got, word)
		}
	}
}

func TestWordsOfTLS(t *testing.T) {
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = nil
		t.Cleanup(s.Close)
		return s
	}
	plainServer := quiet(httptest.NewServer(http.NotFoundHandler()))
	now := time.Now()
	own := certificateOf(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
	old.StartTLS()
	quiet(old)
	pool := x509.NewCertPool()
	pool.AddCert(own.Leaf)
	strict := httptest.NewUnstartedServer(http.NotFoundHandler())
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	strict.StartTLS()
	quiet(strict)
	for _, c := range []struct {
		server *httptest.Server
		config *tls.Config
		want   string
	}{
		{strict, &tls.Config{}, "not signed by the authority that --ca names"},
		{strict, &tls.Config{RootCAs: strict.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "elsewhere"}, "not for elsewhere"},
		{strict, &tls.Config{InsecureSkipVerify: true}, "asks for a certificate"},
		{old, &tls.Config{RootCAs: pool}, "the certificate ended at"},
		{plainServer, &tls.Config{}, "does not speak TLS"},
	} {
		conn, err := tls.Dial("tcp", c.server.Listener.Addr().String(), c.config)
		if err == nil { // TLS 1.3 tells it with the first answer
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		hold(t, err, c.want)
	}
	_, err := tls.X509KeyPair([]byte("x"), []byte("x"))
	hold(t, err, "it holds no certificate in PEM")
}

// certificateOf is one for 127.0.0.1 that signs itself.
func certificateOf(t *testing.T, from, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestOtherWordsStay(t *testing.T) {
	for _, s := range []string{"", "no lease alice/net", "hello.yaml:3:5: links[0]: 10Mbit is more than there is", "rate: write 10Mbit", "the agent of h1 cannot be reached: it has not reported yet", "open no.yaml: no such file or directory", "my.json: it is empty", "nodes[0].sysctls: no", "switches[0].tls: no"} {
		if got := Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}
