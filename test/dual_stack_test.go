package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestDualStack: a request that only says so has both families everywhere, by OSPFv3
// and over a segment; what comes by apply has them too, and what was there keeps its
// addresses.
func TestDualStack(t *testing.T) {
	t.Parallel()
	if !haveFRR() {
		t.Skip("OSPFv3 takes FRR")
	}
	l := newLab(t, "demo")
	l.must("up", examples+"dual-stack.yaml")
	pinged6 := func(from, to string) {
		t.Helper()
		eventually(t, 15*time.Second, func() error {
			if r := l.sublet("exec", "dual/"+from, "--", "ping", "-6", "-q", "-n", "-c", "1", "-W", "1", to); r.code != 0 {
				return fmt.Errorf("%s to %s: %s%s", from, to, r.out, r.err)
			}
			return nil
		})
	}
	for _, pair := range [][2]string{{"web", "db"}, {"db", "shop"}, {"shop", "web"}, {"web", "r2"}} {
		pinged6(pair[0], pair[1])
		l.answersTo("dual", pair[0], pair[1])
	}
	if table := l.must("exec", "dual/r1", "--", "ip", "-6", "route", "show", "proto", "ospf"); !strings.Contains(table, "/64 ") {
		t.Errorf("r1 has not heard of the link of db:\n%s", table)
	}
	addresses := func() string {
		return l.must("exec", "dual/db", "--", "ip", "-6", "-br", "addr", "show", "dev", "eth0")
	}
	before := addresses()
	text, err := os.ReadFile(examples + "dual-stack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more := strings.NewReplacer("links:\n", "links:\n  - {ends: [cache, r1], rate: 5Mbit}\n", "{name: db}]", "{name: db}, {name: cache}]").Replace(string(text))
	l.must("apply", l.file("more.yaml", more))
	l.must("wait", "dual")
	pinged6("cache", "db")
	pinged6("db", "cache")
	if now := addresses(); now != before {
		t.Errorf("db had %s and has %s", before, now)
	}
	l.settled()
}
