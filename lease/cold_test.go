package lease

import (
	"testing"

	"sublet/report"
	"sublet/vnet"
)

// coldBook has a running network of two nodes, x on A and y on C;
// B and D are at the same places.
func coldBook(t *testing.T, x, y vnet.NodeMove) (*Book, vnet.LeaseID, func()) {
	t.Helper()
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "A"}, {"host", "B"}, {"host", "C"}, {"host", "D"},
		{"link", "A", "B", "1000"}, {"link", "B", "C", "1000"}, {"link", "A", "C", "1000"}, {"link", "D", "C", "1000"}} {
		describe(&sub, words)
	}
	for i := range sub.Hosts {
		sub.Hosts[i].Site = map[vnet.HostID]string{"A": "west", "B": "west", "C": "east", "D": "east"}[sub.Hosts[i].Name]
	}
	b := New(sub)
	rate := [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}
	report := func() {
		for host, p := range b.Plans() {
			must(b.Report(noon, report.Report{Host: host, Revision: p.Revision}))
		}
	}
	for _, host := range []vnet.HostID{"B", "D"} { // so that it comes to the others
		_, err := b.SetHostDrained(noon, host, true)
		must(err)
	}
	l, err := b.Admit(noon, vnet.Request{Tenant: "t", Network: "n", Colocate: vnet.ColocateForbidden, Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "x", Site: "west", Movable: x}, {Name: "y", Site: "east", Movable: y}},
		Links: []vnet.VirtualLink{{Name: "xy", Ends: [2]string{"x", "y"}, Bandwidth: rate}},
	}}, 0)
	if err != nil || l.Mapping.Nodes["x"] != "A" || l.Mapping.Nodes["y"] != "C" {
		t.Fatalf("%v, %v", l.Mapping.Nodes, err)
	}
	for _, host := range []vnet.HostID{"B", "D"} {
		_, err := b.SetHostDrained(noon, host, false)
		must(err)
	}
	for range 3 {
		report()
	}
	return b, l.ID(), report
}

// TestColdNodesLeaveDrainedHosts: those that say so, and no others; their hosts have
// nothing of them afterwards.
func TestColdNodesLeaveDrainedHosts(t *testing.T) {
	for _, x := range []vnet.NodeMove{"", vnet.MoveCold} {
		b, id, report := coldBook(t, x, "")
		list, err := b.SetHostDrained(noon, "A", true)
		if err != nil || len(list) != 1 || (len(list[0].Stays) == 0) != (x == vnet.MoveCold) {
			t.Errorf("movable %q: %+v, %v", x, list, err)
		}
		for range 4 {
			report()
		}
		l, _ := b.Lease(id)
		where := map[vnet.NodeMove]vnet.HostID{"": "A", vnet.MoveCold: "B"}[x]
		if l.State != vnet.Running || l.Move != nil || l.Mapping.Nodes["x"] != where || l.Mapping.Nodes["y"] != "C" {
			t.Errorf("movable %q: it is %s on %v, moving %+v: %s", x, l.State, l.Mapping.Nodes, l.Move, l.Message)
		}
		if p, _ := b.Plan("A"); (len(p.Items()) > 0) != (x == "") {
			t.Errorf("movable %q: A has %s", x, p)
		}
	}
}

// TestColdNodesLeaveWhatIsCutOff: a host that works and whose links do not is left by
// nodes that say so; where another path does they stay.
func TestColdNodesLeaveWhatIsCutOff(t *testing.T) {
	for _, x := range []vnet.NodeMove{"", vnet.MoveCold} {
		b, id, report := coldBook(t, x, vnet.MoveCold)
		for _, l := range b.Substrate().Links {
			if l.Ends[0] == "A" || l.Ends[1] == "A" {
				must(b.SetLinkDown(noon, l.Name, true))
			}
		}
		for range 4 {
			report()
		}
		l, _ := b.Lease(id)
		if moved := l.Mapping.Nodes["x"] == "B"; moved != (x == vnet.MoveCold) || moved != (l.Lost == nil) || l.Mapping.Nodes["y"] != "C" {
			t.Errorf("movable %q: it is %s on %v, lost %v", x, l.State, l.Mapping.Nodes, l.Lost)
		}
	}
}
