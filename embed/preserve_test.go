package embed

import (
	"fmt"
	"testing"

	"sublet/embed/calendar"
	"sublet/internal/splitmix"
	"sublet/vnet"

	"pgregory.net/rapid"
)

// TestTakesTheTightestEquivalentHost: of hosts that differ in the width of their only link
// the narrowest that suffices is taken, whatever their order.
func TestTakesTheTightestEquivalentHost(t *testing.T) {
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "hub", CPU: 100}}}
	for _, width := range []int{90, 15, 40, 10, 70} {
		name := fmt.Sprintf("leaf%d", width)
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name), CPU: 100})
		rate := vnet.Rate(width) * vnet.Mbit
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{"hub", name}, Capacity: rate})
	}
	r := vnet.Request{Network: "n", Colocate: vnet.ColocateForbidden}
	r.Nodes = []vnet.VirtualNode{{Name: "a", CPU: 60, Host: "hub"}, {Name: "b", CPU: 60}, {Name: "c", CPU: 60}}
	for i, need := range []int{14, 35} {
		b := vnet.Bandwidth{Min: vnet.Rate(need) * vnet.Mbit, Max: vnet.Rate(need) * vnet.Mbit}
		end := r.Nodes[i+1].Name
		r.Links = append(r.Links, vnet.VirtualLink{Name: end, Ends: [2]string{"a", end}, Bandwidth: [2]vnet.Bandwidth{b, b}})
	}
	m, err := embedOn(sub, calendar.New(), r, vnet.Window{Start: epoch})
	if err != nil {
		t.Fatal(err)
	}
	if m.Nodes["b"] != "leaf15" || m.Nodes["c"] != "leaf40" {
		t.Errorf("b is on %s and c on %s, want leaf15 and leaf40", m.Nodes["b"], m.Nodes["c"])
	}
}

// TestHostsDifferInMore: where the tightest equivalent host of one node is the only one
// with processor enough for another, both are placed all the same.
func TestHostsDifferInMore(t *testing.T) {
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "hub"}, {Name: "big", CPU: 100}, {Name: "small", CPU: 10}}}
	for i, width := range []vnet.Rate{50, 60} {
		name := string(sub.Hosts[i+1].Name)
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: name, Ends: [2]string{"hub", name}, Capacity: width * vnet.Mbit})
	}
	b := vnet.Bandwidth{Min: 20 * vnet.Mbit, Max: 20 * vnet.Mbit}
	r := vnet.Request{Network: "n", Colocate: vnet.ColocateForbidden}
	r.Nodes = []vnet.VirtualNode{{Name: "x", CPU: 10}, {Name: "y", CPU: 90}}
	r.Links = []vnet.VirtualLink{{Name: "l", Ends: [2]string{"x", "y"}, Bandwidth: [2]vnet.Bandwidth{b, b}}}
	m, err := embedOn(sub, calendar.New(), r, vnet.Window{Start: epoch})
	if err != nil || m.Nodes["x"] != "small" || m.Nodes["y"] != "big" {
		t.Errorf("%v, %v", m.Nodes, err)
	}
}

// TestPreserveCostsNothing: what preserve moves costs as much as before, takes no more
// from where much is left, and books exactly what its walks take.
func TestPreserveCostsNothing(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		sub := flat(9, rapid.IntRange(0, 8).Draw(t, "chords"))
		for i := range sub.Links {
			sub.Links[i].Capacity = vnet.Rate(rapid.IntRange(30, 90).Draw(t, "capacity")) * vnet.Mbit
		}
		r := chain(rapid.IntRange(2, 5).Draw(t, "nodes"))
		p, err := problemOf(r, vnet.Window{Start: epoch})
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(sub)
		if err != nil {
			t.Fatal(err)
		}
		s := newSearch(p, e.graph, residualOf(e.inventory(), calendar.New(), p.spans), "")
		s.useTables(&e.tables, e.shortestPaths())
		s.random = random{splitmix.Source(rapid.Uint64().Draw(t, "seed"))}
		if !s.attempts(100_000) {
			return
		}
		cost, lost := s.cost, s.freeBandwidth().cost(s)
		s.preserve(s.spent() + 100_000)
		now := s.freeBandwidth().cost(s)
		if s.cost > cost || now > lost {
			t.Fatalf("costs %g and loses %g, before %g and %g", s.cost, now, cost, lost)
		}
		if now < lost {
			moved++
		}
		s.clear()
		for i, left := range s.residual.amounts {
			if was := residualOf(e.inventory(), calendar.New(), p.spans).amounts[i]; left != was {
				t.Fatalf("%s: %d is left when nothing is placed, want %d", s.residual.key(resource(i)), left, was)
			}
		}
	})
	if moved == 0 {
		t.Error("nothing was ever moved")
	}
}

// chain is a network of nodes joined in a row.
func chain(nodes int) vnet.Request {
	r := vnet.Request{Network: "n", Colocate: vnet.ColocateForbidden}
	b := vnet.Bandwidth{Min: 10 * vnet.Mbit, Max: 10 * vnet.Mbit}
	for i := range nodes {
		r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: fmt.Sprint(i), CPU: 100})
		if i > 0 {
			r.Links = append(r.Links, vnet.VirtualLink{Name: fmt.Sprint(i), Ends: [2]string{fmt.Sprint(i - 1), fmt.Sprint(i)}, Bandwidth: [2]vnet.Bandwidth{b, b}})
		}
	}
	return r
}
