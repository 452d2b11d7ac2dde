package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/lease/store"
	"sublet/trust"
	"sublet/vnet"
)

// twoServers is a cluster in which s1 leads.
type twoServers struct{ name, address string }

func (c twoServers) Name() string { return c.name }

func (c twoServers) Leader() (string, string, <-chan struct{}) { return "s1", c.address, nil }

func (c twoServers) Gone(context.Context, string) error { return nil }

func (c twoServers) Rests() bool { return false }

func (c twoServers) Servers(context.Context) ([]api.Server, error) { return nil, nil }

func (c twoServers) AddServer(context.Context, api.Server, string) error { return nil }

func (c twoServers) RemoveServer(context.Context, string) error { return nil }

// What another server states of who asked counts; what anybody else states does
// not, be it the operator, and a follower replaces what a caller states.
func TestOnlyServersStateWhoAsked(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	ours.signAs("s1", pkix.Name{CommonName: vnet.OperatorName, OrganizationalUnit: []string{trust.ServerUnit}})
	config := must[*tls.Config](t)(trust.TLSConfig(ours.file("s1", "crt"), ours.file("s1", "key"), ours.file("ca", "crt")))
	l := must[net.Listener](t)(trust.ListenTLS("127.0.0.1:0", ours.file("s1", "crt"), ours.file("s1", "key"), ours.file("ca", "crt")))
	leader := NewFront(twoServers{"s1", l.Addr().String()}, config, time.Now, r.server.log)
	leader.begin(&term{server: r.server, api: r.server.handler(), ctx: t.Context()})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- leader.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-done })

	asked := func(name, statement string) string {
		ours.sign("operator", ours.cert, ours.key)
		ours.sign("h1", ours.cert, ours.key)
		client := must[*tls.Config](t)(trust.TLSConfig(ours.file(name, "crt"), ours.file(name, "key"), ours.file("ca", "crt")))
		request := must[*http.Request](t)(http.NewRequestWithContext(within(t), http.MethodGet, "https://"+l.Addr().String()+"/v1/policy", nil))
		request.Header.Set("Sublet-Asked-By", statement)
		response := must[*http.Response](t)((&http.Transport{TLSClientConfig: client, DisableKeepAlives: true}).RoundTrip(request))
		response.Body.Close()
		return response.Status
	}
	header := http.Header{}
	tenant := httptest.NewRequest(http.MethodGet, "/", nil)
	if err := trust.State(header, tenant); err != nil {
		t.Fatal(err)
	}
	nobody := header.Get("Sublet-Asked-By")
	for name, want := range map[string]string{"s1": "403", "operator": "200", "h1": "403"} {
		if got := asked(name, nobody); !strings.HasPrefix(got, want) {
			t.Errorf("%s states that nobody asked: %s, want %s", name, got, want)
		}
	}
	root := base64.StdEncoding.EncodeToString([]byte(`{"Name": "root", "Operator": true}`))
	for name, want := range map[string]string{"s1": "200", "h1": "403"} {
		if got := asked(name, root); !strings.HasPrefix(got, want) {
			t.Errorf("%s states that the operator asked: %s, want %s", name, got, want)
		}
	}
	if got := asked("s1", "not base64"); !strings.HasPrefix(got, "403") {
		t.Errorf("a statement that cannot be read: %s", got)
	}

	follower := NewFront(twoServers{"s2", l.Addr().String()}, config, time.Now, r.server.log)
	socket := must[net.Listener](t)(Listen(t.TempDir(), nil))
	followed := make(chan error, 1)
	go func() { followed <- follower.Serve(ctx, socket) }()
	t.Cleanup(func() { stop(); <-followed })
	c := api.NewClient(socket.Addr().String())
	defer c.Close()
	if _, err := c.Hosts(within(t)); err != nil {
		t.Errorf("the operator by a follower's socket: %v (user %d)", err, os.Geteuid())
	}
	stranger := NewFront(twoServers{"s2", serveTLS(t, r, ours)}, config, time.Now, r.server.log)
	w := httptest.NewRecorder()
	if stranger.pass(w, httptest.NewRequestWithContext(within(t), http.MethodGet, "/v1/hosts", nil)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "no server's") {
		t.Errorf("passed on to a certificate that is no server's: %d %s", w.Code, w.Body)
	}
}

// read is a store that is read by one who does not lead.
type read struct {
	*store.Store
	version, newest int64
}

func (s *read) Version() int64 { return s.version }

func (s *read) Newest(context.Context) (int64, error) { return s.newest, nil }

// A follower answers by its own book only what that book can answer, and only if
// the store has nothing newer.
func TestFollowersReadTheStore(t *testing.T) {
	r := newRig(t)
	must[api.Admission](t)(r.as(os.Geteuid()).Admit(within(t), pair("net", vnet.Mbit), false))
	passed := 0
	from := &read{r.store, 1, 1}
	f := must[*reader](t)(newReader(Config{Log: slog.New(slog.NewTextHandler(r.log, nil))}, from, func(http.ResponseWriter, *http.Request) { passed++ }))
	f.load()
	subject := pkix.Name{CommonName: vnet.OperatorName, OrganizationalUnit: []string{trust.ServerUnit}}
	subject.Names = []pkix.AttributeTypeAndValue{{Type: []int{2, 5, 4, 3}, Value: vnet.OperatorName}}
	certificate := &x509.Certificate{Subject: subject}
	server := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}, VerifiedChains: [][]*x509.Certificate{{certificate}}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Set("Sublet-Asked-By", base64.StdEncoding.EncodeToString([]byte(`{"Name": "root", "Operator": true}`)))
		q.TLS = server
		q, _ = trust.Stated(q)
		f.mux.ServeHTTP(w, q)
	}))
	defer front.Close()
	ask := func(path string) string {
		response := must[*http.Response](t)(http.Get(front.URL + path))
		defer response.Body.Close()
		return string(must[[]byte](t)(io.ReadAll(response.Body)))
	}
	if text := ask("/v1/leases"); passed != 0 || !strings.Contains(text, `"net"`) {
		t.Errorf("leases of the store: passed on %d times, %s\n%s", passed, text, r.log)
	}
	for n, path := range []string{"/v1/hosts", "/v1/leases/root/net?until=gone", "/v1/policy"} {
		if ask(path); passed != n+1 {
			t.Errorf("%s was not passed on", path)
		}
	}
	from.newest = 2
	if ask("/v1/leases"); passed != 4 {
		t.Error("an old book answered")
	}
}
