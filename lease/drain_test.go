package lease

import (
	"testing"

	"sublet/report"
	"sublet/vnet"
)

// TestDrainMovesRouters: a running network's router goes, its nodes stay.
func TestDrainMovesRouters(t *testing.T) {
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "A"}, {"host", "B"}, {"host", "C"}, {"host", "D"},
		{"link", "A", "B", "1000"}, {"link", "B", "C", "1000"}, {"link", "A", "D", "1000"}, {"link", "D", "C", "1000"}} {
		describe(&sub, words)
	}
	b := New(sub)
	rate := [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}
	l, err := b.Admit(noon, vnet.Request{Tenant: "t", Network: "n", Colocate: vnet.ColocateForbidden, Topology: vnet.Topology{
		Nodes:   []vnet.VirtualNode{{Name: "x", Host: "A"}, {Name: "y", Host: "C"}},
		Routers: []vnet.VirtualNode{{Name: "r"}},
		Links:   []vnet.VirtualLink{{Name: "xr", Ends: [2]string{"x", "r"}, Bandwidth: rate}, {Name: "ry", Ends: [2]string{"r", "y"}, Bandwidth: rate}},
	}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	report := func() {
		for host, p := range b.Plans() {
			if err := b.Report(noon, report.Report{Host: host, Revision: p.Revision}); err != nil {
				t.Fatal(err)
			}
		}
	}
	report()
	was := l.Mapping.Nodes["r"]
	list, err := b.SetHostDrained(noon, was, true)
	if err != nil || len(list) != 1 || len(list[0].Stays) > 0 {
		t.Fatalf("draining %s: %+v, %v", was, list, err)
	}
	l, _ = b.Lease(l.ID())
	if is := l.Mapping.Nodes["r"]; is == was || l.Mapping.Nodes["x"] != "A" || l.Mapping.Nodes["y"] != "C" {
		t.Errorf("from %s the nodes went to %v", was, l.Mapping.Nodes)
	}
	for range 6 {
		report()
	}
	if l, _ = b.Lease(l.ID()); l.State != vnet.Running || l.Move != nil {
		t.Errorf("it is %s, moving %+v: %s", l.State, l.Move, l.Message)
	}
	if p, _ := b.Plan(was); len(p.Items()) > 0 {
		t.Errorf("%s still has %s", was, p)
	}
	if list, err = b.SetHostDrained(noon, "A", true); err != nil || len(list) != 1 || len(list[0].Stays) == 0 {
		t.Errorf("a host with a node: %+v, %v", list, err)
	}
}
