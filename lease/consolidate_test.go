package lease

import (
	"slices"
	"testing"

	"sublet/report"
	"sublet/vnet"
)

// spreadBook has a router between nodes of other hosts on a host of its own, and a
// network that has not begun on another.
func spreadBook(t *testing.T) (b *Book, live, later vnet.LeaseID, tell func()) {
	t.Helper()
	var sub vnet.Substrate
	for _, words := range [][]string{{"host", "A"}, {"host", "B"}, {"host", "C"}, {"host", "D"},
		{"link", "A", "B", "1000"}, {"link", "B", "C", "1000"}, {"link", "A", "C", "1000"}, {"link", "D", "C", "1000"}, {"link", "A", "D", "1000"}} {
		describe(&sub, words)
	}
	for i := range sub.Hosts {
		sub.Hosts[i].CPU = 4000
	}
	b = New(sub)
	rate := [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}
	at := func(name string, host vnet.HostID) vnet.VirtualNode {
		return vnet.VirtualNode{Name: name, Host: host, CPU: 500}
	}
	l, err := b.Admit(noon, vnet.Request{Tenant: "t", Network: "live", Topology: vnet.Topology{
		Nodes:   []vnet.VirtualNode{at("x", "A"), at("y", "C")},
		Routers: []vnet.VirtualNode{{Name: "r", CPU: 500, Host: "B"}},
		Links:   []vnet.VirtualLink{{Name: "xr", Ends: [2]string{"x", "r"}, Bandwidth: rate}, {Name: "ry", Ends: [2]string{"r", "y"}, Bandwidth: rate}},
	}}, 0)
	must(err)
	free := b.entries[l.ID()]
	free.Request = rewrite(free.Request)
	free.Request.Routers[0].Host = ""
	l2, err := b.Admit(noon, vnet.Request{Tenant: "t", Network: "later", Start: noon.Add(3600e9), Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{at("p", "D")},
	}}, 0)
	must(err)
	b.entries[l2.ID()].Request.Nodes[0].Host = ""
	tell = func() {
		for host, p := range b.Plans() {
			must(b.Report(noon, report.Report{Host: host, Revision: p.Revision}))
		}
	}
	for range 8 {
		tell()
	}
	return b, l.ID(), l2.ID(), tell
}

// TestConsolidateOntoFewestHosts: what can go leaves its host, and nothing begins to use
// one that had nothing; a dry run says the same and changes nothing; again there is
// nothing to gain.
func TestConsolidateOntoFewestHosts(t *testing.T) {
	b, live, later, report := spreadBook(t)
	would, err := b.Consolidate(noon, vnet.FewestHosts, true)
	must(err)
	if l, _ := b.Lease(live); l.Mapping.Nodes["r"] != "B" || l.Move != nil {
		t.Errorf("a dry run moves: %v", l.Mapping.Nodes)
	}
	did, err := b.Consolidate(noon, vnet.FewestHosts, false)
	must(err)
	if !slices.Equal(would.Emptied, did.Emptied) || len(would.Moved) != len(did.Moved) {
		t.Errorf("the dry run said %+v, it was %+v", would, did)
	}
	for range 8 {
		report()
	}
	slices.Sort(did.Emptied)
	l, _ := b.Lease(live)
	p, _ := b.Lease(later)
	if !slices.Equal(did.Emptied, []vnet.HostID{"B", "D"}) || l.Mapping.Nodes["r"] == "B" || p.Mapping.Nodes["p"] == "D" || l.State != vnet.Running || l.Move != nil {
		t.Errorf("emptied %v; live %s on %v, moving %+v, later on %v", did.Emptied, l.State, l.Mapping.Nodes, l.Move, p.Mapping.Nodes)
	}
	if l.Mapping.Nodes["x"] != "A" || l.Mapping.Nodes["y"] != "C" || len(did.Full) != 2 {
		t.Errorf("nodes of a running network are on %v; full: %+v", l.Mapping.Nodes, did.Full)
	}
	for _, h := range b.Substrate().Hosts {
		if h.Drained {
			t.Errorf("%s is left drained", h.Name)
		}
	}
	if again, err := b.Consolidate(noon, vnet.FewestHosts, false); err != nil || len(again.Moved)+len(again.Emptied) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestConsolidateLeastLoaded: what crowds one host is spread over those with less.
func TestConsolidateLeastLoaded(t *testing.T) {
	b, live, later, report := spreadBook(t)
	_, err := b.Consolidate(noon, vnet.FewestHosts, false)
	must(err)
	for range 8 {
		report()
	}
	before := peaks(b.loads())
	did, err := b.Consolidate(noon, vnet.LeastLoaded, false)
	must(err)
	for range 8 {
		report()
	}
	if after := peaks(b.loads()); slices.Compare(after, before) >= 0 || len(did.Moved) == 0 {
		t.Errorf("loads %v became %v: %+v", before, after, did)
	}
	l, _ := b.Lease(live)
	if p, _ := b.Lease(later); l.State != vnet.Running || l.Mapping.Nodes["x"] != "A" || p.State != vnet.Booked {
		t.Errorf("live is %s on %v, later %s", l.State, l.Mapping.Nodes, p.State)
	}
	if again, err := b.Consolidate(noon, vnet.LeastLoaded, false); err != nil || len(again.Moved) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}
