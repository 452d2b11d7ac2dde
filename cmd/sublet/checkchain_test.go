package main

import (
	"net/netip"
	"testing"

	"sublet/measure/probe"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
	"sublet/vnet/file"
)

// A chain is measured by what it takes and no other one takes or denies, and what it
// takes measures no link.
func TestWaysOfChains(t *testing.T) {
	const text = `network: n
nodes: [{name: a}, {name: b}, {name: c}]
functions:
  - {name: fw, kind: firewall, rules: [{allow: {proto: tcp, dst_port: 83}}, {deny: {proto: tcp, dst_port: 80-85}}]}
  - {name: most, kind: limiter, rate: 1Gbit}
links: [{name: ab, ends: [a, b], rate: 50Mbit}, {name: ac, ends: [a, c], rate: 50Mbit}]
chains:
  - {name: denied, from: a, to: b, match: {proto: tcp, dst_port: 80-82}, via: [fw], rate: 10Mbit}
  - {name: allowed, from: a, to: b, match: {proto: tcp, dst_port: 80-90}, via: [fw, most], rate: 10Mbit}
  - {name: same, from: a, to: b, match: {proto: tcp, dst_port: 83-84}, via: [most], rate: 10Mbit}
  - {name: udp, from: a, to: b, match: {proto: udp, dst_port: 83}, via: [most], rate: 10Mbit}
  - {name: pings, from: a, to: b, match: {proto: icmp}, via: [most], rate: 1Mbit}
  - {name: effort, from: a, to: c, match: {dst: 10.9.9.0/24}, via: [most], share: best}
  - {name: six, from: a, to: b, match: {proto: tcp, src: "2001:db8::/64", dst: "2001:db8::/64"}, via: [fw], rate: 1Mbit}
  - {name: tagged, from: a, to: b, match: {proto: udp, dst_port: 85, vlan: 7}, via: [most], rate: 1Mbit}
  - {name: classed, from: a, to: b, match: {proto: udp, dst_port: 84, dscp: 46}, via: [most], rate: 1Mbit}
  - {name: all, from: a, to: c, via: [most], rate: 10Mbit}
`
	r, err := file.ParseRequest("r.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Fill()
	l := vnet.Lease{Request: r, Stage: -1, Addresses: make(map[string]netip.Addr)}
	for i, node := range []string{"a", "b", "c"} {
		l.Addresses[node] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
	}
	l.LinkAddresses = map[string]vnet.LinkAddresses{"ab": {{netip.MustParsePrefix("2001:db8::1/64")}, {netip.MustParsePrefix("2001:db8::2/64")}}}
	ports := make(map[string][2]plan.Port)
	for _, link := range r.Links {
		ports[link.Name] = [2]plan.Port{{Interface: link.Name + "0", Address: l.Addresses[link.Ends[0]]}, {Interface: link.Name + "1", Address: l.Addresses[link.Ends[1]]}}
	}
	for i, want := range []struct {
		not   string
		port  uint16
		proto vnet.IPProtocol
		from  string
	}{
		{"another chain takes all that it could be measured by, or its firewalls deny that", 0, "tcp", "ab0"},
		{"", 83, "tcp", "ab0"},
		{"another chain takes all that it could be measured by, or its firewalls deny that", 0, "tcp", "ab0"},
		{"", 83, "udp", "ab0"},
		{"nothing measures by icmp", 0, "udp", "ab0"},
		{"it takes nothing that goes to c itself", 0, "tcp", "ac0"},
		{"", discardPort, "tcp", "ab0"},
		{"", 85, "udp", "ab0"},
		{"", 84, "udp", "ab0"},
		{"", 0, "udp", "ac0"},
	} {
		w := wayOf(l, ports, r.Chains[i])
		if w.not != want.not || w.target.Port != want.port || w.proto != want.proto || w.target.FromIf != want.from {
			t.Errorf("%s: %+v, want %+v", r.Chains[i].Name, w, want)
		}
	}
	rest, taken := untaken(l, []probe.Target{
		{Link: "ab", From: "a", To: "b", FromAddr: l.Addresses["a"], ToAddr: l.Addresses["b"]},
		{Link: "ac", From: "a", To: "c", FromAddr: l.Addresses["a"], ToAddr: l.Addresses["c"]},
		{Link: "ac", From: "c", To: "a", FromAddr: l.Addresses["c"], ToAddr: l.Addresses["a"]},
	})
	if len(rest) != 2 || len(taken) != 1 || taken[0].Name != "ac" || taken[0].From != "a" || taken[0].Why != notMeasuredFor+"chain all takes what would measure it" {
		t.Errorf("rest %v, taken %v", rest, taken)
	}
	if list := batches(l, ports); len(list) != 4 {
		t.Errorf("batches %v", list)
	}
}

func TestHopsSince(t *testing.T) {
	before := []report.ChainHop{{Chain: "web", Hop: "fw", Index: 254, Packets: 5, Bytes: 50, Drops: map[string]uint64{"denied": 2}}}
	after := []report.ChainHop{
		{Chain: "web", Hop: "fw", Index: 254, Packets: 7, Bytes: 90, Drops: map[string]uint64{"denied": 2, "limited": 1}},
		{Chain: "web", Hop: "out", Index: 253, Packets: 3, Bytes: 30},
	}
	got := since(after, before)
	if got[0].Packets != 2 || got[0].Bytes != 40 || len(got[0].Drops) != 1 || got[0].Drops["limited"] != 1 || got[1].Packets != 3 {
		t.Errorf("%+v", got)
	}
}
