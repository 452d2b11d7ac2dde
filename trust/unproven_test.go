package trust

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"sublet/vnet"
)

// TestVouchedConnectionsAreCounted: an account has so many connections by its
// tokens, all accounts together so many, and one that shows no token any more, or
// is closed, leaves its place.
func TestVouchedConnectionsAreCounted(t *testing.T) {
	var bounded *unproven
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if account := r.Header.Get("Account"); account != "" && !Vouch(r, vnet.TenantID(account)) {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	bounded = newUnproven(s.Listener)
	bounded.mostVouched = 5 // two of an account
	s.Listener, s.Config.ConnContext, s.Config.ConnState = bounded, WithCaller, Proven
	s.StartTLS()
	defer s.Close()
	transport := s.Client().Transport.(*http.Transport)
	ask := func(over http.RoundTripper, account string, want int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if account != "" {
			r.Header.Set("Account", account)
		}
		answer, err := over.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%q is answered %d, wanted %d", account, answer.StatusCode, want)
		}
	}
	var conns []*http.Transport // of one connection each
	for _, account := range []string{"a", "a", "b", "b", "c"} {
		conns = append(conns, transport.Clone())
		defer conns[len(conns)-1].CloseIdleConnections()
		ask(conns[len(conns)-1], account, http.StatusOK)
	}
	fresh := transport.Clone()
	defer fresh.CloseIdleConnections()
	ask(fresh, "a", http.StatusTooManyRequests) // two are a's
	ask(fresh, "d", http.StatusTooManyRequests) // five are there
	ask(conns[0], "a", http.StatusOK)           // has its place
	ask(conns[0], "", http.StatusOK)            // as with a token that was revoked
	ask(fresh, "a", http.StatusOK)
	bounded.mu.Lock()
	n := bounded.open.Len()
	bounded.mu.Unlock()
	if n != 1 {
		t.Errorf("%d connections of whom nobody knows, wanted the one without a token", n)
	}
	s.CloseClientConnections()
	s.Close()
	bounded.mu.Lock()
	defer bounded.mu.Unlock()
	if bounded.vouched != 0 || len(bounded.ofAccount) != 0 || len(bounded.ofAddress) != 0 {
		t.Errorf("after their end %d are counted: %v, %v", bounded.vouched, bounded.ofAccount, bounded.ofAddress)
	}
}

// TestDoubtedConnectionsMakePlace: what comes back among those of whom nobody knows
// takes no more places than there are.
func TestDoubtedConnectionsMakePlace(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u := newUnproven(l)
	u.most, u.mostOfAddress, u.mostVouched = 2, 2, 8
	var conns []*unprovenConn
	for range 4 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		c, err := u.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c.(*unprovenConn))
		if !u.vouch(conns[len(conns)-1], "a") {
			t.Fatal("no place for a token's connection")
		}
	}
	for _, c := range conns {
		u.doubt(c)
	}
	if u.open.Len() != 2 || u.vouched != 0 || !conns[0].closed || conns[3].closed {
		t.Errorf("%d are open, %d vouched; the oldest closed: %v, the newest: %v", u.open.Len(), u.vouched, conns[0].closed, conns[3].closed)
	}
}
