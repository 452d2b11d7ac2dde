package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// routed is a network whose routers speak some protocol: pc1 and pc2 are in both
// families, with two ways between their routers.
//
//	pc1 - r1 ------- r2 - pc2
//	        \       /
//	          \ r3 /
func routed(network string, routers [3]string, links string) string {
	return fmt.Sprintf(`network: %s
nodes: [{name: pc1}, {name: pc2}]
routers: [{name: r1, %s}, {name: r2, %s}, {name: r3, %s}]
links:
  - {name: p1, ends: [pc1, {node: r1, address: [192.168.1.1/24, "2001:db8:1::1/64"]}], rate: 10Mbit}
  - {name: p2, ends: [pc2, {node: r2, address: [192.168.2.1/24, "2001:db8:2::1/64"]}], rate: 10Mbit}
  - {name: direct, ends: [{node: r1, address: [10.0.12.1/24, "2001:db8:12::1/64"]}, r2], rate: 10Mbit%s}
  - {name: left, ends: [{node: r1, address: [10.0.13.1/24, "2001:db8:13::1/64"]}, r3], rate: 10Mbit%s}
  - {name: right, ends: [{node: r3, address: [10.0.23.1/24, "2001:db8:23::1/64"]}, r2], rate: 10Mbit%s}
`, network, routers[0], routers[1], routers[2], links, links, links)
}

// TestProtocolsFindWays: by each protocol both families are reached as soon as
// the network runs, around a link that is taken down, and once it is back;
// vtysh speaks to the daemons in the node.
func TestProtocolsFindWays(t *testing.T) {
	if !haveFRR() {
		t.Skip("routing protocols take FRR")
	}
	t.Parallel()
	l := newLab(t, "star:2")
	for _, c := range []struct {
		protocol, links, show, says string
		routers                     [3]string
	}{
		{"ospf6", ", area: 3, cost: 7", "show ipv6 ospf6 neighbor", "Full", [3]string{"protocol: ospf6", "protocol: ospf6", "protocol: ospf6"}},
		{"isis", ", cost: 7", "show isis neighbor", "Up", [3]string{"protocol: isis", "protocol: isis", "protocol: isis"}},
		{"bgp", "", "show bgp ipv6 unicast summary", "65002", [3]string{"protocol: bgp, as: 65001", "protocol: bgp, as: 65002", "protocol: bgp, as: 65002"}},
	} {
		l.up(routed(c.protocol, c.routers, c.links))
		for _, to := range []string{"192.168.2.1", "2001:db8:2::1", "2001:db8:2::2"} {
			if err := l.pinged(c.protocol, "pc1", to); err != nil {
				t.Errorf("right after up of %s: %v", c.protocol, err)
			}
		}
		reached := func(when string) {
			t.Helper()
			for _, to := range []string{"pc2", "192.168.2.1", "2001:db8:2::1", "2001:db8:2::2", "2001:db8:13::2"} {
				eventually(t, 5*time.Second, func() error {
					if err := l.pinged(c.protocol, "pc1", to); err != nil {
						return fmt.Errorf("%s, %s: %w", c.protocol, when, err)
					}
					return nil
				})
			}
		}
		reached("at first")
		if out := l.must("exec", c.protocol+"/r1", "--", "vtysh", "-c", c.show); !strings.Contains(out, c.says) {
			t.Errorf("%s in r1 says:\n%s", c.show, out)
		}
		l.must("link", "down", c.protocol+"/direct")
		time.Sleep(time.Second)
		reached("around a link that is down")
		l.must("link", "up", c.protocol+"/direct")
		l.must("exec", c.protocol+"/r1", "--", "sh", "-c", "ip link set eth1 down; ip link set eth2 down; sleep 0.5; ip link set eth1 up; ip link set eth2 up")
		time.Sleep(time.Second)
		reached("after its interfaces were down")
		l.must("down", c.protocol)
	}
	l.teaches()
}

// teaches lets the example of a course find ways around links that are down.
func (l *lab) teaches() {
	l.t.Helper()
	text, err := os.ReadFile("../examples/routing-course.yaml")
	if err != nil {
		l.t.Fatal(err)
	}
	l.up(string(text))
	for _, link := range []string{"o1-o2", "b1-b2"} {
		l.must("link", "down", "course/"+link)
	}
	time.Sleep(time.Second)
	l.answersTo("course", "pc1", "pc2")
	l.answersTo("course", "pc3", "pc4")
	if out := l.must("exec", "course/b1", "--", "vtysh", "-c", "show bgp ipv4 unicast summary"); !strings.Contains(out, "65002") {
		l.t.Errorf("vtysh of b1 says:\n%s", out)
	}
	l.settled()
}

// TestRoutersWithConfigurations: what a tenant tells FRR is told to all daemons
// of a router beside what Sublet tells them; neighbours of BGP that are stated
// have a session over other routers; what FRR does not understand is said.
//
//	o1 - o2    b1 - m - b2
func TestRoutersWithConfigurations(t *testing.T) {
	if !haveFRR() {
		t.Skip("routing protocols take FRR")
	}
	t.Parallel()
	l := newLab(t, "star:2")
	const own = `network: own
routers:
  - {name: o1, protocol: none, frr: {text: "interface eth0\n ip ospf area 0\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 4\nip route 10.77.0.0/16 blackhole\nrouter ospf\n redistribute static\n%s"}}
  - {name: o2, protocol: none, frr: {text: "interface eth0\n ip ospf area 0\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 4\nrouter ospf\n"}}
  - {name: b1, protocol: bgp, as: 65001, neighbors: [{address: 10.3.0.2, as: 65002}]}
  - {name: b2, protocol: bgp, as: 65002, neighbors: [{address: 10.3.0.1, as: 65001}], address: 10.3.0.2}
  - {name: m}
links:
  - {ends: [o1, o2], rate: 1Mbit}
  - {ends: [b1, m], rate: 1Mbit}
  - {ends: [m, b2], rate: 1Mbit}
`
	text := strings.Replace(own, "{name: b1,", "{name: b1, address: 10.3.0.1,", 1)
	l.up(fmt.Sprintf(text, ""))
	for _, c := range []struct{ router, command, says string }{
		{"o2", "ip route show 10.77.0.0/16", "proto ospf"},
		{"b1", "vtysh -c 'show bgp neighbors 10.3.0.2'", "BGP state = Established"},
		{"o1", "vtysh -c 'show running-config'", "redistribute static"},
		{"o1", "cat /etc/frr/frr.conf", "redistribute static"},
	} {
		eventually(t, 15*time.Second, func() error {
			if out := l.must("exec", "own/"+c.router, "--", "sh", "-c", c.command); !strings.Contains(out, c.says) {
				return fmt.Errorf("%s in %s says:\n%s", c.command, c.router, out)
			}
			return nil
		})
	}
	l.settled()
	l.toldAnother(text)
	const wrong = "network: wrong\nrouters: [{name: a, protocol: none, frr: {text: %q}}, {name: b}]\nlinks: [{ends: [a, b], rate: 1Mbit}]\n"
	for config, says := range map[string]string{"router ospf\n log file /tmp/x": "reads or writes files", "rpki": "loads a module"} {
		if r := l.sublet("up", l.file("wrong.yaml", fmt.Sprintf(wrong, config))); r.code != 2 || !strings.Contains(r.err, says) {
			t.Errorf("%q ends with %d: %s", config, r.code, r.err)
		}
	}
	l.must("up", "--no-wait", l.file("wrong.yaml", fmt.Sprintf(wrong, "router ospf\n redistribut everything")))
	eventually(t, 15*time.Second, func() error {
		if state, message, _ := l.stateOf("wrong"); state == vnet.Running || !strings.Contains(message, "Unknown command") {
			return fmt.Errorf("wrong is %s: %s", state, message)
		}
		return nil
	})
	l.must("down", "wrong")
}

// toldAnother gives a router of a running network another configuration: its
// neighbour hears of it, and no other router's daemons start again.
func (l *lab) toldAnother(text string) {
	l.t.Helper()
	daemons := func(router string) string {
		return l.must("exec", "own/"+router, "--", "sh", "-c", "cat /run/frr/*.pid")
	}
	b1 := daemons("b1")
	other := strings.Replace(fmt.Sprintf(text, ""), "10.77.0.0", "10.78.0.0", 1)
	r := l.sublet("apply", l.file("other.yaml", other))
	if r.code != 0 || !strings.Contains(r.out, "(its routing begins anew)") {
		l.t.Fatalf("apply ends with %d: %s%s", r.code, r.out, r.err)
	}
	eventually(l.t, 15*time.Second, func() error {
		if out := l.must("exec", "own/o2", "--", "ip", "route", "show", "proto", "ospf"); !strings.Contains(out, "10.78.0.0") || strings.Contains(out, "10.77.0.0") {
			return fmt.Errorf("o2 has\n%s", out)
		}
		return nil
	})
	if now := daemons("b1"); now != b1 {
		l.t.Errorf("daemons of another router were %q and are %q", b1, now)
	}
	l.settled()
}
