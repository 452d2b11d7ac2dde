package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func newTestNotifier(t *testing.T, config Notices) *notifier {
	n := newNotifier(config, prometheus.NewRegistry())
	n.backoff = time.Millisecond
	t.Cleanup(n.stop)
	return n
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func happeningOf(tenant vnet.TenantID, state string) vnet.Happening {
	id := vnet.LeaseID{Tenant: tenant, Network: "net"}
	return vnet.Happening{Lease: id, Kind: "end", What: id.String(), State: state}
}

// An event is posted signed, again after it was not taken, and to the operator too;
// nobody else's.
func TestWebhooksArePosted(t *testing.T) {
	type post struct{ path, signature, body string }
	posts, tries := make(chan post, 8), atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/alice" && tries.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		posts <- post{r.URL.Path, r.Header.Get(signatureHeader), string(body)}
	}))
	defer server.Close()
	n := newTestNotifier(t, Notices{URL: server.URL + "/operator", Key: []byte("operators"), Allow: loopback})
	n.learn([]vnet.Notify{{Tenant: "alice", URL: server.URL + "/alice", Secret: "s"}, {Tenant: "bob", URL: server.URL + "/bob", Secret: "s"}}, nil, nil)
	n.tell(happeningOf("alice", "within 1h"))
	seen := make(map[string]bool)
	for range 2 {
		select {
		case p := <-posts:
			secret := map[string]string{"/alice": "s", "/operator": "operators"}[p.path]
			if secret == "" || p.signature != signature(secret, []byte(p.body)) || !strings.Contains(p.body, `"state":"within 1h"`) {
				t.Errorf("posted %+v", p)
			}
			seen[p.path] = true
		case <-time.After(20 * time.Second):
			t.Fatalf("only %v were posted", seen)
		}
	}
	eventually(t, "nothing is counted", func() bool { return testutil.ToFloat64(n.sent.WithLabelValues("webhook")) == 2 })
	if len(seen) != 2 || tries.Load() != 3 {
		t.Errorf("posted to %v, to alice %d times", seen, tries.Load())
	}
}

// HMAC-SHA256 of RFC 4231, test case 2.
func TestSignature(t *testing.T) {
	const want = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
	if got := signature("Jefe", []byte("what do ya want for nothing?")); got != want {
		t.Errorf("%s", got)
	}
}

// Tenants' requests reach nothing internal, also by redirects, and the operator's do.
func TestWebhooksReachNothingInternal(t *testing.T) {
	var reached atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inner.Close()
	n := newTestNotifier(t, Notices{})
	port := inner.Listener.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	for _, url := range []string{inner.URL, strings.Replace(inner.URL, "127.0.0.1", "localhost", 1), strings.Replace(inner.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), strings.Replace(inner.URL, "127.0.0.1", "0.0.0.0", 1)} {
		if err := n.postEvent(t.Context(), vnet.Notify{URL: url}, false, vnet.Happening{}); !errors.Is(err, errInternal) || !errors.Is(err, errFinal) {
			t.Errorf("%s (port %d): %v", url, port, err)
		}
	}
	if reached.Load() != 0 {
		t.Fatalf("an internal address was reached %d times", reached.Load())
	}
	if err := n.postEvent(t.Context(), vnet.Notify{URL: inner.URL}, true, vnet.Happening{}); err != nil || reached.Load() != 1 {
		t.Errorf("the operator's own is not reached: %v", err)
	}
	redirect := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	if err := n.postEvent(t.Context(), vnet.Notify{URL: redirect.URL}, true, vnet.Happening{}); !errors.Is(err, errFinal) || reached.Load() != 1 {
		t.Errorf("a redirect was followed: %v", err)
	}
	sub := vnet.Substrate{Links: []vnet.SubstrateLink{{Ports: [2]vnet.Port{{Address: addr("1.2.3.4")}}}}}
	n.learn(nil, nil, &sub)
	for address, want := range map[string]bool{
		"8.8.8.8:443": true, "[2a00::1]:443": true, "1.2.3.4:80": false, "10.1.2.3:80": false, "172.20.0.1:80": false, "192.168.1.1:80": false, "100.64.0.1:80": false,
		"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "[fd00::1]:80": false, "[::1]:80": false, "[::]:80": false, "[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "[::ffff:10.0.0.1]:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false, "no address": false,
	} {
		if got := n.reachable(address) == nil; got != want {
			t.Errorf("%s can be reached: %v", address, got)
		}
	}
}

// Whoever does not answer costs room for so many notices, and keeps nobody waiting.
func TestNoticesNeverBlock(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	n := newTestNotifier(t, Notices{Allow: loopback})
	n.learn([]vnet.Notify{{Tenant: "alice", URL: server.URL}}, nil, nil)
	for range 2 * mostNotices {
		n.tell(happeningOf("alice", "within 1h"))
	}
	if lost := testutil.ToFloat64(n.lost.WithLabelValues("webhook")); lost < mostNotices-1 || n.waiting() > mostNotices {
		t.Errorf("%v are lost, %v wait", lost, n.waiting())
	}
	if lost, _ := n.became("alice"); lost == 0 {
		t.Error("alice is not told that notices were lost")
	}
	n.learn(nil, []vnet.TenantID{"alice"}, nil)
	n.stop()
	if n.waiting() != 0 {
		t.Errorf("%v wait for nobody", n.waiting())
	}
}

// A mail has the headers that it is given, whatever an event says.
func TestMailsHaveNoHeadersOfOthers(t *testing.T) {
	h := vnet.Happening{Time: time.Now(), Kind: "lease", What: "a/b\r\nBcc: all@example.org", State: "failed\nX: y", Why: "because\r\n.\r\nQUIT \u202eé"}
	m, err := mail.ReadMessage(strings.NewReader(string(message("s@example.org", "a@example.org", h))))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Header) != 8 || m.Header.Get("To") != "a@example.org" || m.Header.Get("Bcc") != "" || m.Header.Get("X") != "" {
		t.Errorf("headers %v", m.Header)
	}
	for _, address := range []string{"", "a", "-oQ/tmp@example.org", "a@b\nBcc: c@d", "a b@example.org", "a@example.org,b@example.org", "<a@b>", `"x"@b`, strings.Repeat("a", 254) + "@b"} {
		if vnet.CheckMail("mail", address) == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}

// Mail goes to sendmail, of what is worth one; so much of a tenant's.
func TestMailIsSent(t *testing.T) {
	dir := t.TempDir()
	sendmail := filepath.Join(dir, "sendmail")
	if err := os.WriteFile(sendmail, []byte("#!/bin/sh\necho \"$@\" >> "+dir+"/args\ncat >> "+dir+"/mails\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	n := newTestNotifier(t, Notices{Sendmail: sendmail, From: "sublet@example.org"})
	n.learn([]vnet.Notify{{Tenant: "alice", Mail: "alice@example.org"}}, nil, nil)
	n.tell(vnet.Happening{Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}, Kind: "change", State: "revision 1"})
	n.tell(happeningOf("alice", "within 1h"))
	n.tell(happeningOf("bob", "within 1h"))
	eventually(t, "no mail is counted", func() bool { return testutil.ToFloat64(n.sent.WithLabelValues("mail")) == 1 })
	args, mails := string(must[[]byte](t)(os.ReadFile(dir+"/args"))), string(must[[]byte](t)(os.ReadFile(dir+"/mails")))
	if args != "-i -f sublet@example.org alice@example.org\n" || strings.Count(mails, "Subject: ") != 1 || !strings.Contains(mails, "alice/net: within 1h") {
		t.Errorf("sendmail was called with %q and\n%s", args, mails)
	}
	for range 2 * mailsAtOnce {
		n.tell(happeningOf("alice", "within 1h"))
	}
	if lost := testutil.ToFloat64(n.lost.WithLabelValues("mail")); lost < mailsAtOnce {
		t.Errorf("%v mails are lost", lost)
	}
}

// Mail to the operator about one account is bounded, and that about hosts goes out
// beside; requests that wait are their tenants' matter.
func TestOperatorsMailIsNotOneTenants(t *testing.T) {
	useSubordinates(t, "daemon:165536:65536\n")
	n := newTestNotifier(t, Notices{Sendmail: "/bin/true", From: "sublet@example.org", Mail: "root@example.org"})
	sent := make(chan vnet.Happening, 3*mailsAtOnce)
	n.mail = func(_ context.Context, _ vnet.Notify, h vnet.Happening) error { sent <- h; return nil }
	n.tell(vnet.Happening{Lease: vnet.LeaseID{Tenant: "daemon", Network: "net"}, Kind: kindWaiting, State: "waits"})
	for i := range 2 * mailsAtOnce {
		n.tell(happeningOf([]vnet.TenantID{"daemon", "uid165536"}[i%2], "within 1h"))
	}
	n.tell(happeningOf("bob", "within 1h"))
	n.tell(vnet.Happening{Kind: string(report.KindHost), What: "h1", State: "unreadable"})
	if lost := testutil.ToFloat64(n.lost.WithLabelValues("mail")); lost < mailsAtOnce-1 {
		t.Errorf("%v mails about one account are lost", lost)
	}
	about := make(map[vnet.TenantID]int)
	eventually(t, "the last is not sent", func() bool {
		for len(sent) > 0 {
			about[(<-sent).Lease.Tenant]++
		}
		return about[""] == 1
	})
	if about["bob"] != 1 || about["daemon"]+about["uid165536"] > mailsAtOnce+1 {
		t.Errorf("sent %v", about)
	}
}

// Subordinate users do not multiply who is told, nor what waits.
func TestSubordinatesShareNotices(t *testing.T) {
	useSubordinates(t, "daemon:165536:65536\n")
	r := newRig(t)
	r.agents()
	ctx := within(t)
	for i := range mostNotifiedOfAccount + 1 {
		_, err := r.as(165536+i).SetNotify(ctx, "", api.NotifyAsk{URL: "https://example.org/hook"})
		if full := i == mostNotifiedOfAccount; (err != nil) != full {
			t.Errorf("notices of subordinate user %d: %v", i, err)
		}
	}
	must[api.Notify](t)(r.as(165536).SetNotify(ctx, "", api.NotifyAsk{URL: "https://example.org/other"}))
	must[api.Notify](t)(r.as(2).SetNotify(ctx, "", api.NotifyAsk{URL: "https://example.org/hook"}))
	for i := range mostWaitingOfTenant + 1 {
		_, err := r.as(165536+i).Ask(ctx, api.Ask{Request: pair("net", 2*vnet.Gbit), Waiting: vnet.WaitingOffer})
		if full := i == mostWaitingOfTenant; (err != nil) != full {
			t.Errorf("a request of subordinate user %d waits: %v", i, err)
		}
	}
}

// Where a tenant is told is theirs to set, is kept, and hides its secret.
func TestNotifyIsSet(t *testing.T) {
	r := newRig(t)
	alice, ctx := r.as(1), within(t)
	n := must[api.Notify](t)(alice.SetNotify(ctx, "", api.NotifyAsk{URL: "https://example.org/hook"}))
	if n.Tenant != "daemon" || len(n.Secret) < 16 {
		t.Errorf("%+v", n)
	}
	for _, ask := range []api.NotifyAsk{{}, {URL: "file:///etc/passwd"}, {URL: "https://u:p@example.org/"}, {URL: "gopher://x"}, {URL: "http://"}, {Mail: "alice@example.org"}} {
		if _, err := alice.SetNotify(ctx, "", ask); err == nil {
			t.Errorf("%+v was taken", ask)
		}
	}
	if _, err := alice.SetNotify(ctx, "bin", api.NotifyAsk{URL: "https://example.org/"}); err == nil {
		t.Error("a tenant set another's")
	}
	r.stop()
	r.start()
	got := must[api.Notify](t)(r.as(1).Notify(ctx, ""))
	if got.URL != n.URL || got.Secret != "" {
		t.Errorf("after a restart: %+v", got)
	}
	if err := r.as(os.Geteuid()).RemoveNotify(ctx, "daemon"); err != nil {
		t.Error(err)
	}
	if got := must[api.Notify](t)(r.as(1).Notify(ctx, "")); got.URL != "" {
		t.Errorf("after it was removed: %+v", got)
	}
}
