package graph

import (
	"slices"
	"time"

	"sublet/vnet"
)

// tree is the fabric's fixed paths from one switch to all others.
type tree struct {
	parent   []Arc   // by switch: the arc that reaches it; -1 at the root and where nothing does
	children [][]Arc // by switch: the arcs that lead on
	order    []Arc   // all of them, those of a switch after the one that reaches it
}

// trail is a candidate for a fixed path; links are the ranks of its links, sorted.
type trail struct {
	hops    int
	latency time.Duration
	links   []int
	last    Arc
}

// before is the order among paths of equal ends: fewest hops, then least
// latency, then the one with the alphabetically first link that is not on
// both. The order does not change when both paths grow by the same link, and
// does not depend on direction; so a part of a fixed path is a fixed path,
// and both directions use the same one.
func (t trail) before(u trail) bool {
	if t.hops != u.hops {
		return t.hops < u.hops
	}
	if t.latency != u.latency {
		return t.latency < u.latency
	}
	return slices.Compare(t.links, u.links) < 0
}

// then is the trail with one more link.
func (t trail) then(g *Graph, a Arc) trail {
	at, _ := slices.BinarySearch(t.links, g.rank[a.Link()])
	return trail{
		hops:    t.hops + 1,
		latency: t.latency + g.Latency(a),
		links:   slices.Insert(slices.Clone(t.links), at, g.rank[a.Link()]),
		last:    a,
	}
}

// treeOf is the tree rooted at a switch (a node number), breadth first.
func (g *Graph) treeOf(root int) *tree {
	if t := g.trees[root-g.hosts]; t != nil {
		return t
	}
	best := make([]*trail, len(g.trees))
	best[root-g.hosts] = &trail{last: -1}
	for level := []int{root}; len(level) > 0; {
		level = g.nextLevel(best, level)
	}
	t := g.plant(best)
	t.inOrder(g, root)
	g.trees[root-g.hosts] = t
	return t
}

// nextLevel reaches the switches one hop behind a level.
func (g *Graph) nextLevel(best []*trail, level []int) []int {
	var next []int
	for _, at := range level {
		from := best[at-g.hosts]
		for _, a := range g.leaving[at] {
			to := g.head[a]
			if g.isHost(to) {
				continue
			}
			known := best[to-g.hosts]
			if known != nil && known.hops <= from.hops {
				continue
			}
			if t := from.then(g, a); known == nil || t.before(*known) {
				best[to-g.hosts] = &t
			}
			if known == nil {
				next = append(next, to)
			}
		}
	}
	return next
}

// plant turns the best trails into a tree.
func (g *Graph) plant(best []*trail) *tree {
	t := &tree{parent: make([]Arc, len(best)), children: make([][]Arc, len(best))}
	for i, b := range best {
		t.parent[i] = -1
		if b != nil && b.last >= 0 {
			t.parent[i] = b.last
			from := g.head[b.last.Opposite()] - g.hosts
			t.children[from] = append(t.children[from], b.last)
		}
	}
	return t
}

// inOrder lists the tree's arcs breadth first.
func (t *tree) inOrder(g *Graph, root int) {
	t.order = append(t.order, t.children[root-g.hosts]...)
	for i := 0; i < len(t.order); i++ {
		t.order = append(t.order, t.children[g.head[t.order[i]]-g.hosts]...)
	}
}

// Fabric is the fixed path between two switches: through switches only, the
// fewest hops, then the least latency, then the one with the alphabetically
// first link that is not on both. False: the fabric does not join them.
func (g *Graph) Fabric(from, to string) (vnet.Path, bool) {
	a, known := g.index[from]
	b, too := g.index[to]
	if !known || !too || g.isHost(a) || g.isHost(b) {
		return nil, false
	}
	t := g.treeOf(a)
	var walk []Arc
	for b != a {
		arc := t.parent[b-g.hosts]
		if arc < 0 {
			return nil, false
		}
		walk = append(walk, arc)
		b = g.head[arc.Opposite()]
	}
	slices.Reverse(walk)
	return g.Path(walk), true
}
