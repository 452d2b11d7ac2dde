package plan

import (
	"fmt"
	"net/netip"
	"testing"

	"sublet/vnet"
)

// Default routes lead to the way out, also where most of the network lies another
// way; what learns its routes by OSPF has one too. Its namespace is root's, not the
// tenant's.
//
//	a -- b -- o (ospf) -- out
//	b -- c, d (behind e)
func TestRoutesLeadToTheWayOut(t *testing.T) {
	names := []string{"a", "b", "o", "out", "e", "c", "d"}
	l := vnet.Lease{
		Owner: 1000,
		Request: vnet.Request{Network: "net", Tenant: "alice", Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "c"}, {Name: "d"}},
			Routers: []vnet.VirtualNode{
				{Name: "b", Protocol: vnet.ProtocolStatic}, {Name: "o", Protocol: vnet.ProtocolOSPF}, {Name: "e", Protocol: vnet.ProtocolStatic},
				{Name: "out", Protocol: vnet.ProtocolStatic, NAT: "campus", Publish: []vnet.Publish{{Outside: 8080, Node: "a", Port: 80}}},
			},
		}},
		State: vnet.Running, Stage: -1, Addresses: make(map[string]netip.Addr),
		Mapping: vnet.Mapping{
			Nodes: make(map[string]vnet.HostID), Links: make(map[string]vnet.Path),
			Outside: map[string]netip.Addr{"out": netip.MustParseAddr("192.0.2.10")},
		},
	}
	for i, name := range names {
		l.Mapping.Nodes[name] = "h1"
		l.Addresses[name] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
	}
	for _, ends := range [][2]string{{"a", "b"}, {"b", "o"}, {"o", "out"}, {"b", "e"}, {"e", "c"}, {"e", "d"}, {"a", "e"}} {
		link := ends[0] + "-" + ends[1]
		l.Request.Links = append(l.Request.Links, vnet.VirtualLink{Name: link, Ends: ends})
		l.Mapping.Links[link] = vnet.Path{}
	}
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}}, NAT: []vnet.NAT{{
		Name: "campus", Host: "h1", Interface: "eth2", Via: netip.MustParseAddr("192.0.2.1"),
		Pool:   vnet.AddrRange{First: netip.MustParseAddr("192.0.2.10"), Last: netip.MustParseAddr("192.0.2.20")},
		Refuse: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")},
	}}}
	hosts, err := Compile(sub, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	via := make(map[string]string)
	for _, r := range Of[VxRouter](hosts["h1"]) {
		for _, route := range r.Routes {
			if route.Prefix.Bits() == 0 {
				via[r.Node] += route.Via.String()
			}
		}
	}
	if want := (map[string]string{"a": "10.0.0.2", "b": "10.0.0.3", "o": "10.0.0.4", "e": "10.0.0.2", "c": "10.0.0.5", "d": "10.0.0.5"}); fmt.Sprint(via) != fmt.Sprint(want) {
		t.Errorf("default routes %v, want %v", via, want)
	}
	const gateway = "[alice.net.out 192.0.2.10 by eth2 via 192.0.2.1 refuse 172.16.0.0-172.31.255.255 192.0.2.10-192.0.2.20 publish tcp 8080 10.0.0.1 80]"
	if got := fmt.Sprint(Of[Gateway](hosts["h1"])); got != gateway {
		t.Errorf("gateways\n%s, not\n%s", got, gateway)
	}
	for _, n := range Of[VNode](hosts["h1"]) {
		if want := map[bool]uint32{true: 0, false: 1000}[n.Node == "out"]; n.Owner != want {
			t.Errorf("node %s is of user %d, not %d", n.Node, n.Owner, want)
		}
	}
}
