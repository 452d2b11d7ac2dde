package graph

import (
	"math"
	"testing"

	"sublet/vnet"

	"pgregory.net/rapid"
)

// TestLeastAgainstReach: where every arc costs the same, the cheapest walks
// are those with the fewest hops; they lead where they should, over arcs that
// have what is needed.
func TestLeastAgainstReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sub := drawSubstrate(t)
		for _, name := range sub.Switches { // between hosts simple walks are all there are
			sub.Hosts = append(sub.Hosts, vnet.SubstrateNode{Name: vnet.HostID(name)})
		}
		sub.Switches = nil
		g, err := New(sub)
		if err != nil {
			t.Fatal(err)
		}
		p := &Prices{Floor: 8, Need: [2][]int64{{2}, {1}}}
		for range 2 * len(sub.Links) {
			p.Price = append(p.Price, 8)
			p.Left = append(p.Left, rapid.Int64Range(0, 4).Draw(t, "left"))
		}
		allow := func(a Arc) bool { return p.Left[a] >= 2 && p.Left[a.Opposite()] >= 1 }
		from := rapid.IntRange(0, len(sub.Hosts)-1).Draw(t, "from")
		reach := g.Reach(from, Query{To: -1, Allow: allow})
		tree := g.NewLeast()
		tree.Grow(from, math.MaxInt64, p)
		for to := range sub.Hosts {
			hops, ok := reach.Hops(to)
			if ok = ok || to == from; ok != (tree.Cost(to) != Unreached) {
				t.Fatalf("host %d: reached %v, at a cost of %d", to, ok, tree.Cost(to))
			}
			if ok && to != from {
				checkWalk(t, g, tree, from, to, hops, allow)
			}
		}
	})
}

func checkWalk(t *rapid.T, g *Graph, tree *Least, from, to, hops int, allow func(Arc) bool) {
	walk, ok := tree.Walk(to)
	if !ok || len(walk) != hops || tree.Cost(to) != int64(8*hops) {
		t.Fatalf("host %d: walk %v at %d, want %d hops", to, walk, tree.Cost(to), hops)
	}
	at := from
	for _, a := range walk {
		if g.head[a.Opposite()] != at || !allow(a) {
			t.Fatalf("host %d: walk %v does not lead on at %d", to, walk, at)
		}
		at = g.head[a]
	}
	if at != to {
		t.Fatalf("host %d: walk %v ends at %d", to, walk, at)
	}
}

// TestSeek: a search that ends once it has reached what was sought finds the
// same there as one that goes everywhere.
func TestSeek(t *testing.T) {
	g, err := New(diamond(1))
	if err != nil {
		t.Fatal(err)
	}
	p := &Prices{Floor: 1, Need: [2][]int64{{1}, {1}}}
	for range 2 * len(g.links) {
		p.Price, p.Left = append(p.Price, 1), append(p.Left, 1)
	}
	tree := g.NewLeast()
	for range 2 {
		tree.Seek(1)
		tree.Grow(0, math.MaxInt64, p)
		walk, ok := tree.Walk(1)
		if path := g.Path(walk); !ok || len(path) != 2 || path[0] != "g" || path[1] != "h" {
			t.Errorf("from h1 to h2: %v", path)
		}
	}
}
