package graph

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sublet/fabric"
	"sublet/vnet"
)

// drawFabric is up to nine switches that are relays, two hosts on two of them,
// and sometimes a host that can be passed.
func drawFabric(t *rapid.T) vnet.Substrate {
	sub := vnet.Substrate{Hosts: []vnet.SubstrateNode{{Name: "a"}, {Name: "b"}}, Relays: map[string]netip.Addr{}}
	n := rapid.IntRange(2, 9).Draw(t, "switches")
	for i := range n {
		sub.Switches = append(sub.Switches, fmt.Sprintf("s%d", i))
		sub.Relays[sub.Switches[i]] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
	}
	join := func(a, b string) {
		for _, l := range sub.Links {
			if l.Ends == [2]string{a, b} || l.Ends == [2]string{b, a} {
				return
			}
		}
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: a + "-" + b, Ends: [2]string{a, b}})
	}
	join("a", "s0")
	join("b", sub.Switches[n-1])
	for i := 1; i < n; i++ {
		join(sub.Switches[rapid.IntRange(max(0, i-2), i-1).Draw(t, "near")], sub.Switches[i])
	}
	for range rapid.IntRange(0, 2*n).Draw(t, "chords") {
		i := rapid.IntRange(0, n-2).Draw(t, "one")
		join(sub.Switches[i], sub.Switches[rapid.IntRange(i+1, min(i+3, n-1)).Draw(t, "other")])
	}
	if rapid.Bool().Draw(t, "through") {
		sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: "c"})
		join("c", sub.Switches[rapid.IntRange(0, n/2).Draw(t, "in")])
		join("c", sub.Switches[n-1])
	}
	return sub
}

// relaysOf is the most relays that a stretch of a walk takes.
func relaysOf(g *Graph, f *fabric.Fabric, from int, walk []Arc) int {
	most := 0
	var path fabric.Path
	for _, a := range walk {
		if at := g.head[a]; at < g.named {
			most, path = max(most, len(f.Pin(path))), fabric.Path{}
		} else {
			if len(path.Nodes) > 0 {
				path.Links = append(path.Links, a.Link())
			}
			path.Nodes = append(path.Nodes, at-g.named)
		}
	}
	return most
}

// TestLeastPinned: the search finds the shortest of all walks that take at most
// so many relays and leave some arcs out, or that there is none.
func TestLeastPinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub := drawFabric(t)
		g, err := New(sub)
		if err != nil {
			t.Fatal(err)
		}
		closed := rapid.SliceOfN(rapid.IntRange(0, len(sub.Links)-1), 0, 3).Draw(t, "closed")
		open := func(a Arc) bool { return !slices.Contains(closed, a.Link()) }
		f, relays := fabric.FabricOf(sub), rapid.IntRange(0, 4).Draw(t, "relays")
		want := math.Inf(1)
		for _, walk := range g.Walks(0, 1, 1<<16, Query{Allow: open}) {
			if g.simple(0, walk) && relaysOf(g, f, 0, walk) <= relays {
				want = min(want, float64(len(walk)))
			}
		}
		walk, price, ok := g.leastPinned(0, 1, relays, Fares{Price: func(a Arc) float64 {
			if open(a) {
				return 1
			}
			return math.Inf(1)
		}})
		switch {
		case !ok && len(sub.Hosts) == 2 && !math.IsInf(want, 1):
			t.Fatalf("nothing was found, and there is one of %v links", want)
		case !ok:
		case price != float64(len(walk)) || price != want:
			t.Fatalf("%v costs %v; the shortest, %v", g.Path(walk), price, want)
		case relaysOf(g, f, 0, walk) > relays:
			t.Fatalf("%v takes %d relays of %d", g.Path(walk), relaysOf(g, f, 0, walk), relays)
		}
	})
}
