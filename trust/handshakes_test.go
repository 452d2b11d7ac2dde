package trust

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What keeps a caller out is said once for each address and cause, again after a
// while, and never of more addresses than are remembered.
func TestFailedHandshakesAreSaidOnce(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	h := &handshakes{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }, told: make(map[string]told)}
	lines := func() int { return strings.Count(log.String(), "level=WARN") }
	fail := func(remote, cause string) {
		fmt.Fprintf(h, "http: TLS handshake error from %s: %s\n", remote, cause)
	}
	for port := range 100 {
		fail(fmt.Sprintf("10.0.0.2:%d", 40000+port), "tls: client didn't provide a certificate")
		fail(fmt.Sprintf("[fd00::2]:%d", 40000+port), "EOF")
	}
	if lines() != 2 || !strings.Contains(log.String(), "remote=10.0.0.2") || !strings.Contains(log.String(), "provide a certificate") {
		t.Fatalf("two callers that fail often are told as:\n%s", log.String())
	}
	fail("10.0.0.2:1", "tls: expired certificate")
	if lines() != 3 {
		t.Errorf("another cause is not said:\n%s", log.String())
	}
	for i := range 10 * mostRefusers {
		fail(fmt.Sprintf("10.1.%d.%d:1", i/200, i%200), "EOF")
	}
	if lines() != mostRefusers+1 {
		t.Errorf("%d addresses are told", lines())
	}
	now = now.Add(tellAgain + time.Second)
	fail("10.0.0.2:1", "tls: expired certificate")
	if lines() != mostRefusers+2 {
		t.Error("what still fails after a while is not said again")
	}
	fmt.Fprintln(h, "http: something else")
	if lines() != mostRefusers+2 {
		t.Error("other errors are warnings")
	}
}
