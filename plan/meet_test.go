package plan

import (
	"testing"

	"sublet/vnet"
)

// On its way to another place a link stays for now where it was, and so does the uplink
// that it leaves by; one that nothing leaves by goes.
func TestLinksKeepTheirUplinksOnTheWay(t *testing.T) {
	link := func(by string) VxLink {
		port := Port{Namespace: "t.n.a", Interface: "eth0"}
		return VxLink{Lease: vnet.LeaseID{Tenant: "t", Network: "n"}, Link: "ab", Ends: [2]End{{Port: &port}, {Tunnel: &Tunnel{VNI: 7, Interface: by}}}}
	}
	var was, is Host
	for _, item := range []Item{Uplink{Interface: "p0"}, Uplink{Interface: "p1"}, link("p0")} {
		was.Add(item)
	}
	for _, item := range []Item{Uplink{Interface: "p2"}, link("p2")} {
		is.Add(item)
	}
	meet := Meet(was, is)
	if list := Of[Uplink](meet); len(list) != 1 || list[0].Interface != "p0" {
		t.Errorf("uplinks %v", list)
	}
	if list := Of[VxLink](meet); len(list) != 1 || list[0].Ends[1].Tunnel.Interface != "p0" {
		t.Errorf("links %v", list)
	}
}
