package plan

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"sublet/vnet"
)

// TestWhatDaemonsAreTold holds the configurations of a ring's routers against
// golden text: of BGP one router in a system of its own beside two in another,
// of OSPF a link with area and cost, of IS-IS one with a cost.
func TestWhatDaemonsAreTold(t *testing.T) {
	bgp, ospf, isis := ring(3, vnet.ProtocolBGP), ring(3, vnet.ProtocolOSPF6), ring(3, vnet.ProtocolISIS)
	for i := range 3 {
		bgp.Request.Routers[i].AS = 65002
	}
	bgp.Request.Routers[0].AS = 65001
	ospf.Request.Links[1].Area, ospf.Request.Links[1].Cost = 3, 7
	isis.Request.Links[1].Cost = 7
	bgp.Request.Routers[1].Neighbors = []vnet.Neighbor{{Address: netip.MustParseAddr("10.9.9.9"), AS: 65009}, {Address: netip.MustParseAddr("2001:db8:9::9"), AS: 65002}}
	isis.Request.Routers[1].FRR = "router rip\n network 10.0.0.0/8\nrouter isis net\n"
	for _, l := range []vnet.Lease{bgp, ospf, isis} {
		l.LinkAddresses = map[string]vnet.LinkAddresses{"r0r1": {
			{netip.MustParsePrefix("10.0.12.1/24"), netip.MustParsePrefix("2001:db8::1/64")},
			{netip.MustParsePrefix("10.0.12.2/24"), netip.MustParsePrefix("2001:db8::2/64")},
		}}
		protocol := l.Request.Routers[1].Protocol
		hosts, err := Compile(substrate, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, r := range Of[VxRouter](hosts["h2"]) {
			if r.Node == "r1" && r.OSPF == nil {
				for _, d := range r.FRR.Daemons {
					got.WriteString("# " + d.Name + "\n" + d.Config)
				}
				if r.FRR.Config != "" {
					got.WriteString("# the tenant\n" + r.FRR.Config)
				}
			}
		}
		want, err := os.ReadFile("testdata/frr-" + string(protocol) + ".conf")
		if err != nil || got.String() != string(want) {
			t.Errorf("%s: r1 is told\n%s, %v", protocol, got.String(), err)
		}
	}
}

// TestUsualOSPFStays: routers whose links state neither area nor cost are planned
// as they always were, so that running daemons are left alone.
func TestUsualOSPFStays(t *testing.T) {
	l := ring(3, vnet.ProtocolOSPF)
	l.Request.Links[1].Cost = 5 // r0r1
	hosts, err := Compile(substrate, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Of[VxRouter](hosts["h2"]) {
		if usual := r.Node == "r2"; r.Forward && (r.OSPF != nil) != usual {
			t.Errorf("%s", r)
		}
	}
}
