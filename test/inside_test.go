package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// withTwoFamilies is a router between two nodes, which have addresses of both.
//
//	a -- ar -- r -- rb -- b
const withTwoFamilies = `network: n
nodes: [{name: a, host: h1}, {name: b, host: h1}]
routers: [{name: r, host: h1}]
links:
  - {name: ar, ends: [{node: a, address: [10.1.0.2/24, "2001:db8:1::2/64"]}, {node: r, address: [10.1.0.1/24, "2001:db8:1::1/64"]}], rate: 10Mbit}
  - {name: rb, ends: [{node: b, address: [10.2.0.2/24, "2001:db8:2::2/64"]}, {node: r, address: [10.2.0.1/24, "2001:db8:2::1/64"]}], rate: 10Mbit}
`

// TestInterfaceStaysDownInside: one that root of a node sets down stays so, and the
// lease says it, also after the agent was killed; nothing comes in by it, and a
// check calls it no broken promise. Set up it has its addresses and routes of both
// families again.
func TestInterfaceStaysDownInside(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	s.up(withTwoFamilies)
	isDown := func() error {
		if out := s.must("exec", "n/r", "--", "ip", "link", "show", "eth0"); !strings.Contains(out, "state DOWN") {
			return fmt.Errorf("eth0 of r is up again: %s", out)
		}
		return nil
	}
	s.must("exec", "n/r", "--", "ip", "link", "set", "eth0", "down")
	s.becomes("n", vnet.Degraded, "r: eth0 is down inside", 10*time.Second)
	before := s.repairs("n")
	s.must("exec", "n/a", "--", "ip", "neigh", "replace", "10.1.0.1", "lladdr", "02:00:00:00:00:01", "dev", "eth0", "nud", "permanent")
	received := "cat /sys/class/net/eth0/statistics/rx_packets"
	count := s.must("exec", "n/r", "--", "sh", "-c", received)
	s.sublet("exec", "n/a", "--", "ping", "-q", "-n", "-c", "3", "-i", "0.2", "-W", "1", "10.2.0.2")
	if now := s.must("exec", "n/r", "--", "sh", "-c", received); now != count {
		t.Errorf("eth0 of r received %s packets, then %s", count, now)
	}
	s.must("exec", "n/a", "--", "ip", "neigh", "del", "10.1.0.1", "dev", "eth0")
	s.restart(agentOf("h1"), 0)
	s.asPlanned("h1")
	time.Sleep(time.Second) // an audit, with time to act
	s.becomes("n", vnet.Degraded, "r: eth0 is down inside", 20*time.Second)
	if err := isDown(); err != nil {
		t.Error(err)
	}
	if now := s.repairs("n"); now != before {
		t.Errorf("%d repairs were told while it was down", now-before)
	}
	s.checkedInside()
	s.must("exec", "n/r", "--", "ip", "link", "set", "eth0", "up")
	s.becomes("n", vnet.Running, "", 15*time.Second)
	for _, to := range []string{"10.2.0.2", "2001:db8:2::2", "2001:db8:1::1"} {
		if err := s.pinged("n", "a", to); err != nil {
			t.Error(err)
		}
	}
	s.settled()
}

// TestLossWithADeletedInterfaceIsTold: what a tenant set at an interface that they then
// deleted is not there again, and an event says that; what the request states is.
func TestLossWithADeletedInterfaceIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(`network: n
nodes: [{name: a, host: h1, sysctls: {net.ipv4.conf.eth0.arp_notify: 1}}, {name: b, host: h2}]
links: [{name: ab, ends: [a, b], rate: 10Mbit}]
`)
	inside := func() string {
		return l.sublet("exec", "n/a", "--", "sh", "-c", "ip -o -4 addr show dev eth0 | grep -c 192.168.77.1; cat /proc/sys/net/ipv4/conf/eth0/arp_notify").out
	}
	l.must("exec", "n/a", "--", "ip", "addr", "add", "192.168.77.1/24", "dev", "eth0")
	if got := inside(); got != "1\n1\n" {
		t.Fatalf("before: %q", got)
	}
	l.must("exec", "n/a", "--", "ip", "link", "del", "eth0")
	const told = "eth0 of a was deleted, is there again: addresses, routes, queues and settings that were made at it by hand are lost"
	eventually(t, patience, func() error {
		if out := l.must("events", "n", "-o", "json"); !strings.Contains(out, told) {
			return fmt.Errorf("events say %s", out)
		}
		return l.pinged("n", "a", "b")
	})
	if got := inside(); got != "0\n1\n" {
		t.Errorf("afterwards: %q", got)
	}
	l.settled()
}

// checkedInside looks at what a check says of a link that is down inside r. How the
// other one does, on a machine with other work, is another test's matter.
func (l *lab) checkedInside() {
	l.t.Helper()
	v, code := l.check("n", "--duration", "100ms")
	broken := false
	for _, link := range v.Links {
		broken = broken || link.Outcome == vnet.Broken
		if told := strings.Contains(link.Why, "r: eth0 is down inside"); told != (link.Name == "ar") || told && link.Outcome != vnet.NotMeasured {
			l.t.Errorf("of %s from %s: %s, %s", link.Name, link.From, link.Outcome, link.Why)
		}
	}
	if len(v.Links) != 4 || !broken && (code != 0 || v.Outcome != vnet.NotMeasured) {
		l.t.Errorf("check ends with %d: %+v", code, v)
	}
}
