package plan

import (
	"fmt"
	"net/netip"
	"testing"

	"sublet/vnet"
)

// lineOf is a lease of nodes n1 and n2, routers o1 and o2 that speak OSPF, and another
// router, all on h1. The first linked of the names are in line; each has the address
// 10.0.0.N of its place, from 1.
func lineOf(other vnet.VirtualNode, linked int, names ...string) vnet.Lease {
	l := vnet.Lease{
		Request: vnet.Request{Network: "net", Tenant: "alice", Topology: vnet.Topology{
			Nodes:   []vnet.VirtualNode{{Name: "n1"}, {Name: "n2"}},
			Routers: []vnet.VirtualNode{{Name: "o1", Protocol: vnet.ProtocolOSPF}, {Name: "o2", Protocol: vnet.ProtocolOSPF}, other},
		}},
		State: vnet.Running, Stage: -1,
		Mapping:   vnet.Mapping{Nodes: make(map[string]vnet.HostID), Links: make(map[string]vnet.Path)},
		Addresses: make(map[string]netip.Addr),
	}
	for i, name := range names {
		l.Mapping.Nodes[name] = "h1"
		l.Addresses[name] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		if i > 0 && i < linked {
			link := names[i-1] + "-" + name
			l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: link, Ends: [2]string{names[i-1], name}})
			l.Mapping.Links[link] = vnet.Path{}
		}
	}
	return l
}

// Routers that speak OSPF have planned routes only to what lies behind
// routers that do not:
//
//	n1 -- o1 -- o2 -- s -- n2
func TestRoutesBesideOSPF(t *testing.T) {
	l := lineOf(vnet.VirtualNode{Name: "s", Protocol: vnet.ProtocolStatic}, 5, "n1", "o1", "o2", "s", "n2")
	hosts, err := Compile(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}}}, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, r := range Of[VxRouter](hosts["h1"]) {
		words := ""
		for _, route := range r.Routes {
			words += fmt.Sprintf(" %s>%s", route.Prefix, route.Via)
		}
		got[r.Node] = words
		if r.Node[0] == 'o' && (r.OSPF == nil || words == "" && r.Routes != nil) {
			t.Errorf("%s has %+v", r.Node, r)
		}
	}
	for node, want := range map[string]string{
		"n1": " 0.0.0.0/0>10.0.0.2",
		"o1": " 10.0.0.5/32>10.0.0.3",
		"o2": " 10.0.0.5/32>10.0.0.4",
		"s":  " 10.0.0.1/32>10.0.0.3 10.0.0.2/32>10.0.0.3",
	} {
		if got[node] != want {
			t.Errorf("%s has routes%s, not%s", node, got[node], want)
		}
	}
}

// Routers that lead to a way out have dead ends for what their network has and their
// tables have not: of one that speaks OSPF all that it will hear of, of the others what
// is cut off.
//
//	n1 -- o1 -- o2 -- out    and n2 with no link
func TestDeadEndsBesideAWayOut(t *testing.T) {
	l := lineOf(vnet.VirtualNode{Name: "out", Protocol: vnet.ProtocolStatic, NAT: "campus"}, 4, "n1", "o1", "o2", "out", "n2")
	hosts, err := Compile(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}}, NAT: []vnet.NAT{{
		Name: "campus", Host: "h1", Interface: "eth2", Via: netip.MustParseAddr("192.0.2.1"),
		Pool: vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.20")},
	}}}, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, r := range Of[VxRouter](hosts["h1"]) {
		for _, route := range r.Routes {
			if route.Interface == "" {
				got[r.Node] += fmt.Sprintf(" %s", route.Prefix)
			}
		}
	}
	for node, want := range map[string]string{
		"n1":  "",
		"o1":  " 10.0.0.1/32 10.0.0.3/32 10.0.0.4/32 10.0.0.5/32",
		"o2":  " 10.0.0.1/32 10.0.0.2/32 10.0.0.4/32 10.0.0.5/32",
		"out": " 10.0.0.3/32 10.0.0.5/32",
	} {
		if got[node] != want {
			t.Errorf("%s has dead ends%s, not%s", node, got[node], want)
		}
	}
}
