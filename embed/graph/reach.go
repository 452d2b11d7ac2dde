package graph

import (
	"iter"
	"math"
	"slices"
	"time"
)

// Query is what a search asks of a walk.
type Query struct {
	To    int            // stop at this host; below 0: search all
	Bound time.Duration  // on the walk's latency; 0: none
	Allow func(Arc) bool // whether the walk may take an arc
}

// Reach holds the shortest walks from one host, until the graph's next search.
type Reach struct {
	graph  *Graph
	labels []label
	first  []int32 // by host: its label with the fewest hops; 0: none (label 0 is the start)
}

// label is a walk found: its last arc and the label before. A walk is at a
// host, or in the fabric at a switch after entering it at another.
type label struct {
	state, before int32
	arc           Arc
	hops          int32
	latency       time.Duration
}

// mark is the least latency with which a search has come to a state.
type mark struct {
	epoch   int
	latency time.Duration
}

// Reach finds, for every host (or one), the walk with the fewest hops that
// the query admits; among those of equal hops the first in the order of link
// names. It sets labels breadth first; under a bound a longer walk to the same
// place is kept only while it is faster, so the fewest hops within the bound
// are found. No walk takes a link twice.
func (g *Graph) Reach(from int, q Query) *Reach {
	if g.seen == nil {
		g.seen = make([]mark, g.hosts+len(g.trees)*len(g.trees))
		g.reach = Reach{graph: g, first: make([]int32, g.hosts)}
	}
	g.epoch++
	r := &g.reach
	clear(r.first)
	r.labels = append(r.labels[:0], label{state: int32(from), before: -1, arc: -1})
	g.seen[from] = mark{g.epoch, 0}
	for i := 0; i < len(r.labels) && (q.To < 0 || r.first[q.To] == 0); i++ {
		r.expand(int32(i), q)
	}
	return r
}

// expand walks on from a label.
func (r *Reach) expand(i int32, q Query) {
	for a, state := range r.graph.onwards(int(r.labels[i].state)) {
		r.walk(i, a, state, q)
	}
}

// walk adds a label if the arc may be taken and the walk is not worse than
// one known.
func (r *Reach) walk(before int32, a Arc, state int, q Query) {
	r.graph.steps++
	known := &r.graph.seen[state]
	latency := r.labels[before].latency + r.graph.Latency(a)
	if known.epoch == r.graph.epoch && (q.Bound == 0 || latency >= known.latency) {
		return
	}
	if q.Bound > 0 && latency > q.Bound || !q.Allow(a) || r.takes(before, a) {
		return
	}
	*known = mark{r.graph.epoch, latency}
	r.labels = append(r.labels, label{int32(state), before, a, r.labels[before].hops + 1, latency})
	if r.graph.isHost(state) && r.first[state] == 0 {
		r.first[state] = int32(len(r.labels) - 1)
	}
}

// takes says whether the walk of a label takes an arc's link already.
func (r *Reach) takes(i int32, a Arc) bool {
	for ; i > 0; i = r.labels[i].before {
		if r.labels[i].arc.Link() == a.Link() {
			return true
		}
	}
	return false
}

// Hops is the number of links to a host; false: it is not reached.
func (r *Reach) Hops(host int) (int, bool) {
	i := r.first[host]
	return int(r.labels[i].hops), i > 0
}

// Fastest is the least latency to a host, of a search with a bound; false: it
// is not reached.
func (r *Reach) Fastest(host int) (time.Duration, bool) {
	fastest, ok := time.Duration(math.MaxInt64), false
	for _, l := range r.labels[1:] {
		if int(l.state) == host {
			fastest, ok = min(fastest, l.latency), true
		}
	}
	return fastest, ok
}

// Walk is the walk to a host that is reached.
func (r *Reach) Walk(host int) []Arc {
	var walk []Arc
	for i := r.first[host]; i > 0; i = r.labels[i].before {
		walk = append(walk, r.labels[i].arc)
	}
	slices.Reverse(walk)
	return walk
}

// inside numbers the state of being at a switch after entering the fabric at another.
func (g *Graph) inside(entry, at int) int {
	return g.hosts + (entry-g.hosts)*len(g.trees) + at - g.hosts
}

// fabricState undoes inside.
func (g *Graph) fabricState(state int) (entry, at int) {
	state -= g.hosts
	return g.hosts + state/len(g.trees), g.hosts + state%len(g.trees)
}

// onwards lists the arcs by which a walk goes on from a state, and the states
// they lead to: from a host to hosts and into the fabric; from a switch along
// the tree of the one at which the fabric was entered, and out to hosts.
func (g *Graph) onwards(state int) iter.Seq2[Arc, int] {
	return func(yield func(Arc, int) bool) {
		if g.isHost(state) {
			for _, a := range g.leaving[state] {
				to := g.head[a]
				if !g.isHost(to) {
					to = g.inside(to, to)
				}
				if !yield(a, to) {
					return
				}
			}
			return
		}
		entry, at := g.fabricState(state)
		for _, a := range g.treeOf(entry).children[at-g.hosts] {
			if !yield(a, g.inside(entry, g.head[a])) {
				return
			}
		}
		for _, a := range g.leaving[at] {
			if g.isHost(g.head[a]) && !yield(a, g.head[a]) {
				return
			}
		}
	}
}
