package graph

import (
	"slices"
	"testing"

	"sublet/vnet"

	"pgregory.net/rapid"
)

// TestShutIsWhatOpenWouldFind: ways that are shut along what became full are
// those that are found anew, and reopened they are what they were; without the
// hosts that only one link joins, all others are as far.
func TestShutIsWhatOpenWouldFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub := drawSubstrate(t)
		for _, name := range sub.Switches {
			sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name)})
		}
		sub.Switches = nil
		g, err := New(sub)
		if err != nil {
			t.Fatal(err)
		}
		p := &Prices{Need: [2][]int64{{2}, {1}}, Price: make([]int32, 2*len(sub.Links))}
		for range p.Price {
			p.Left = append(p.Left, rapid.Int64Range(0, 6).Draw(t, "left"))
		}
		var before, ways, fresh HopGraph
		g.FillHops(&before, p)
		g.FillHops(&ways, p)
		var walk []Arc
		for a := range p.Left {
			if rapid.Bool().Draw(t, "taken") {
				p.Left[a] -= 3
				walk = append(walk, Arc(a))
			}
		}
		g.FillHops(&fresh, p)
		shut := g.Close(&ways, walk, p, nil)
		if !slices.Equal(ways.sets, fresh.sets) {
			t.Fatalf("shut %v: %b, want %b", shut, ways.sets, fresh.sets)
		}
		checkInner(t, g, &ways, len(sub.Hosts))
		for _, a := range shut {
			g.Reopen(&ways, a)
		}
		if !slices.Equal(ways.sets, before.sets) {
			t.Fatalf("reopened %v: %b, want %b", shut, ways.sets, before.sets)
		}
	})
}

func checkInner(t *rapid.T, g *Graph, w *HopGraph, hosts int) {
	from := rapid.IntRange(0, hosts-1).Draw(t, "from")
	all, inner, space := make([]int32, hosts), make([]int32, hosts), []uint64(nil)
	g.Hops(from, w, 8, all, &space)
	g.InnerHops(from, w, 8, inner, &space)
	for h := range all {
		if want := all[h]; (g.Only(h) < 0 || h == from) && inner[h] != want {
			t.Fatalf("from %d to %d: %d, want %d", from, h, inner[h], want)
		}
	}
}
