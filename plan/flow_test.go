package plan

import (
	"net/netip"
	"slices"
	"testing"

	"sublet/vnet"
)

// A link over an OpenFlow switch has an entry there for each direction, from port to
// port, by the addresses of its tunnel and the source port that both ends of the tunnel
// use. A link that stays in a host has none, and best effort only where entries choose
// paths: all switches speak OpenFlow.
func TestFlowsOfSwitches(t *testing.T) {
	at := netip.MustParseAddr
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Switches: []string{"s1", "s0"},
		Links: []vnet.SubstrateLink{
			{Name: "l1", Ends: [2]string{"h1", "s1"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{{Interface: "eth1", Address: at("192.0.2.1")}, {}}},
			{Name: "l2", Ends: [2]string{"h2", "s1"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{{Interface: "eth1", Address: at("192.0.2.2")}, {}}},
		},
		OpenFlow: []vnet.OpenFlowSwitch{{Name: "s1", Ports: map[string]uint32{"l1": 7, "l2": 8}, Entries: 10, Meters: 10}},
	}
	ten := vnet.Bandwidth{Min: 10 * vnet.Mbit, Max: 10 * vnet.Mbit}
	link := func(name, a, b string, w vnet.Bandwidth) vnet.VirtualLink {
		return vnet.VirtualLink{Name: name, Ends: [2]string{a, b}, Bandwidth: [2]vnet.Bandwidth{w, w}}
	}
	l := vnet.Lease{
		State: vnet.Running, Stage: -1,
		Request: vnet.Request{Tenant: "alice", Network: "net", Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			Links: []vnet.VirtualLink{link("ab", "a", "b", ten), link("ac", "a", "c", ten), link("cb", "c", "b", vnet.Bandwidth{})},
		}},
		Mapping: vnet.Mapping{
			Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2", "c": "h1"},
			Links: map[string]vnet.Path{"ab": {"l1", "l2"}, "ac": {}, "cb": {"l1", "l2"}},
		},
		VNIs:      map[string][]vnet.VNI{"ab": {1 << 20}, "cb": {1<<20 + 1}},
		Rates:     map[string][2]vnet.Rate{"ab": {10 * vnet.Mbit, 10 * vnet.Mbit}, "ac": {10 * vnet.Mbit, 10 * vnet.Mbit}},
		Addresses: map[string]netip.Addr{"a": at("10.0.0.1"), "b": at("10.0.0.2"), "c": at("10.0.0.3")},
	}
	plans, err := Compile(sub, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	flow := Flow{Lease: l.ID(), Link: "ab", VNI: 1 << 20, In: 7, Out: 8, From: at("192.0.2.1"), To: at("192.0.2.2"), Source: SourceOf(1 << 20), Min: Outer(10 * vnet.Mbit), Rate: Outer(10 * vnet.Mbit)}
	back := flow
	back.Reverse, back.In, back.Out, back.From, back.To = true, 8, 7, flow.To, flow.From
	items := plans["s1"].Items()
	if len(items) != 2 || !Equal(items[0], back) || !Equal(items[1], flow) {
		t.Errorf("s1 gets %v, want %v and %v", items, back, flow)
	}
	sub.OpenFlow[0].Meters, sub.OpenFlow[0].Queues = 0, []vnet.SwitchQueue{{Link: "l1", Queue: 1, Rate: 20 * vnet.Mbit}, {Link: "l2", Queue: 1, Rate: 12 * vnet.Mbit}}
	flow.Queue, back.Queue = 12*vnet.Mbit, 20*vnet.Mbit // of the ports by which they leave
	inQueues, err := Compile(sub, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	if items := inQueues["s1"].Items(); len(items) != 2 || !Equal(items[0], back) || !Equal(items[1], flow) {
		t.Errorf("s1 gets %v, want %v and %v", items, back, flow)
	}
	sub.OpenFlow[0].Queues, flow.Queue, back.Queue = nil, 0, 0
	sub.Switches = []string{"s1"}
	steered, err := Compile(sub, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	best := flow
	best.Link, best.VNI, best.Source, best.Min, best.Rate = "cb", 1<<20+1, SourceOf(1<<20+1), 0, 0
	if items := steered["s1"].Items(); len(items) != 4 || !slices.ContainsFunc(items, func(i Item) bool { return Equal(i, best) }) {
		t.Errorf("s1 gets %v, and %v is wanted", items, best)
	}
	for _, host := range []vnet.HostID{"h1", "h2"} {
		for _, item := range plans[host].Items() {
			if o, ok := item.(Overlay); ok && o.Source != SourceOf(o.VNI) {
				t.Errorf("%s sends %s from port %d", host, o.Link, o.Source)
			}
		}
	}
}

// A chain's packets between hosts have entries of their own at an OpenFlow switch, by the
// port of their transport, and both hosts have one source port for each of its links, by
// which the switch tells them from others. A chain with a stated source port has no entry:
// the switch could not tell two such chains apart.
func TestFlowsOfChains(t *testing.T) {
	at := netip.MustParseAddr
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Switches: []string{"s1"},
		Links: []vnet.SubstrateLink{
			{Name: "l1", Ends: [2]string{"h1", "s1"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{{Interface: "eth1", Address: at("192.0.2.1")}, {}}},
			{Name: "l2", Ends: [2]string{"h2", "s1"}, Capacity: vnet.Gbit, Ports: [2]vnet.Port{{Interface: "eth1", Address: at("192.0.2.2")}, {}}},
		},
		OpenFlow: []vnet.OpenFlowSwitch{{Name: "s1", Ports: map[string]uint32{"l1": 7, "l2": 8}, Entries: 10, Meters: 10}},
	}
	ten := [2]vnet.Bandwidth{vnet.Static(10 * vnet.Mbit), vnet.Static(10 * vnet.Mbit)}
	const path, tunnel = 1 << 20, 1<<20 + 1
	for _, c := range []struct {
		transport, want vnet.Transport
		compat, source  uint16
	}{
		{"", vnet.TransportUDP, 0, SourceOf(tunnel)},
		{vnet.TransportGPE, vnet.TransportGPE, 0, SourceOf(tunnel)},
		{"", "", vnet.CompatPort, vnet.CompatPort},
	} {
		l := vnet.Lease{
			State: vnet.Running, Stage: -1,
			Request: vnet.Request{Tenant: "alice", Network: "net", Topology: vnet.Topology{
				Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}, {Name: "fw", Function: &vnet.Function{Kind: vnet.FunctionFirewall}}},
				Links: []vnet.VirtualLink{
					{Name: "ab", Ends: [2]string{"a", "b"}, Bandwidth: ten},
					{Name: "web-1", Ends: [2]string{"a", "fw"}, Chain: "web", Bandwidth: ten},
					{Name: "web-2", Ends: [2]string{"fw", "b"}, Chain: "web", Bandwidth: ten},
				},
			}, Chains: []vnet.Chain{{Name: "web", From: "a", To: "b", Via: []string{"fw"}, Rate: 10 * vnet.Mbit, Transport: c.transport, Compat: c.compat}}},
			Mapping: vnet.Mapping{
				Nodes: map[string]vnet.HostID{"a": "h1", "b": "h2", "fw": "h2"},
				Links: map[string]vnet.Path{"ab": {"l1", "l2"}, "web-1": {"l1", "l2"}, "web-2": {}},
			},
			VNIs:      map[string][]vnet.VNI{"ab": {1<<20 + 2}, "web-1": {path, tunnel}, "web-2": {1<<20 + 3}},
			Rates:     map[string][2]vnet.Rate{"ab": {10 * vnet.Mbit, 10 * vnet.Mbit}, "web-1": {10 * vnet.Mbit, 10 * vnet.Mbit}, "web-2": {10 * vnet.Mbit, 10 * vnet.Mbit}},
			Addresses: map[string]netip.Addr{"a": at("10.0.0.1"), "b": at("10.0.0.2")},
		}
		plans, err := Compile(sub, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		var got []Flow
		for _, item := range plans["s1"].Items() {
			if f := item.(Flow); f.Link == "web-1" {
				got = append(got, f)
			}
		}
		if c.want == "" && len(got) != 0 {
			t.Errorf("a chain with a stated source port has entries %v", got)
		}
		if c.want != "" && (len(got) != 2 || got[0].Transport != c.want || got[0].Source != c.source) {
			t.Errorf("transport %q: s1 gets %v", c.transport, got)
		}
		for _, host := range []vnet.HostID{"h1", "h2"} {
			remotes := 0
			for _, item := range plans[host].Items() {
				if chains, ok := item.(Chains); ok {
					for _, r := range chains.Remotes {
						if remotes++; r.Source != c.source {
							t.Errorf("%s: packets of the chain have source port %d, want %d", host, r.Source, c.source)
						}
					}
				}
			}
			if remotes != 1 {
				t.Errorf("%s knows %d other hosts", host, remotes)
			}
		}
	}
}
