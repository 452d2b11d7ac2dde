package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStatedAddresses: the ends of links have the addresses that their request
// states, or the next of the same subnet, and everybody reaches everybody by
// each of them, in both families; another lease of the same addresses is in
// nobody's way.
func TestStatedAddresses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../examples/addressing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t, "star:2")
	for _, network := range []string{"addressing", "twin"} {
		l.up(strings.Replace(string(text), "network: addressing", "network: "+network, 1))
		for _, name := range []string{"pc1", "pc2", "r1", "r2", "db", "web"} {
			for _, from := range []string{"pc1", "pc2", "db", "r1", "r2", "web"} {
				l.answersTo(network, from, name)
			}
		}
		for _, address := range []string{"192.168.1.10", "192.168.1.1", "10.0.12.1", "10.0.12.2", "172.16.0.1", "172.17.0.1", "172.16.0.2"} {
			l.answersTo(network, "pc2", address)
			l.answersTo(network, "web", address)
		}
		for _, address := range []string{"2001:db8:1::10", "2001:db8:1::1", "2001:db8:2::1", "2001:db8:2::2"} {
			l.answersTo(network, "pc2", address)
			l.answersTo(network, "db", address)
		}
		for _, database := range []string{"ahostsv4", "ahostsv6"} {
			out := l.must("exec", network+"/pc2", "--", "getent", database, "db")
			want := map[string]string{"ahostsv4": "172.16.0.2 ", "ahostsv6": "2001:db8:2::2 "}[database]
			if !strings.HasPrefix(out, want) {
				t.Errorf("%s of db: %q, want %s", database, out, want)
			}
		}
	}
	if out := l.must("exec", "twin/pc1", "--", "ip", "-o", "-4", "address", "show", "dev", "office"); !strings.Contains(out, "192.168.1.10/24") {
		t.Errorf("interface office of pc1: %q", out)
	}
	l.settled()
	var views []struct {
		Addresses map[string][]string
	}
	if err := json.Unmarshal([]byte(l.must("leases", "twin", "-o", "json")), &views); err != nil {
		t.Fatal(err)
	}
	if have := fmt.Sprint(views[0].Addresses["db"]); have != "[172.16.0.2 2001:db8:2::2]" {
		t.Errorf("leases says that db has %s", have)
	}
}

// answersTo waits until a node's ping of an address or name is answered.
func (l *lab) answersTo(network, from, to string) {
	l.t.Helper()
	eventually(l.t, 10*time.Second, func() error { return l.pinged(network, from, to) })
}

// TestStatedAddressesByOSPF: routers that speak OSPF tell each other the subnets
// of their links.
func TestStatedAddressesByOSPF(t *testing.T) {
	t.Parallel()
	if !haveFRR() {
		t.Skip("OSPF takes FRR")
	}
	l := newLab(t, "star:2")
	l.up(`network: numbered
nodes: [{name: a}, {name: b}]
routers: [{name: r1, protocol: ospf}, {name: r2, protocol: ospf, address: 10.9.9.9}, {name: r3, protocol: ospf}]
links:
  - {ends: [a, {node: r1, address: 10.0.1.1/24}], rate: 10Mbit}
  - {ends: [{node: r1, address: 10.0.12.1/24}, r2], rate: 10Mbit}
  - {ends: [{node: r2, address: 10.0.23.2/24}, {node: r3, address: 10.0.23.3/24}], rate: 10Mbit}
  - {ends: [r3, b], rate: 10Mbit}
`)
	for _, from := range []string{"a", "b", "r1", "r3"} {
		for _, to := range []string{"a", "b", "10.9.9.9", "10.0.12.1", "10.0.12.2", "10.0.23.2", "10.0.23.3", "10.0.1.1"} {
			l.answersTo("numbered", from, to)
		}
	}
	if table := l.must("exec", "numbered/r1", "--", "ip", "route", "show", "proto", "ospf"); !strings.Contains(table, "10.0.23.0/24 ") {
		t.Errorf("r1 has not heard of the subnet between r2 and r3:\n%s", table)
	}
	l.settled()
}
