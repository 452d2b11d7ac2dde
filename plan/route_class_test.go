package plan

import (
	"fmt"
	"net/netip"
	"testing"

	"sublet/vnet"
)

// Packets of a class take the links that are its own where these lead nearer, and no
// other packets do:
//
//	n1 -- r1 ==== r2 ==== r3 -- n3
//	       \______________/
func TestRoutesOfClasses(t *testing.T) {
	for _, protocol := range []vnet.Protocol{vnet.ProtocolStatic, vnet.ProtocolOSPF} {
		names := []string{"n1", "r1", "r2", "r3", "n3"}
		l := vnet.Lease{
			Request: vnet.Request{
				Network: "net", Tenant: "alice",
				Classes: []vnet.TrafficClass{{Name: "bulk", Match: vnet.Packets{Protocol: vnet.ProtocolTCP, DstPort: vnet.PortRange{First: 80, Last: 80}}}},
				Topology: vnet.Topology{
					Nodes:   []vnet.VirtualNode{{Name: "n1"}, {Name: "n3"}},
					Routers: []vnet.VirtualNode{{Name: "r1", Protocol: protocol}, {Name: "r2", Protocol: protocol}, {Name: "r3", Protocol: protocol}},
				},
			},
			State: vnet.Running, Stage: -1,
			Mapping:   vnet.Mapping{Nodes: make(map[string]vnet.HostID), Links: make(map[string]vnet.Path)},
			Addresses: make(map[string]netip.Addr),
		}
		for i, name := range names {
			l.Mapping.Nodes[name], l.Addresses[name] = "h1", netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		}
		for _, link := range []vnet.VirtualLink{
			{Name: "n1-r1", Ends: [2]string{"n1", "r1"}}, {Name: "bulk12", Ends: [2]string{"r1", "r2"}, Class: "bulk"},
			{Name: "r1-r3", Ends: [2]string{"r1", "r3"}}, {Name: "bulk23", Ends: [2]string{"r2", "r3"}, Class: "bulk"},
			{Name: "r3-n3", Ends: [2]string{"r3", "n3"}},
		} {
			l.Request.Links = append(l.Request.Links, link)
			l.Mapping.Links[link.Name] = vnet.Path{}
		}
		hosts, err := Compile(vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "h1"}}}, []vnet.Lease{l})
		if err != nil {
			t.Fatal(err)
		}
		way := func(list []Route, to string) string {
			for _, r := range list {
				if r.Prefix.String() == to {
					return fmt.Sprintf("%s@%s", r.Via, r.Interface)
				}
			}
			return ""
		}
		for _, r := range Of[VxRouter](hosts["h1"]) {
			if r.Node[0] == 'n' {
				if r.Classes != nil {
					t.Errorf("%s, which is no router, has classes", r.Node)
				}
				continue
			}
			want := map[string]string{"r1": "10.0.0.3@eth1", "r2": "10.0.0.4@eth1", "r3": ""}[r.Node] // r3 has n3 on a link
			if len(r.Classes) != 1 || len(r.Classes[0].Match) != 2 || way(r.Classes[0].Routes, "10.0.0.5/32") != want {
				t.Errorf("%s %s has classes %+v", protocol, r.Node, r.Classes)
			}
			if r.Node == "r1" && protocol == vnet.ProtocolStatic && way(r.Routes, "10.0.0.5/32") != "10.0.0.4@eth2" {
				t.Errorf("r1 has routes %v", r.Routes)
			}
			if r.Node == "r2" && (len(r.Routes) > 0 || r.OSPF != nil && len(r.OSPF.Interfaces) > 0) {
				t.Errorf("r2, which only a class leads to, has routes %v, OSPF %+v", r.Routes, r.OSPF)
			}
		}
	}
}
