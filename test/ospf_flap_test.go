package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// ospfTriangle has two ways from each router to each other.
//
//	n1 -50M- r1 ---20M--- r2 -50M- n2
//	           \         /
//	         20M \     / 20M
//	               r3 -50M- n3
const ospfTriangle = `network: triangle
nodes: [{name: n1}, {name: n2}, {name: n3}]
routers: [{name: r1, protocol: ospf}, {name: r2, protocol: ospf}, {name: r3, protocol: ospf}]
links:
  - {ends: [n1, r1], rate: 50Mbit}
  - {ends: [n2, r2], rate: 50Mbit}
  - {ends: [n3, r3], rate: 50Mbit}
  - {ends: [r1, r2], rate: 20Mbit}
  - {ends: [r2, r3], rate: 20Mbit}
  - {ends: [r3, r1], rate: 20Mbit}
`

// pinged says whether one node's ping of another is answered, once.
func (l *lab) pinged(network, from, to string) error {
	if r := l.sublet("exec", network+"/"+from, "--", "ping", "-q", "-n", "-c", "1", "-W", "1", to); r.code != 0 {
		return errors.New(from + " to " + to + ": " + r.out + r.err)
	}
	return nil
}

// TestFlapsInRoutersHeal: whatever a tenant does to a router's interfaces,
// addresses and routes, what OSPF believes comes back to the kernel, too.
func TestFlapsInRoutersHeal(t *testing.T) {
	t.Parallel()
	if !haveFRR() {
		t.Skip("OSPF takes FRR")
	}
	l := newLab(t, "demo")
	l.up(ospfTriangle)
	everybody := func(after string) {
		t.Helper()
		for _, pair := range [][2]string{{"n1", "n2"}, {"n2", "n3"}, {"n3", "n1"}} {
			eventually(t, 10*time.Second, func() error {
				if err := l.pinged("triangle", pair[0], pair[1]); err != nil {
					return fmt.Errorf("after %s: %w", after, err)
				}
				return nil
			})
		}
	}
	everybody("the start")
	for _, harm := range []string{
		"r1 ip link set eth1 down",
		"r1 ip link set eth1 up",
		"r2 ip link set eth1 down; sleep 0.1; ip link set eth1 up",
		"r1 ip link set eth1 down; ip link set eth2 down; ip link set eth1 up; ip link set eth2 up",
		"r3 ip addr flush dev eth1",
		"r1 ip route del 10.0.0.2; ip route del 10.0.0.3; true",
		"r1 for i in 1 2 3; do ip link set eth1 down; sleep 0.7; ip link set eth1 up; done",
	} {
		router, command, _ := strings.Cut(harm, " ")
		l.must("exec", "triangle/"+router, "--", "sh", "-c", command)
		time.Sleep(2 * time.Second) // what OSPF does of itself is under way
		everybody(harm)
	}
	for _, link := range []string{"r1-r2", "r3-r1"} {
		l.must("link", "down", "triangle/"+link)
		time.Sleep(time.Second)
		if link == "r1-r2" {
			everybody("link down " + link)
		}
	}
	eventually(t, 10*time.Second, func() error { return l.pinged("triangle", "n2", "n3") })
	if l.pinged("triangle", "n1", "n2") == nil {
		t.Error("n1 reaches n2 although both links of its router are down")
	}
	for _, link := range []string{"r1-r2", "r3-r1"} {
		l.must("link", "up", "triangle/"+link)
	}
	everybody("link up")
	l.settled()
}
