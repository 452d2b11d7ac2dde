package report

import (
	"net/netip"
	"slices"
	"testing"

	"sublet/vnet"
)

// What a host lacks for its ports is told, of each interface once, and nothing of
// other hosts' ports.
func TestLacks(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	link := func(host string, p vnet.Port, mtu int) vnet.SubstrateLink {
		return vnet.SubstrateLink{Ends: [2]string{"s", host}, Ports: [2]vnet.Port{{}, p}, MTU: mtu}
	}
	links := []vnet.SubstrateLink{
		link("h1", vnet.Port{Interface: "eth0", Address: a}, 0), link("h1", vnet.Port{Interface: "eth0", Address: a}, 0),
		link("h1", vnet.Port{Interface: "eth1", Address: b}, 9000), link("h1", vnet.Port{}, 0),
		link("h2", vnet.Port{Interface: "ens4", Address: b}, 0),
	}
	right := []Interface{{Name: "eth0", MTU: 1500, Addresses: []netip.Addr{b, a}}, {Name: "eth1", MTU: 9000, Addresses: []netip.Addr{b}}}
	for _, c := range []struct {
		have []Interface
		want []string
	}{
		{right, nil},
		{right[:1], []string{"eth1: no such interface"}},
		{[]Interface{{Name: "eth0", MTU: 1400, Queue: "fq"}, right[1]}, []string{
			"eth0: MTU 1400 is less than the link's, 1500", "eth0: has a fq queue that Sublet did not make: tc qdisc del dev eth0 root", "eth0: has no address 192.0.2.1",
		}},
	} {
		if got := Lacks(links, "h1", c.have); !slices.Equal(got, c.want) {
			t.Errorf("with %+v: %q, want %q", c.have, got, c.want)
		}
	}
}
