package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// TestLiveApply: two links of a running network change their rates at command,
// up and down again; their streams follow, and the link that does not change
// loses no packet.
func TestLiveApply(t *testing.T) {
	s := newSupervisor(t, slowBackbone)
	request := parseRequest(t, `network: live
tenant: root
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h1}]
links:
  - {name: far, ends: [a, b], rate: 20Mbit}
  - {name: near, ends: [a, c], rate: 20Mbit}
  - {name: calm, ends: [c, b], rate: 5Mbit}
`)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	a, b, c := node{"h1", id, "a"}, node{"h2", id, "b"}, node{"h1", id, "c"}
	flows := []*flow{s.flow(c, b), s.flow(b, c)}
	streams := []*stream{s.stream(a, b), s.stream(a, c)}
	for _, rate := range []vnet.Rate{80 * vnet.Mbit, 20 * vnet.Mbit} {
		lease, err := s.api.Lease(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			request.Links[i].Bandwidth = [2]vnet.Bandwidth{vnet.Static(rate), vnet.Static(rate)}
		}
		began := time.Now()
		if _, err := s.api.Update(t.Context(), lease, api.Update{Request: request}); err != nil {
			t.Fatal(err)
		}
		for _, f := range streams {
			f.changes(began, rate)
		}
	}
	endLossless(flows...)
}

// What people type: difference, change, refusal with an offer, a longer window,
// what cannot be changed, and a file that comes back as it was written.
func TestApplyAndRenew(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	text := `network: n
window: {for: 1h}
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
links:
  - {name: ab, ends: [a, b], rate: 100Mbit}
`
	l.up(text)
	says := func(code int, want string, args ...string) {
		t.Helper()
		if r := l.sublet(args...); r.code != code || !strings.Contains(r.out+r.err, want) {
			t.Errorf("sublet %v: exit code %d, %s%s\nwant %d, %q", args, r.code, r.out, r.err, code, want)
		}
	}
	at := func(rate string) string { return l.file(rate+".yaml", strings.Replace(text, "100Mbit", rate, 1)) }
	says(2, "apply", "up", at("100Mbit"))
	says(0, "nothing changes", "apply", at("100Mbit"))
	says(0, "rate of ab would be 300Mbit instead of 100Mbit", "apply", "--dry-run", at("300Mbit"))
	if got := l.alloc("n", "ab", "a"); got != 100*vnet.Mbit {
		t.Errorf("after a dry run: %s", got)
	}
	says(0, "rate of ab 300Mbit instead of 100Mbit", "apply", at("300Mbit"))
	if got := l.alloc("n", "ab", "a"); got != 300*vnet.Mbit {
		t.Errorf("after apply: %s", got)
	}
	slow := strings.Replace(text, "100Mbit}", "300Mbit, impair: {delay: 200ms}}", 1)
	says(0, "impairment of ab delay=200ms instead of none", "apply", l.file("slow.yaml", slow))
	if r := l.sublet("exec", "n/a", "--", "ping", "-c", "1", "-W", "5", "b"); r.code != 0 || !strings.Contains(r.out, " time=4") {
		t.Errorf("over a link of 200ms each way: exit code %d, %s%s", r.code, r.out, r.err)
	}
	says(0, "impairment of ab none", "apply", at("300Mbit"))
	says(3, "instead of 900Gbit", "apply", at("900Gbit"))
	says(2, "nodes[0].cpu", "apply", l.file("cpu.yaml", strings.Replace(text, "host: h1", "host: h1, cpu: 1", 1)))
	says(2, "sublet up", "apply", l.file("none.yaml", strings.Replace(text, "network: n", "network: none", 1)))
	says(0, "duration", "renew", "n", "--for", "3h")
	says(2, "has passed", "renew", "n", "--until", "2020-01-01T00:00:00Z")
	says(2, "either", "renew", "n")
	written := filepath.Join(t.TempDir(), "n.yaml")
	if err := os.WriteFile(written, []byte(l.must("get", "n")), 0o600); err != nil {
		t.Fatal(err)
	}
	says(0, "nothing changes", "apply", written)
	l.must("exec", "n/a", "--", "ping", "-c", "1", "-W", "2", "b")
	l.settled()
	l.must("down", "n")
}
