package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTokenIsShown calls a server by a token from each place where it may stand, for
// what is asked and for a session.
func TestTokenIsShown(t *testing.T) {
	var shown atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	dir := filepath.Join(t.TempDir(), "none")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "api.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ environment, flags, want string }{
		{"", "", ""},
		{"of-environment", "", "Bearer of-environment"},
		{"of-environment", "--token of-flag", "Bearer of-flag"},
		{"", "--token-file " + file, "Bearer of-file"},
	} {
		t.Setenv("SUBLET_TOKEN", c.environment)
		shown.Store("nothing was asked")
		code, _, _ := sublet(t, "", append(strings.Fields("--run "+dir+" "+c.flags), "leases")...)
		if code != exitFailed || shown.Load() != c.want {
			t.Errorf("%+v: exit code %d, shown was %q", c, code, shown.Load())
		}
	}
	t.Setenv("SUBLET_TOKEN", "secret-of-environment")
	if _, out, errs := sublet(t, "", "leases", "--help"); strings.Contains(out+errs, "secret-of-environment") {
		t.Error("the help shows the token")
	}
	for _, flags := range []string{"--token x --token-file " + file, "--token-file /nonexistent", "--token a\tb"} {
		plainly(t, exitInput, "", append(strings.Split(flags, " "), "leases")...)
	}
}
