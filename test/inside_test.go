package test

import (
	"errors"
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

// TestDeletedInterfaceComesBack: an interface that its tenant deleted is there again with
// the addresses and routes that they gave it and what the request states, also after the
// agent was killed. What else they set there is not, and an event says that.
func TestDeletedInterfaceComesBack(t *testing.T) {
	t.Parallel()
	l := newSupervisor(t, "demo")
	l.up(`network: n
nodes: [{name: a, host: h1, sysctls: {net.ipv4.conf.eth0.arp_notify: 1}}, {name: b, host: h2}]
links: [{name: ab, ends: [a, b], rate: 10Mbit}]
`)
	inside := func() string {
		return l.sublet("exec", "n/a", "--", "sh", "-c", "ip -o -4 addr show dev eth0 | grep -c 192.168.77.1; ip route show 172.30.0.0/16; cat /proc/sys/net/ipv4/conf/eth0/arp_notify; tc qdisc show dev eth0 root").out
	}
	l.must("exec", "n/a", "--", "sh", "-ec", "ip addr add 192.168.77.1/24 dev eth0; ip route add 172.30.0.0/16 via 192.168.77.9; tc qdisc add dev eth0 root handle 7: pfifo")
	const made, queue = "1\n172.30.0.0/16 via 192.168.77.9 dev eth0 \n1\n", "qdisc pfifo 7:"
	if got := inside(); !strings.HasPrefix(got, made) || !strings.Contains(got, queue) {
		t.Fatalf("before: %q", got)
	}
	l.restart(agentOf("h1"), 0)
	for range 2 {
		l.asPlanned("h1")
		before := l.repairs("n")
		l.must("exec", "n/a", "--", "ip", "link", "del", "eth0")
		eventually(t, patience, func() error {
			if l.repairs("n") == before {
				return errors.New("no repair is told")
			}
			return l.pinged("n", "a", "b")
		})
		if got := inside(); !strings.HasPrefix(got, made) || strings.Contains(got, queue) {
			t.Errorf("afterwards: %q", got)
		}
	}
	const told = "eth0 of a was deleted, is there again, with addresses, routes, state and MTU that it had by hand; queues, filters, neighbours and settings that were made at it by hand are lost"
	if out := l.must("events", "n", "-o", "json"); strings.Count(out, told) != 2 {
		t.Errorf("events say %s", out)
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
