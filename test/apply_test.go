package test

import (
	"fmt"
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

// TestLiveForm: a node, a router, a switch and links come and go in a running
// network. What stays has the address it had, and loses no packet.
func TestLiveForm(t *testing.T) {
	s := newSupervisor(t, slowBackbone)
	was := `network: live
tenant: root
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h1}]
switches: [{name: s, host: h1}]
links:
  - {name: old, ends: [a, b], rate: 20Mbit}
  - {name: calm, ends: [c, b], rate: 5Mbit}
  - {name: sa, ends: [s, a], rate: 5Mbit}
  - {name: sc, ends: [s, c], rate: 5Mbit}
`
	is := `network: live
tenant: root
nodes: [{name: d, host: h2}, {name: a, host: h1, cpu: 0.5}, {name: b, host: h2}, {name: c, host: h1}]
routers: [{name: r, host: h2}]
switches: [{name: s, host: h1, ageing: 1m}]
links:
  - {name: dr, ends: [d, r], rate: 40Mbit}
  - {name: rb, ends: [r, b], rate: 40Mbit}
  - {name: calm, ends: [c, b], rate: 5Mbit}
  - {name: sc, ends: [s, c], rate: 5Mbit}
  - {name: sd, ends: [s, d], rate: 5Mbit}
  - {name: sa, ends: [s, a], rate: 5Mbit}
`
	request := parseRequest(t, was)
	s.admit(request)
	id := idOf(request)
	s.ready(id)
	before := got(s.api.Lease(t.Context(), id))(t)
	b, c := node{"h2", id, "b"}, node{"h1", id, "c"}
	a := node{"h1", id, "a"}
	flows := []*flow{s.flow(c, b), s.flow(b, c), s.flow(a, c)}
	for _, text := range []string{is, was, is} {
		lease := got(s.api.Lease(t.Context(), id))(t)
		updated := got(s.api.Update(t.Context(), lease, api.Update{Request: parseRequest(t, text)}))(t)
		if len(updated.Changes) == 0 {
			t.Error("nothing changes")
		}
		s.ready(id)
	}
	after := got(s.api.Lease(t.Context(), id))(t)
	for name, address := range before.Addresses {
		if after.Addresses[name] != address {
			t.Errorf("%s had %s, has %s", name, address, after.Addresses[name])
		}
	}
	s.flow(node{"h2", id, "d"}, b) // by the new router
	endLossless(flows...)
}

// got is a result without an error.
func got[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
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
	says(0, "as asked already", "up", at("100Mbit"))
	says(5, "apply", "up", at("200Mbit"))
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
	eventually(t, 10*time.Second, func() error { // a link that is being impaired carries nothing for a moment
		if r := l.sublet("exec", "n/a", "--", "ping", "-c", "1", "-W", "5", "b"); r.code != 0 || !strings.Contains(r.out, " time=4") {
			return fmt.Errorf("over a link of 200ms each way: exit code %d, %s%s", r.code, r.out, r.err)
		}
		return nil
	})
	says(0, "impairment of ab none", "apply", at("300Mbit"))
	says(3, "instead of 900Gbit", "apply", at("900Gbit"))
	says(2, "nodes[0].exclusive", "apply", l.file("alone.yaml", strings.Replace(text, "host: h1", "host: h1, exclusive: true", 1)))
	says(0, "its programs start again", "apply", "--dry-run", l.file("env.yaml", strings.Replace(text, "host: h1", "host: h1, env: {A: b}", 1)))
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
