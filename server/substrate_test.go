package server

import (
	"net/netip"
	"reflect"
	"testing"

	"sublet/vnet"
)

// TestTenantsSeeNoNetworksBehindWaysOut, as they see no addresses of links; what
// they can ask for they see.
func TestTenantsSeeNoNetworksBehindWaysOut(t *testing.T) {
	sub := vnet.Substrate{NAT: []vnet.NAT{{
		Name: "campus", Host: "h", Interface: "eth2", Capacity: vnet.Gbit, Via: netip.MustParseAddr("192.0.2.1"),
		Publish: vnet.PortRange{First: 80, Last: 90}, Refuse: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}}}
	seen := veiled(sub).NAT[0]
	if want := (vnet.NAT{Name: "campus", Host: "h", Capacity: vnet.Gbit, Publish: vnet.PortRange{First: 80, Last: 90}}); !reflect.DeepEqual(seen, want) {
		t.Errorf("seen %+v", seen)
	}
	sub.Exits = []vnet.Exit{{Name: "lan", Host: "h", Interface: "eth3", VLANs: vnet.VLANRange{First: 1, Last: 9}, Capacity: vnet.Gbit}}
	if seen := veiled(sub).Exits[0]; seen != (vnet.Exit{Name: "lan", Host: "h", VLANs: vnet.VLANRange{First: 1, Last: 9}, Capacity: vnet.Gbit}) {
		t.Errorf("seen %+v", seen)
	}
	if sub.NAT[0].Interface == "" || sub.Exits[0].Interface == "" {
		t.Error("the book's substrate was changed")
	}
}
