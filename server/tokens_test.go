package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// asked is the answer to a call with a token.
func asked(t *testing.T, c *http.Client, base, method, path, token, body string) (int, string) {
	t.Helper()
	r := must[*http.Request](t)(http.NewRequestWithContext(within(t), method, base+path, strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if strings.HasSuffix(path, "/exec") || strings.HasSuffix(path, "/capture") {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "sublet-session")
	}
	response := must[*http.Response](t)(c.Do(r))
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return response.StatusCode, ""
	}
	return response.StatusCode, string(must[[]byte](t)(io.ReadAll(response.Body)))
}

func tokenOf(t *testing.T, c *api.Client, scope string, networks ...vnet.VNetID) api.NewToken {
	t.Helper()
	return must[api.NewToken](t)(c.CreateToken(within(t), api.TokenAsk{Scope: scope, Networks: networks, For: time.Hour}))
}

// TestWhatTokensMay: a token does what its scope says, as its tenant, and never
// more than that, even where root sends it.
func TestWhatTokensMay(t *testing.T) {
	r := newRig(t)
	ctx, tenant := within(t), r.as(1)
	for _, name := range []string{"net", "other"} {
		must[api.Admission](t)(tenant.Admit(ctx, pair(name, vnet.Mbit), false))
	}
	must[api.Admission](t)(r.as(2).Admit(ctx, pair("theirs", vnet.Mbit), false))
	read, write, only := tokenOf(t, tenant, "read"), tokenOf(t, tenant, "write"), tokenOf(t, tenant, "write", "net")
	root, forged := tokenOf(t, r.as(0), "write"), read.Text[:len(read.Text)-4]+"AAAA"
	const lease = "/v1/leases/daemon/"
	for _, c := range []struct {
		token, method, path string
		status              int
	}{
		{read.Text, "GET", lease + "net", 200},
		{read.Text, "GET", "/v1/calendar", 200},
		{read.Text, "DELETE", lease + "other", 403},
		{read.Text, "GET", lease + "net/nodes/a/exec", 403},
		{read.Text, "GET", lease + "net/links/ab/capture", 403},
		{read.Text, "GET", lease + "net/nodes/a/kept", 403},
		{read.Text, "PUT", lease + "net/nodes/a/kept", 403},
		{write.Text, "GET", lease + "net/nodes/a/kept", 409}, // it keeps nothing
		{write.Text, "GET", "/v1/leases/bin/theirs/nodes/a/kept", 404},
		{only.Text, "PUT", lease + "other/nodes/a/kept", 404},
		{read.Text, "POST", "/v1/tokens", 403},
		{read.Text, "GET", "/v1/leases/bin/theirs", 404},
		{write.Text, "GET", "/v1/tokens", 403},
		{write.Text, "DELETE", "/v1/tokens/" + read.ID, 403},
		{write.Text, "GET", lease + "net/nodes/a/exec", 502}, // no agent here
		{write.Text, "PUT", "/v1/drained/h1", 403},
		{only.Text, "GET", lease + "net", 200},
		{only.Text, "GET", lease + "other", 404},
		{only.Text, "GET", "/v1/calendar", 403},
		{only.Text, "GET", "/v1/watch", 403},
		{only.Text, "GET", "/metrics", 403},
		{root.Text, "PUT", "/v1/drained/h1", 403},
		{root.Text, "GET", lease + "net", 404},
		{forged, "GET", "/v1/leases", 401},
		{read.ID, "GET", "/v1/leases", 401},
		{"slt_" + read.ID + "_", "GET", "/v1/leases", 401},
		{"anything", "GET", "/v1/leases", 401},
	} {
		if status, text := asked(t, over(r.as(0)), "http://sublet", c.method, c.path, c.token, ""); status != c.status {
			t.Errorf("%s %s: %d %s, wanted %d", c.method, c.path, status, text, c.status)
		}
	}
	if _, text := asked(t, over(tenant), "http://sublet", "GET", "/v1/leases", only.Text, ""); strings.Contains(text, "other") || !strings.Contains(text, `"net"`) {
		t.Errorf("a token for one network lists %s", text)
	}
	if status, _ := asked(t, over(tenant), "http://sublet", "POST", "/v1/leases", only.Text, `{"request":{"network":"third","nodes":[{"name":"a"}]}}`); status != 403 {
		t.Errorf("a token for one network leases another: %d", status)
	}
	wantError(t, "another's token is revoked", r.as(2).RevokeToken(ctx, read.ID), api.ErrNotFound)
	if list := must[[]trust.Token](t)(r.as(2).Tokens(ctx)); len(list) != 0 {
		t.Errorf("others' tokens are listed: %v", list)
	}
	if _, err := r.as(2).CreateToken(ctx, api.TokenAsk{Tenant: "daemon", Scope: "read", For: time.Hour}); err == nil {
		t.Error("a tenant makes tokens for another")
	}
	for _, ask := range []api.TokenAsk{{Scope: "all", For: time.Hour}, {Scope: "read"}, {Scope: "read", For: 367 * 24 * time.Hour}, {Scope: "read", For: time.Hour, Networks: []vnet.VNetID{"../x"}}, {Scope: "read", For: time.Hour, Name: "a\nb"}} {
		if _, err := tenant.CreateToken(ctx, ask); err == nil {
			t.Errorf("%+v makes a token", ask)
		}
	}
	for _, one := range []api.NewToken{read, write, only, root} {
		if secret := one.Text[len("slt_")+len(one.ID)+1:]; strings.Contains(r.log.String(), secret) || strings.Contains(string(must[[]byte](t)(os.ReadFile(filepath.Join(r.dir, "tokens.json")))), secret) {
			t.Error("a token is in the log or the file")
		}
	}
}

// TestTokensEnd: revoked, or when their time is over, also what is under way.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tenant := r.as(1)
	long := tokenOf(t, tenant, "read")
	short := must[api.NewToken](t)(tenant.CreateToken(within(t), api.TokenAsk{Scope: "read", For: 4 * time.Second}))
	ended := make(chan string, 2)
	for _, token := range []api.NewToken{long, short} {
		go func() {
			request, _ := http.NewRequestWithContext(t.Context(), "GET", "http://sublet/v1/watch", nil)
			request.Header.Set("Authorization", "Bearer "+token.Text)
			response, err := over(tenant).Do(request)
			if err != nil || response.StatusCode != 200 {
				ended <- "it did not begin"
				return
			}
			io.Copy(io.Discard, response.Body)
			ended <- token.ID
		}()
	}
	if first := <-ended; first != short.ID {
		t.Errorf("%s ended first", first)
	}
	if status, _ := asked(t, over(tenant), "http://sublet", "GET", "/v1/leases", short.Text, ""); status != 401 {
		t.Errorf("a token whose time is over is answered %d", status)
	}
	if file, err := os.Stat(filepath.Join(r.dir, "tokens.json")); err != nil || file.Mode().Perm() != 0o600 {
		t.Errorf("others read the file of tokens: %v, %v", file.Mode(), err)
	}
	r.stop()
	r.start() // they outlive a server
	if status, _ := asked(t, over(r.as(1)), "http://sublet", "GET", "/v1/leases", long.Text, ""); status != 200 {
		t.Errorf("after a restart a token is answered %d", status)
	}
	if err := r.as(1).RevokeToken(within(t), long.ID); err != nil {
		t.Fatal(err)
	}
	if status, _ := asked(t, over(r.as(1)), "http://sublet", "GET", "/v1/leases", long.Text, ""); status != 401 {
		t.Errorf("a revoked token is answered %d", status)
	}
}

// TestTokensOverTLS: without tokens nobody without a certificate gets a word;
// with one, who has none is told to identify themselves.
func TestTokensOverTLS(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	at := serveTLS(t, r, ours)
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	bare := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	if response, err := bare.Get("https://" + at + "/healthz"); err == nil {
		response.Body.Close()
		t.Errorf("without tokens, who has no certificate is answered %s", response.Status)
	}
	made := must[api.NewToken](t)(ours.client(at, "operator", ours).CreateToken(within(t), api.TokenAsk{Tenant: "somebody", Scope: "write", For: time.Hour}))
	for token, want := range map[string]int{"": 401, made.Text: 200, made.Text + "x": 401} {
		if status, text := asked(t, bare, "https://"+at, "GET", "/v1/leases", token, ""); status != want {
			t.Errorf("with token %.20q: %d %s", token, status, text)
		}
	}
	if status, text := asked(t, bare, "https://"+at, "PUT", "/v1/drained/h1", made.Text, ""); status != 403 {
		t.Errorf("a token drains a host: %d %s", status, text)
	}
}

// TestConnectionsByATokenAreBounded: one token opens no more connections than an
// account may have; others still get in.
func TestConnectionsByATokenAreBounded(t *testing.T) {
	r, ours := newRig(t), newAuthority(t)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 256 // so that 16 of an account are too many
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	at := serveTLS(t, r, ours)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	operator := ours.client(at, "operator", ours)
	token := func(tenant vnet.TenantID) string {
		return must[api.NewToken](t)(operator.CreateToken(within(t), api.TokenAsk{Tenant: tenant, Scope: "read", For: time.Hour})).Text
	}
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	status := func(token string) int {
		bare := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
		t.Cleanup(bare.CloseIdleConnections)
		status, _ := asked(t, &http.Client{Transport: bare}, "https://"+at, "GET", "/v1/leases", token, "")
		return status
	}
	mine, theirs := token("daemon"), token("bin")
	for n := range 16 {
		if got := status(mine); got != 200 {
			t.Fatalf("connection %d is answered %d", n+1, got)
		}
	}
	if got := status(mine); got != http.StatusTooManyRequests {
		t.Errorf("connection 17 is answered %d", got)
	}
	if got := status(theirs); got != 200 {
		t.Errorf("another account is answered %d", got)
	}
}

// TestTokensAreAsks: they are made no faster than leases are asked for.
func TestTokensAreAsks(t *testing.T) {
	r := newRig(t)
	policy := vnet.DefaultPolicy
	policy.Default = policy.Default.Over(vnet.Quota{vnet.QuotaAsks: 1})
	if err := r.server.SetPolicy(policy); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, err := r.as(1).CreateToken(within(t), api.TokenAsk{Scope: "none"}) // costs no write
		if problem := new(api.Problem); errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("100 tokens are asked for at a time")
}
