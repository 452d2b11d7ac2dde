package main

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// gos are words of Go and its libraries that must reach nobody.
var gos = []string{"strconv.", "time: invalid", "time: unknown", "time: missing", "dial ", "x509:", "tls: ", "invalid argument", "parsing time", "json:", "yaml:", "Go value", "Go struct", "invalid character", "lookup ", "context ", "i/o timeout", "ParseAddr", "ParsePrefix", "exec: ", "encoding/", "EOF", "goroutine", "panic", "bad flag", "<nil>"}

// plainly runs the program, which must fail with bad input, and say so in one line.
func plainly(t *testing.T, code int, stdin string, args ...string) {
	t.Helper()
	got, out, errs := sublet(t, stdin, args...)
	if got != code {
		t.Errorf("sublet %q: exit code %d, not %d: %s%s", args, got, code, out, errs)
	}
	if strings.Count(errs, "\n") != 1 {
		t.Errorf("sublet %q says more or less than one line: %q", args, errs)
	}
	for _, word := range gos {
		if strings.Contains(errs, word) {
			t.Errorf("sublet %q says %q: %s", args, word, errs)
		}
	}
}

// TestBadValuesOfFlags gives every flag of every command that takes no text at all
// what it cannot take.
func TestBadValuesOfFlags(t *testing.T) {
	tried := 0
	for name, c := range commands() {
		if !c.Runnable() {
			continue
		}
		try := func(f *pflag.Flag) {
			values := []string{"x", "1.5.2", "99999999999999999999999999d", "", "-", "\x00", "1 d", "ten"}
			switch f.Value.Type() {
			case "string", "stringArray":
				return
			case "stringSlice":
				values = []string{`a"b`}
			}
			for _, value := range values {
				tried++
				plainly(t, exitInput, "", append(strings.Fields(name), "--"+f.Name+"="+value)...)
			}
		}
		c.Flags().VisitAll(try)
		c.InheritedFlags().VisitAll(try)
	}
	if tried < 300 {
		t.Errorf("only %d values were tried", tried)
	}
}

func TestFlagsOfDurationsKnowDaysAndWeeks(t *testing.T) {
	tried := 0
	for name, c := range commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			for text, want := range map[string]string{"1d": "1d", "7d": "7d", "2w": "14d", "1d12h": "1d12h", "90s": "1m30s"} {
				if err := f.Value.Set(text); err != nil || f.Value.String() != want {
					t.Errorf("sublet %s --%s %s is %s, %v", name, f.Name, text, f.Value, err)
				}
				tried++
			}
		})
	}
	if tried < 100 {
		t.Errorf("only %d were tried", tried)
	}
}

// TestBadTexts gives flags and arguments that are read as text what they cannot take.
func TestBadTexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"renew n --for x", "renew n --until x", "renew n --for 1.5.2", "clone a b --from x", "clone a b --for x",
		"calendar --from x", "calendar --until -1h", "ledger --from x", "ledger --until 1y", "proof n --since x", "events --since x",
		"maintenance add h1 --for x", "maintenance add h1 --for 1h --start x", "token create --for x", "token create --for 1", "serve --lab x --notices x",
		"create substrate line:2 --capacity x", "create substrate line:2 --cpu x", "create substrate line:2 --memory x", "create substrate line:2 --latency x",
		"lab up line:x", "lab up line:99999999999999999999", "create substrate fat-tree:x", "create substrate waxman:1,2,3,4,5,6,7",
		"openflow run --dpid x --ports lo --controller tcp:h:1", "openflow run --dpid 1 --ports lo --controller tcp:h:x", "openflow run --dpid 1 --ports lo --controller tcp:h:99999999",
		"paths relay --host h --device all --sender 10.0.0.0/99 --inside 10.0.0.0/8", "paths relay --host h --device all --address x --sender 10.0.0.0/8 --inside 10.0.0.0/8",
		"paths run --host h --device d --source x --lists " + file, "paths run --host h --device d --lists " + file,
		"impair n/l loss=x", "impair n/l delay=x", "impair n/l delay=5", "impair n/l rate=x", "trace n/a b --size x",
		"bench openflow --controller h", "bench openflow --controller h:x", "bench embed " + file, "capture n/l --filter x", "capture n/l --snap -1",
		"import " + file, "convert " + file, "up " + file, "offers " + file, "up -", "convert -", "sim -", "bench embed -", "lab up " + file,
		"leases --server h", "leases --server h:x", "leases --server h:1 --cert " + file + " --key " + file + " --ca " + file, "leases --server h:1 --ca " + file,
		"serve --substrate " + file, "serve --policy " + file, "join n/a --address x",
		"check n --duration 1", "check n --duration 1e", "apply", "wait", "wait n --for x", "stage n --timeout 1", "top --interval x", "top -n x",
		"leases -o", "leases -x", "leases --=x", "leases --out table", "-", "\x00", "exec n", "exec n/a/b/c true", "cp a b", "cp n/a:x n/b:y",
	} {
		for _, text := range []string{"network: [", "{", "", "<x", "\x00\xff", "network: n\nnodes: 1\nlinks: {x: 1}"} {
			code, _, errs := sublet(t, text, strings.Split(line, " ")...)
			if code != exitInput {
				t.Errorf("sublet %q: exit code %d: %s", line, code, errs)
			}
			for _, word := range gos {
				if strings.Contains(errs, word) {
					t.Errorf("sublet %q says %q: %s", line, word, errs)
				}
			}
			if !strings.HasSuffix(line, " -") {
				break // the standard input is not read
			}
		}
	}
}

// TestServersThatAreNone calls what does not answer as a server does, by commands of
// each kind.
func TestServersThatAreNone(t *testing.T) {
	cert, key, ca := credentialsOf(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(start func(*httptest.Server), h http.HandlerFunc) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(s)
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	known := func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		s.StartTLS()
	}
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	nonsense := serve(known, says("nonsense"))
	cut := serve(known, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, address := range map[string]string{
		"nonsense": nonsense, "cut": cut, "one or other": nonsense + "," + cut,
		"other JSON":        serve(known, says(`{"a": [1, "x"]}`)),
		"404":               serve(known, http.NotFound),
		"another authority": serve((*httptest.Server).StartTLS, says("{}")),
		"no TLS":            serve((*httptest.Server).Start, says("{}")),
		"nobody":            closed.Listener.Addr().String(),
		"no such machine":   "no-such-machine.invalid:1",
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range []string{"leases", "hosts", "down n", "exec n/a true", "logs n/a", "capture n/l", "watch n", "events -w", "top -n 1", "token list", "check n", "version"} {
				code, _, errs := sublet(t, "", append([]string{"--server", address, "--cert", cert, "--key", key, "--ca", ca}, strings.Fields(line)...)...)
				if line == "version" {
					continue
				}
				if code != exitFailed || errs == "" {
					t.Errorf("%s: exit code %d: %s", line, code, errs)
				}
				for _, word := range gos {
					if strings.Contains(errs, word) {
						t.Errorf("%s says %q: %s", line, word, errs)
					}
				}
			}
		})
	}
}
