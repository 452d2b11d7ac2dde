package plan

import (
	"fmt"
	"net/netip"
	"testing"

	"sublet/vnet"
)

// A switch with access to an exit has a port more, which follows those of all
// stages, and leads to its VLAN.
func TestAccessIsAPort(t *testing.T) {
	links := []vnet.VirtualLink{{Name: "l1", Ends: [2]string{"a", "lan"}}, {Name: "l2", Ends: [2]string{"b", "lan"}}}
	l := vnet.Lease{
		Request: vnet.Request{Network: "net", Tenant: "alice", Topology: vnet.Topology{
			Nodes: []vnet.VirtualNode{{Name: "a"}, {Name: "b"}}, Switches: []vnet.VirtualSwitch{{Name: "lan", Kind: vnet.SwitchKernel, Access: "campus"}},
			Links: links[:1],
		}, Stages: []vnet.Stage{{Name: "later", After: 1, Add: vnet.Topology{Links: links[1:]}}}},
		State: vnet.Running, Stage: -1,
		Mapping: vnet.Mapping{
			Nodes: map[string]vnet.HostID{"a": "h1", "b": "h1", "lan": "h1"}, Links: map[string]vnet.Path{"l1": {}, "l2": {}},
			VLANs: map[string]uint16{"lan": 117},
		},
		Addresses: map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1"), "b": netip.MustParseAddr("10.0.0.2")},
	}
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}}, Exits: []vnet.Exit{{
		Name: "campus", Host: "h1", Interface: "eth5", VLANs: vnet.VLANRange{First: 100, Last: 199},
	}}}
	hosts, err := Compile(sub, []vnet.Lease{l})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(Of[Access](hosts["h1"])), "[alice.net.lan.switch/eth2 to eth5 vlan 117]"; got != want {
		t.Errorf("accesses %s, not %s", got, want)
	}
	if ports := Of[SwitchPort](hosts["h1"]); len(ports) != 2 || ports[1].Interface != "eth2" || ports[1].Blocked || len(ports[1].To) > 0 {
		t.Errorf("ports %v", ports)
	}
	sub.Exits = nil
	if _, err := Compile(sub, []vnet.Lease{l}); err == nil {
		t.Error("there is no exit, and a plan all the same")
	}
}
