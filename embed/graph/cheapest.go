package graph

import (
	"container/heap"
	"math"
	"slices"
	"time"
)

// Fares is what a search for the cheapest walk pays.
type Fares struct {
	Price func(Arc) float64 // of an arc, at least 0; math.Inf(1): it may not be taken
	Bound time.Duration     // on the walk's latency; 0: none
}

// mostFares bounds the labels of one search under a bound on latency, where
// walks that are dearer and faster are kept too.
const mostFares = 20_000

// Cheapest finds the walk of least price from one host to another, no dearer
// than limit; false: there is none. It sets labels in order of price (Dijkstra);
// under a bound on latency it keeps, for a place, walks of which none is both
// dearer and slower than another (Hansen's bicriterion labels), mostFares of
// them. No walk takes a link twice.
func (g *Graph) Cheapest(from, to int, limit float64, f Fares) ([]Arc, float64, bool) {
	c := &cheapest{graph: g, fares: f, limit: limit, fastest: map[int]time.Duration{}}
	c.labels = append(c.labels, fare{label: label{state: int32(from), before: -1, arc: -1}})
	heap.Push(c, int32(0))
	for len(c.open) > 0 && len(c.labels) < mostFares {
		i := heap.Pop(c).(int32)
		l := c.labels[i]
		if int(l.state) == to {
			return c.walkTo(i), l.price, true
		}
		if c.settled(l) {
			continue
		}
		c.expand(i)
	}
	return nil, 0, false
}

// fare is a label with the price of its walk.
type fare struct {
	label
	price float64
}

// cheapest is a search under way, and the heap of its open labels.
type cheapest struct {
	graph   *Graph
	fares   Fares
	limit   float64
	labels  []fare
	open    []int32
	fastest map[int]time.Duration // by state: the least latency of a walk settled there
}

// settled says whether a walk settled before is as fast, and notes this one if
// not: it is at least as dear.
func (c *cheapest) settled(l fare) bool {
	known, ok := c.fastest[int(l.state)]
	if ok && (c.fares.Bound == 0 || known <= l.latency) {
		return true
	}
	c.fastest[int(l.state)] = l.latency
	return false
}

// expand walks on from a label; see Reach.expand.
func (c *cheapest) expand(i int32) {
	g := c.graph
	state := int(c.labels[i].state)
	if g.isHost(state) {
		for _, a := range g.leaving[state] {
			to := g.head[a]
			if !g.isHost(to) {
				to = g.inside(to, to)
			}
			c.step(i, a, to)
		}
		return
	}
	entry, at := g.fabricState(state)
	for _, a := range g.treeOf(entry).children[at-g.hosts] {
		c.step(i, a, g.inside(entry, g.head[a]))
	}
	for _, a := range g.leaving[at] {
		if g.isHost(g.head[a]) {
			c.step(i, a, g.head[a])
		}
	}
}

// step adds the label behind an arc, if it may be taken.
func (c *cheapest) step(before int32, a Arc, state int) {
	c.graph.steps++
	was := c.labels[before]
	next := fare{label: label{state: int32(state), before: before, arc: a, hops: was.hops + 1, latency: was.latency + c.graph.Latency(a)}}
	if known, ok := c.fastest[state]; ok && (c.fares.Bound == 0 || known <= next.latency) {
		return
	}
	next.price = was.price + c.fares.Price(a)
	if next.price > c.limit || math.IsInf(next.price, 1) || c.fares.Bound > 0 && next.latency > c.fares.Bound || c.takes(before, a) {
		return
	}
	c.labels = append(c.labels, next)
	heap.Push(c, int32(len(c.labels)-1))
}

// takes says whether the walk of a label takes an arc's link already. Only
// where a walk passes a fabric can it come back to a link it took.
func (c *cheapest) takes(i int32, a Arc) bool {
	if len(c.graph.trees) == 0 {
		return false
	}
	for ; i > 0; i = c.labels[i].before {
		if c.labels[i].arc.Link() == a.Link() {
			return true
		}
	}
	return false
}

func (c *cheapest) walkTo(i int32) []Arc {
	var walk []Arc
	for ; i > 0; i = c.labels[i].before {
		walk = append(walk, c.labels[i].arc)
	}
	slices.Reverse(walk)
	return walk
}

func (c *cheapest) Len() int { return len(c.open) }

// Less orders by price, then latency, then age, so that equal searches find
// equal walks.
func (c *cheapest) Less(i, j int) bool {
	a, b := c.labels[c.open[i]], c.labels[c.open[j]]
	if a.price != b.price {
		return a.price < b.price
	}
	if a.latency != b.latency {
		return a.latency < b.latency
	}
	return c.open[i] < c.open[j]
}

func (c *cheapest) Swap(i, j int) { c.open[i], c.open[j] = c.open[j], c.open[i] }

// Push and Pop are the heap's.
func (c *cheapest) Push(x any) { c.open = append(c.open, x.(int32)) }

// Pop takes the last label.
func (c *cheapest) Pop() any {
	last := len(c.open) - 1
	x := c.open[last]
	c.open = c.open[:last]
	return x
}
