package lease

import (
	"errors"
	"slices"
	"testing"

	"sublet/plan"
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

// TestRoutersWithDaemonsMove: the new router gets what the old one has learned before
// neighbours send to it, its daemons begin when the others' end, and all routers keep
// what they have learned until it has arrived.
func TestRoutersWithDaemonsMove(t *testing.T) {
	b := New(ground("host A", "host B", "host C", "host D", "link A B 1000", "link B C 1000", "link A D 1000", "link D C 1000"))
	rate := [2]vnet.Bandwidth{vnet.Static(vnet.Mbit), vnet.Static(vnet.Mbit)}
	id := admitted(t, b, vnet.Request{Tenant: "t", Network: "n", Colocate: vnet.ColocateForbidden, Topology: vnet.Topology{
		Routers: []vnet.VirtualNode{{Name: "x", Host: "A", Protocol: vnet.ProtocolOSPF}, {Name: "y", Host: "C", Protocol: vnet.ProtocolOSPF}, {Name: "r", Protocol: vnet.ProtocolOSPF}},
		Links:   []vnet.VirtualLink{{Name: "xr", Ends: [2]string{"x", "r"}, Bandwidth: rate}, {Name: "ry", Ends: [2]string{"r", "y"}, Bandwidth: rate}},
	}})
	applied(t, b)
	was := mappingOf(t, b, id).Nodes["r"]
	if _, err := b.SetHostDrained(noon, was, true); err != nil {
		t.Fatal(err)
	}
	to := mappingOf(t, b, id).Nodes["r"]
	routers := func(phase vnet.MovePhase, want map[vnet.HostID]string) {
		t.Helper()
		if l, _ := b.Lease(id); phase != "" && (l.Move == nil || l.Move.Phase != phase) || phase == "" && l.Move != nil {
			t.Fatalf("it moves: %+v, not %s", l.Move, phase)
		}
		for host, words := range want {
			is := ""
			for _, item := range b.entries[id].parts[host] {
				if r, ok := item.(plan.VxRouter); ok {
					is = map[bool]string{false: "silent", true: "speaks"}[r.Learns()] + map[bool]string{true: " keeps"}[r.Keep]
				}
			}
			if is != words {
				t.Errorf("%s: the router on %s is %q, not %q", phase, host, is, words)
			}
		}
	}
	applied(t, b)
	routers(vnet.MovePrepares, map[vnet.HostID]string{"A": "speaks keeps", "C": "speaks keeps", was: "speaks keeps", to: "silent keeps"})
	want := Copy{id, b.entries[id].Serial, "r", was, to, CopyRoutes}
	if got := b.Copies(); !slices.Equal(got, []Copy{want}) {
		t.Fatalf("copies: %v", got)
	}
	files := want
	files.What = CopyFiles
	if err := b.Copied(noon, files); !errors.Is(err, ErrConflict) {
		t.Errorf("files: %v", err)
	}
	if err := b.Copied(noon, want); err != nil {
		t.Fatal(err)
	}
	routers(vnet.MoveSwitches, map[vnet.HostID]string{"A": "speaks keeps", "C": "speaks keeps", was: "silent keeps", to: "speaks keeps"})
	applied(t, b)
	routers("", map[vnet.HostID]string{"A": "speaks", "C": "speaks", was: "", to: "speaks"})
}
