package lab

import (
	"net/netip"
	"testing"

	"sublet/vnet"
)

// Interfaces that lead out have one device each outside, whatever their names
// are, and the next hops of all ways out by them.
func TestOutsidePorts(t *testing.T) {
	nat := func(host, device, via, pool string) vnet.NAT {
		a := netip.MustParseAddr(pool)
		return vnet.NAT{Host: vnet.HostID(host), Interface: device, Via: netip.MustParseAddr(via), Pool: vnet.AddrRange{First: a, Last: a}}
	}
	ports := outsidePorts(vnet.Substrate{NAT: []vnet.NAT{
		nat("h1", "eth2", "192.0.2.1", "192.0.2.10"), nat("h1", "eth2", "203.0.113.1", "203.0.113.200"),
		nat("a-long-name-of-a-host", "eth2", "10.1.0.1", "10.1.7.1"), nat("a-long-name-of-a-host", "eth3", "10.2.0.1", "10.2.0.2"),
	}})
	var names, addresses []string
	for _, p := range ports {
		names = append(names, p.there)
		for _, a := range p.addresses {
			addresses = append(addresses, a.String())
		}
	}
	if len(names) != 3 || names[0] != "h1-eth2" || len(names[1]) != maxInterface || names[1] == names[2] {
		t.Errorf("devices outside: %v", names)
	}
	for i, want := range []string{"192.0.2.1/24", "203.0.113.1/24", "10.1.0.1/21", "10.2.0.1/24"} {
		if len(addresses) != 4 || addresses[i] != want {
			t.Fatalf("addresses outside: %v", addresses)
		}
	}
}
