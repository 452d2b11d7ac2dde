package plan

import (
	"net/netip"
	"strings"
	"testing"

	"sublet/vnet"
)

// TestNumberedLinks: addresses of links' ends are on their ports, and routes
// lead to the subnets by the neighbour's address on the link.
//
//	a --10.1.0.0/24, 2001:db8:1::/64-- r1 --10.2.0.0/24-- r2 --unnumbered-- b
func TestNumberedLinks(t *testing.T) {
	prefix := netip.MustParsePrefix
	l := vnet.Lease{
		Request: vnet.Request{Network: "net", Tenant: "t", Topology: vnet.Topology{
			Nodes:   []vnet.VirtualNode{{Name: "a"}, {Name: "b"}},
			Routers: []vnet.VirtualNode{{Name: "r1", Protocol: vnet.ProtocolStatic}, {Name: "r2", Protocol: vnet.ProtocolStatic}},
			Links:   []vnet.VirtualLink{{Name: "ar", Ends: [2]string{"a", "r1"}}, {Name: "rr", Ends: [2]string{"r1", "r2"}}, {Name: "rb", Ends: [2]string{"r2", "b"}}},
		}},
		Mapping:   vnet.Mapping{Nodes: map[string]vnet.HostID{"a": "h", "b": "h", "r1": "h", "r2": "h"}},
		Addresses: map[string]netip.Addr{"a": netip.MustParseAddr("10.1.0.2"), "r1": netip.MustParseAddr("10.9.9.9"), "r2": netip.MustParseAddr("10.2.0.2"), "b": netip.MustParseAddr("10.0.0.1")},
		LinkAddresses: map[string]vnet.LinkAddresses{
			"ar": {{prefix("10.1.0.2/24"), prefix("2001:db8:1::2/64")}, {prefix("2001:db8:1::1/64"), prefix("10.1.0.1/24")}},
			"rr": {{prefix("10.2.0.1/24")}, {prefix("10.2.0.2/24")}},
		},
		Stage: -1, State: vnet.Running,
	}
	hosts, err := Compile(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h"}}}, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	text := hosts["h"].String()
	r1 := Port{Namespace: "t.net.r1", Interface: "eth1"}
	for _, want := range []string{
		"t.net.a/eth0 10.1.0.2 subnet 10.1.0.0/24 and 2001:db8:1::2/64 ",
		"t.net.r1/eth0 10.1.0.1 subnet 10.1.0.0/24 and 10.9.9.9/32 and 2001:db8:1::1/64 ",
		"t.net.r2/eth0 10.2.0.2 subnet 10.2.0.0/24 mtu",
		"t.net.r2/eth1 10.2.0.2 peer 10.0.0.1 ",
		"vxrouter t.net.a 0.0.0.0/0->10.1.0.1@eth0 ::/0->2001:db8:1::1@eth0\n",
		"vxrouter t.net.b 0.0.0.0/0->10.2.0.2@eth0\n",
		"vxrouter t.net.r1 forward 10.0.0.1/32->10.2.0.2@eth1\n",
		"vxrouter t.net.r2 forward 10.1.0.0/24->10.2.0.1@eth0 10.9.9.9/32->10.2.0.1@eth0 2001:db8:1::/64->" + vnet.LinkLocal(r1.Hardware()).String() + "@eth0\n",
		" a=10.1.0.2 a=2001:db8:1::2 b=10.0.0.1 r1=10.9.9.9 r1=2001:db8:1::1 r2=10.2.0.2",
		"reach t.net 14 pairs of 4 nodes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}
