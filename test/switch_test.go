package test

import (
	"os"
	"strings"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
)

// The example of switches, from the outside: who shall reach whom does, the
// promises hold, and the router forwards by its fast path.
//
//	alice -50M- s1 on h1 -10M- guest (its frames go to s2 only)
//	            |
//	            100M
//	            |
//	bob --50M-- s2 on h2 -50M- gate (router) -50M- server
func TestSwitches(t *testing.T) {
	l := newLab(t, "demo")
	text, err := os.ReadFile("../examples/switch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l.up(strings.NewReplacer("site: lyon", "host: h1", "site: paris", "host: h2").Replace(string(text)))
	l.settled()
	for _, c := range []struct{ from, to string }{{"alice", "bob"}, {"bob", "alice"}, {"alice", "server"}, {"server", "bob"}, {"guest", "gate"}, {"guest", "server"}} {
		l.must("exec", "office/"+c.from, "--", "ping", "-c2", "-i0.2", "-W2", c.to)
	}
	if out := l.must("exec", "office/alice", "--", "ip", "-4", "address", "show", "eth0"); !strings.Contains(out, "/24") {
		t.Errorf("alice is in no subnet:\n%s", out)
	}
	l.checked("office", broken, "--duration", "1s")
	paths := l.paths()
	if paths[plan.KindVxRouter].Packets == 0 || paths[plan.KindSwitchPort].Packets == 0 {
		t.Errorf("packets by kind: %v", paths)
	}
	l.must("down", "office")
}

// A node of two segments has one address: stations of the second reach it there
// by a route without a gateway.
//
//	h1:  a --- s                  h2
//	           |
//	           +------- c --- t --- b     s and t are switches
func TestNodeOfTwoSegments(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: two
nodes:
  - {name: a, host: h1}
  - {name: b, host: h2}
  - {name: c, host: h2}
switches:
  - {name: s, host: h1}
  - {name: t, host: h2}
links:
  - {ends: [a, s], rate: 10Mbit}
  - {ends: [c, s], rate: 10Mbit}
  - {ends: [b, t], rate: 10Mbit}
  - {ends: [c, t], rate: 10Mbit}
`)
	l.settled()
	for _, c := range []struct{ from, to string }{{"a", "c"}, {"b", "c"}, {"c", "a"}, {"c", "b"}} {
		l.must("exec", "two/"+c.from, "--", "ping", "-c2", "-i0.2", "-W2", c.to)
	}
	l.must("down", "two")
}

// paths adds up what switches and routers forward, by kind; all do it by their
// fast paths.
func (l *lab) paths() map[plan.Kind]report.Forwarding {
	l.t.Helper()
	type host struct{ Paths []report.Forwarding }
	sums := make(map[plan.Kind]report.Forwarding)
	for _, h := range decode[[]host](l.t, l.must("plan", "-o", "json")) {
		for _, p := range h.Paths {
			if !p.Fast {
				l.t.Errorf("%s forwards by its stack: %s", p.Of, p.Why)
			}
			sum := sums[p.Kind]
			sum.Packets += p.Packets
			sum.Chained += p.Chained
			sums[p.Kind] = sum
		}
	}
	return sums
}

// Without agents, packets go on through switches and routers, and agents that
// come back take over what they find.
func TestAgentsOfSwitchesKilled(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	request := parseRequest(t, `network: lan
tenant: root
nodes: [{name: a, host: h1}, {name: d, host: h1}, {name: c, host: h2}, {name: e, host: h2}]
routers: [{name: r, host: h2}]
switches: [{name: s, host: h1}, {name: s2, host: h2}]
links: [{ends: [a, s]}, {ends: [s, s2]}, {ends: [s2, r]}, {ends: [s2, e]}, {ends: [r, c]}, {ends: [d, r]}]
`)
	id := idOf(request)
	s.settled()
	s.admit(request)
	s.ready(id)
	s.settled()
	a, c, d, e := node{"h1", id, "a"}, node{"h2", id, "c"}, node{"h1", id, "d"}, node{"h2", id, "e"}
	flows := []*flow{s.flow(a, c), s.flow(c, a), s.flow(a, e), s.flow(d, c)}
	time.Sleep(time.Second)
	for _, h := range s.hostNames() {
		s.kill(agentOf(h))
	}
	time.Sleep(5 * time.Second) // longer than a copy of a router's table is believed
	for _, h := range s.hostNames() {
		s.start(agentOf(h))
	}
	s.settled()
	time.Sleep(time.Second)
	endLossless(flows...)
	for kind, p := range s.paths() {
		if p.Chained < p.Packets/8 { // those that come by tunnels and not through a queue
			t.Errorf("of %d packets of a %s only %d did not step into its namespace", p.Packets, kind, p.Chained)
		}
	}
}
