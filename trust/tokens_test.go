package trust

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sublet/vnet"
)

func testTokens(t *testing.T, now func() time.Time) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(filepath.Join(t.TempDir(), "tokens.json"), now)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func create(t *testing.T, tokens *Tokens, tenant vnet.TenantID, length time.Duration) (string, Token) {
	t.Helper()
	text, made, err := tokens.Create(Token{Tenant: tenant, Scope: ScopeRead, Expires: tokens.now().Add(length)})
	if err != nil {
		t.Fatal(err)
	}
	return text, made
}

// TestTokensAreCountedByAccount: subordinate users have no tokens beside those of
// their owner.
func TestTokensAreCountedByAccount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(path, []byte("daemon:165536:65536\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	SetSubordinates(path)
	t.Cleanup(func() { SetSubordinates("/etc/subuid") })
	tokens := testTokens(t, time.Now)
	for i := range MostTokens {
		create(t, tokens, []vnet.TenantID{"daemon", "uid165537", "uid165538"}[i%3], time.Hour)
	}
	for _, tenant := range []vnet.TenantID{"daemon", "uid165539"} {
		if _, _, err := tokens.Create(Token{Tenant: tenant, Scope: ScopeRead, Expires: time.Now().Add(time.Hour)}); err == nil {
			t.Errorf("%s makes one more than an account has", tenant)
		}
	}
	create(t, tokens, "bin", time.Hour)
}

// TestCallersWaitForNoWriting: a call with a token, and a handshake, go on while the
// file is written.
func TestCallersWaitForNoWriting(t *testing.T) {
	tokens := testTokens(t, time.Now)
	text, made := create(t, tokens, "daemon", time.Hour)
	tokens.writing.Lock()
	defer tokens.writing.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, ok := tokens.CallerOf(text); !ok || c.Tenant != "daemon" || !tokens.Any() {
			t.Errorf("the token is of %+v", c)
		}
		_, end := tokens.While(t.Context(), &made)
		end()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("a caller waits until the file is written")
	}
}

// TestExpiredTokensLeaveNothing: neither in the file nor in memory.
func TestExpiredTokensLeaveNothing(t *testing.T) {
	now := time.Now()
	tokens := testTokens(t, func() time.Time { return now })
	text, made := create(t, tokens, "daemon", time.Minute)
	while, end := tokens.While(t.Context(), &made)
	defer end()
	now = now.Add(time.Hour)
	if _, ok := tokens.CallerOf(text); ok || tokens.Any() {
		t.Error("a token outlives its time")
	}
	create(t, tokens, "daemon", time.Minute)
	<-while.Done() // within the test's time
	if _, ok := tokens.uses[made.ID]; ok || len(tokens.kept.Load().byID) != 1 {
		t.Errorf("uses %v and %d tokens are left", tokens.uses, len(tokens.kept.Load().byID))
	}
}
